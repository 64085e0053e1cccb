// SPDX-License-Identifier: Apache-2.0
#include "testfs/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

namespace weir::testfs {
namespace {

// Changes with the layout, so that a state of another version is refused.
constexpr uint64_t kMagic = 0x77656972'74660001 ^ (sizeof(State) << 8);

constexpr const char* kNames[] = {
#define KIND(name, cost) #name,
#include "testfs/kinds.def"
#undef KIND
};
constexpr Cost kCosts[] = {
#define KIND(name, cost) Cost::cost,
#include "testfs/kinds.def"
#undef KIND
};

State* map(int fd) {
  void* at = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<State*>(at);
}

void zero(Word* first, size_t count) {
  for (size_t i = 0; i < count; ++i) first[i].store(0, std::memory_order_relaxed);
}

}  // namespace

const char* kind_name(Kind kind) { return kNames[static_cast<unsigned>(kind)]; }
Cost kind_cost(Kind kind) { return kCosts[static_cast<unsigned>(kind)]; }

State* create_state(const char* path) {
  const std::string fresh = std::string(path) + ".new";
  unlink(fresh.c_str());
  const int fd = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  State* state = ftruncate(fd, sizeof(State)) == 0 ? map(fd) : nullptr;
  if (state != nullptr) {
    state->names_used = 1;  // 0 is no name
    state->magic = kMagic;
    if (rename(fresh.c_str(), path) != 0) state = nullptr;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return state;
}

State* open_state(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat status;
  State* state = nullptr;
  if (fstat(fd, &status) == 0 && static_cast<uint64_t>(status.st_size) == sizeof(State))
    state = map(fd);
  close(fd);
  if (state == nullptr || state->magic != kMagic) {
    errno = EINVAL;
    return nullptr;
  }
  return state;
}

uint64_t keep_name(State& state, std::string_view name) {
  const uint64_t at = state.names_used.load(std::memory_order_relaxed);
  if (at + name.size() + 1 > kNameBytes) return 0;
  memcpy(state.names + at, name.data(), name.size());
  state.names_used.store(at + name.size() + 1, std::memory_order_relaxed);
  return at;
}

FileEntry* file_entry(State& state, std::string_view path) {
  static std::mutex lock;
  static std::unordered_map<std::string_view, FileEntry*> known;  // the names lie in the state
  std::lock_guard guard(lock);
  if (const auto found = known.find(path); found != known.end()) return found->second;
  const uint64_t count = state.file_count.load(std::memory_order_relaxed);
  const uint64_t name_at = count < kFiles ? keep_name(state, path) : 0;
  if (name_at == 0) {
    state.files_lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  FileEntry& entry = state.files[count];
  entry.name_at = name_at;
  state.file_count.store(count + 1, std::memory_order_release);
  known.emplace(std::string_view(state.names + name_at, path.size()), &entry);
  return &entry;
}

void raise_to(Word& most, uint64_t value) {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void count_transfer(Transfers& of, uint64_t offset, uint64_t size) {
  constexpr uint64_t k4k = 4096, k1m = 1 << 20;
  const unsigned size_class = size <= 1 ? 0 : std::bit_width(size - 1);
  of.sizes[std::min(size_class, kSizeClasses - 1)].fetch_add(1, std::memory_order_relaxed);
  if (offset % k4k == 0) of.offsets_4k.fetch_add(1, std::memory_order_relaxed);
  if (offset % k1m == 0) of.offsets_1m.fetch_add(1, std::memory_order_relaxed);
  if ((offset | size) % k4k == 0) of.aligned_4k.fetch_add(1, std::memory_order_relaxed);
  if ((offset | size) % k1m == 0) of.aligned_1m.fetch_add(1, std::memory_order_relaxed);
}

void reset(State& state) {
  zero(state.requests, kKinds);
  zero(state.errors, kKinds);
  zero(&state.injected, 1);
  zero(&state.bytes_read, 1);
  zero(&state.bytes_written, 1);
  state.max_in_flight.store(state.in_flight.load());
  state.max_data_in_flight.store(state.data_in_flight.load());
  for (Transfers* of : {&state.reads, &state.writes})
    zero(of->sizes, sizeof(Transfers) / sizeof(Word));
  zero(&state.files_lost, 1);
  const uint64_t files = state.file_count.load(std::memory_order_acquire);
  for (uint64_t i = 0; i < files; ++i) {
    FileEntry& entry = state.files[i];
    zero(entry.requests, kKinds);
    zero(&entry.bytes_read, 1);
    zero(&entry.bytes_written, 1);
  }
}

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t start_ticks_of(uint64_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%llu/stat", static_cast<unsigned long long>(pid));
  FILE* file = fopen(path, "re");
  if (file == nullptr) return 0;
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  // The name in parentheses may hold blanks and parentheses: the fields are counted from the last
  // one.
  const char* at = strrchr(text, ')');
  unsigned long long ticks = 0;
  char status = 'Z';
  if (at == nullptr ||
      sscanf(at + 1,
             " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
             &status, &ticks) != 2) {
    return 0;
  }
  return status == 'Z' || status == 'X' ? 0 : ticks;
}

}  // namespace weir::testfs
