// SPDX-License-Identifier: Apache-2.0
// Stores between nodes that share no memory: each node's part lies in the rank that serves for it
// (layers/remote/transport.h), and every rank, that one's neighbours included, reaches it by
// messages. A store is named by its shape, and made when somebody first asks for it.
#include <stdlib.h>
#include <string.h>

#include "base/round.h"
#include "base/text.h"
#include "layers/cache/between.h"
#include "layers/cache/job.h"
#include "layers/remote/transport.h"
#include "layers/machinery/node/lock.h"
#include "layers/machinery/node/place.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr uint32_t kStores = 8;            // shapes of stores in one job
constexpr uint32_t kMostPlaces = 1u << 20;

// This rank's part of a store, when it serves. The name is 0 until the memory is there.
struct Part {
  uint64_t name;
  char* memory;
  uint64_t bytes;
};
Part parts[kStores];

// As this rank uses it.
struct Far {
  uint64_t name;
  Between between;
};
Far fars[kStores];
uint32_t far_count = 0;
uint32_t making = 0;

uint64_t name_of(uint32_t places, uint32_t place_bytes) {
  return uint64_t{places} << 32 | place_bytes;
}

// Called by the transport's thread alone.
char* memory_of(uint64_t name, uint64_t at, uint64_t bytes) {
  for (Part& p : parts) {
    if (p.name == 0) {
      const auto places = static_cast<uint32_t>(name >> 32),
                 place_bytes = static_cast<uint32_t>(name);
      if (places == 0 || places > kMostPlaces || place_bytes == 0) return nullptr;
      p.bytes = store_bytes(places, place_bytes);
      const long got =
          base::map(p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
      if (base::failed(got)) return nullptr;
      p.memory = reinterpret_cast<char*>(got);
      p.name = name;
    }
    if (p.name != name) continue;
    return at <= p.bytes && bytes <= p.bytes - at ? p.memory + at : nullptr;
  }
  return nullptr;
}

bool part_get(uint64_t name, uint64_t at, void* to, uint64_t bytes) {
  const char* from = memory_of(name, at, bytes);
  if (from != nullptr) memcpy(to, from, bytes);
  return from != nullptr;
}
bool part_put(uint64_t name, uint64_t at, const void* from, uint64_t bytes) {
  char* to = memory_of(name, at, bytes);
  if (to != nullptr) memcpy(to, from, bytes);
  return to != nullptr;
}
bool part_swap(uint64_t name, uint64_t at, uint64_t expected, uint64_t wanted, uint64_t* found) {
  char* word = at % sizeof(uint64_t) == 0 ? memory_of(name, at, sizeof(uint64_t)) : nullptr;
  if (word == nullptr) return false;
  base::compare_exchange(reinterpret_cast<uint64_t*>(word), &expected, wanted);
  *found = expected;
  return true;
}

// In as many messages as it takes.
template <typename Carry>
bool in_parts(uint64_t at, const iovec* pieces, int count, Carry carry) {
  uint64_t all = 0;
  for (int i = 0; i < count; ++i) all += pieces[i].iov_len;
  for (uint64_t done = 0; done < all;) {
    const uint64_t n = all - done < remote::kMostBytes ? all - done : remote::kMostBytes;
    if (!carry(at + done, remote::Pieces{pieces, count, done}, n)) return false;
    done += n;
  }
  return true;
}

bool far_get(void* context, uint32_t home, uint64_t at, const iovec* to, int count) {
  const uint64_t name = static_cast<Far*>(context)->name;
  return in_parts(at, to, count, [&](uint64_t from, const remote::Pieces& pieces, uint64_t n) {
    return remote::get(home, name, from, pieces, n);
  });
}
bool far_put(void* context, uint32_t home, uint64_t at, const iovec* from, int count) {
  const uint64_t name = static_cast<Far*>(context)->name;
  return in_parts(at, from, count, [&](uint64_t to, const remote::Pieces& pieces, uint64_t n) {
    return remote::put(home, name, to, pieces, n);
  });
}
bool far_swap(void* context, uint32_t home, uint64_t at, uint64_t expected, uint64_t wanted,
              uint64_t* found) {
  return remote::swap(home, static_cast<Far*>(context)->name, at, expected, wanted, found);
}
bool far_may(void*) { return remote::up(); }

// All ranks must come to the same shape, also where the last node has fewer ranks than the others.
uint32_t places_for(uint32_t slots) {
  const uint64_t places = uint64_t{slots} / job().ranks * remote::most_ranks();
  const uint64_t rounded = base::round_up(places, kWays);  // as the caches are
  return rounded < kWays ? kWays
                         : static_cast<uint32_t>(rounded < kMostPlaces ? rounded : kMostPlaces);
}

Between* between_by_messages(uint32_t slots, uint32_t place_bytes) {
  const uint32_t places = places_for(slots);
  const uint64_t name = name_of(places, place_bytes);
  const base::SignalsBlocked blocked;  // a handler would wait for its own thread
  uint32_t free = 0;
  while (!base::compare_exchange(&making, &free, 1u)) {
    node::sleep_on(&making, 1, 200'000);
    free = 0;
  }
  Far* found = nullptr;
  for (uint32_t i = 0; i < far_count; ++i) {
    if (fars[i].name == name) found = &fars[i];
  }
  if (found == nullptr && far_count < kStores) {
    found = &fars[far_count++];
    *found = {name,
              {{found, far_get, far_put, far_swap, far_may, nullptr},
               remote::homes(),
               places,
               place_bytes,
               0}};
  }
  base::store(&making, 0u);
  return found != nullptr ? &found->between : nullptr;
}

// The same for the ranks that share this node's directory, and for no others: hosts differ in the
// boot, emulated nodes and containers in the directory.
uint64_t node_name() {
  const char* directory = node::own_directory();
  struct {
    char boot[40];
    base::Identity where;
  } about{};
  if (directory == nullptr) return 0;
  base::read_file("/proc/sys/kernel/random/boot_id", about.boot, sizeof about.boot);
  struct stat s;
  if (base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(directory),
                        reinterpret_cast<long>(&s), 0) != 0)
    return 0;
  about.where = {static_cast<uint64_t>(s.st_dev), static_cast<uint64_t>(s.st_ino)};
  const uint64_t name = base::hash({reinterpret_cast<const char*>(&about), sizeof about}, 0);
  return name != 0 ? name : 1;
}

constinit Way the_way = Way::kAny;

}  // namespace

void read_environment() {
  job();
  const char* way = getenv("WEIR_BETWEEN");
  if (way == nullptr) return;
  the_way = strcmp(way, "mpi") == 0   ? Way::kMessages
            : strcmp(way, "off") == 0 ? Way::kNone
                                      : Way::kAny;
}

Way wished_way() { return the_way; }

void begin_messages(const remote::Mpi& mpi, bool able, void (*in_thread)()) {
  const uint64_t name = able ? node_name() : 0;
  remote::begin(mpi, able && name != 0, name, job().ranks, {part_get, part_put, part_swap},
                in_thread);
}

Between* between_nodes(uint32_t slots, uint32_t place_bytes) {
  const Way wished = wished_way();
  if (wished == Way::kNone) return nullptr;
  if (remote::up()) return between_by_messages(slots, place_bytes);
  if (!job().one_host || wished != Way::kAny) return nullptr;
  return between_on_host(job().nodes, static_cast<uint32_t>(base::round_up(slots, kWays)),
                         place_bytes);
}

}  // namespace weir::cache
