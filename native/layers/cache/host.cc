// SPDX-License-Identifier: Apache-2.0
// A store between nodes that are emulated on one host (WEIR_NODE_RANKS): a file in the job's
// directory of shared memory, above those of the nodes, which all of the job's ranks on the host
// map. It begins with a bit for each page that has memory; the homes' parts lie one after another
// behind these.
#include <string.h>

#include "base/round.h"
#include "base/text.h"
#include "layers/cache/between.h"
#include "layers/machinery/node/lock.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "base/syscall.h"

namespace weir::cache {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

struct HostStore {
  Between between;
  char* memory;
  uint64_t home_bytes;  // of one home's part
  uint32_t* backed;     // by page of the parts, one bit, shared: it has memory
  uint64_t parts_at;    // in the file
  char name[node::kPathBytes];  // in the job's directory
  base::Identity file;
};
HostStore stores[8];
uint32_t store_count = 0;
uint32_t making = 0;

bool all_backed(const HostStore& store, uint64_t first, uint64_t last) {
  for (uint64_t page = first; page <= last;) {
    const uint64_t end = page - page % 32 + 32, until = end < last + 1 ? end : last + 1;
    const auto bits = static_cast<uint32_t>(((uint64_t{1} << (until - page)) - 1) << page % 32);
    if ((base::load(&store.backed[page / 32]) & bits) != bits) return false;
    page = until;
  }
  return true;
}

// tmpfs that is full would end the process by SIGBUS: memory is asked for before it is touched.
bool back(HostStore& store, uint64_t at, uint64_t bytes) {
  const uint64_t first = at / kPage, last = (at + bytes - 1) / kPage;
  if (all_backed(store, first, last)) return true;
  const base::HoldsDescriptor held;
  const long fd = node::open_in_job_again(store.name, store.file);
  if (base::failed(fd)) return false;
  const long done = base::allocate(static_cast<int>(fd), store.parts_at + first * kPage,
                                   (last - first + 1) * kPage);
  base::close_fd(static_cast<int>(fd));
  if (base::failed(done)) return false;
  base::advise(store.memory + first * kPage, (last - first + 1) * kPage,
               kPopulateWrite);  // it is written next
  for (uint64_t page = first; page <= last; ++page) {
    __atomic_fetch_or(&store.backed[page / 32], uint32_t{1} << (page % 32), __ATOMIC_RELEASE);
  }
  return true;
}

uint64_t bytes_of(const iovec* pieces, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += pieces[i].iov_len;
  return sum;
}

bool host_get(void* context, uint32_t home, uint64_t at, const iovec* to, int count) {
  auto& store = *static_cast<HostStore*>(context);
  at += home * store.home_bytes;
  if (!back(store, at, bytes_of(to, count))) return false;
  for (int i = 0; i < count; at += to[i++].iov_len)
    memcpy(to[i].iov_base, store.memory + at, to[i].iov_len);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return true;
}
bool host_put(void* context, uint32_t home, uint64_t at, const iovec* from, int count) {
  auto& store = *static_cast<HostStore*>(context);
  at += home * store.home_bytes;
  if (!back(store, at, bytes_of(from, count))) return false;
  for (int i = 0; i < count; at += from[i++].iov_len)
    memcpy(store.memory + at, from[i].iov_base, from[i].iov_len);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return true;
}
// Of a place's word, the half that has its state.
uint32_t* changing_half(const HostStore& store, uint64_t at) {
  return reinterpret_cast<uint32_t*>(store.memory + at) +
         (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 0);
}

bool host_swap(void* context, uint32_t home, uint64_t at, uint64_t expected, uint64_t wanted,
               uint64_t* found) {
  auto& store = *static_cast<HostStore*>(context);
  at += home * store.home_bytes;
  if (!back(store, at, sizeof(uint64_t))) return false;
  base::compare_exchange(reinterpret_cast<uint64_t*>(store.memory + at), &expected, wanted);
  *found = expected;
  if (expected != 0)
    node::wake(changing_half(store, at));  // somebody may wait for a block that was being read
  return true;
}
bool host_may(void*) { return true; }
void host_wait(void* context, uint32_t home, uint64_t at, uint64_t word, uint64_t at_most_ns) {
  auto& store = *static_cast<HostStore*>(context);
  node::sleep_on(changing_half(store, home * store.home_bytes + at),
                 static_cast<uint32_t>(word >> 32), at_most_ns);
}

bool name_of(HostStore& store, const Between& b) {
  base::Writer text(store.name, sizeof store.name);
  text.add("between-")
      .add_number(kVersion)
      .add("-")
      .add_number(b.homes)
      .add("-")
      .add_number(b.places)
      .add("-")
      .add_number(b.place_bytes);
  return !text.cut();
}

bool map_store(HostStore& store, const Between& b) {
  if (!name_of(store, b)) return false;
  store.home_bytes = base::round_up(store_bytes(b.places, b.place_bytes), kPage);
  const uint64_t parts = store.home_bytes * b.homes;
  store.parts_at = (parts / kPage / 8 + kPage) / kPage * kPage;
  const uint64_t all = store.parts_at + parts;
  const base::HoldsDescriptor held;
  const long fd = node::open_in_job(store.name, O_RDWR | O_CREAT);
  if (base::failed(fd)) return false;
  const bool fine = base::identify(static_cast<int>(fd), &store.file) &&
                    !base::failed(base::resize(static_cast<int>(fd), all)) &&
                    !base::failed(base::allocate(static_cast<int>(fd), 0, store.parts_at));
  const long memory =
      fine ? base::map(all, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd)) : -1;
  base::close_fd(static_cast<int>(fd));
  if (!fine || base::failed(memory)) return false;
  store.backed = reinterpret_cast<uint32_t*>(memory);
  store.memory = reinterpret_cast<char*>(memory) + store.parts_at;
  store.between = b;
  store.between.reach = {&store, host_get, host_put, host_swap, host_may, host_wait};
  return true;
}

}  // namespace

Between* between_on_host(uint32_t nodes, uint32_t places, uint32_t place_bytes) {
  if (nodes < 2) return nullptr;
  const Between wanted{
      {}, nodes, static_cast<uint32_t>(base::round_up(places, kPlaceWays)), place_bytes, 0};
  const base::SignalsBlocked blocked;  // a handler would wait for its own thread
  const uint32_t me = node::self().pid;  // another process's: it was taken when the parent forked
  for (uint32_t seen = 0; !base::compare_exchange(&making, &seen, me); seen = 0) {
    if (seen != me && base::compare_exchange(&making, &seen, me)) break;
    node::sleep_on(&making, me, 200'000);
  }
  Between* found = nullptr;
  for (uint32_t i = 0; i < store_count; ++i) {
    Between& b = stores[i].between;
    if (b.homes == wanted.homes && b.places == wanted.places && b.place_bytes == wanted.place_bytes)
      found = &b;
  }
  if (found == nullptr && store_count < sizeof stores / sizeof stores[0] &&
      map_store(stores[store_count], wanted)) {
    found = &stores[store_count++].between;
  }
  base::store(&making, 0u);
  return found;
}

}  // namespace weir::cache
