// SPDX-License-Identifier: Apache-2.0
#include "testfs/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace weir::testfs {
namespace {

// How long a thread of a hanging file system sleeps before it looks again whether it still hangs.
constexpr uint64_t kLookAgain_ns = 5'000'000;

// Takes the server for `cost_ns`, from the arrival or from when it is free; until when.
uint64_t reserve(Word& busy_until_ns, uint64_t arrival_ns, uint64_t cost_ns) {
  uint64_t busy = busy_until_ns.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t until = std::max(busy, arrival_ns) + cost_ns;
    if (busy_until_ns.compare_exchange_weak(busy, until, std::memory_order_relaxed)) return until;
  }
}

uint64_t mixed(uint64_t value) {  // splitmix64's output function: Steele, Lea, Flood, OOPSLA 2014
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

void sleep_until(uint64_t deadline_ns) {
  const timespec time = {static_cast<time_t>(deadline_ns / 1'000'000'000),
                         static_cast<long>(deadline_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace

bool Server::open(const Options& options, const std::string& bucket_path) {
  options_ = &options;
  if (bucket_path.empty()) return true;
  for (;;) {
    fd_ = ::open(bucket_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0 || flock(fd_, LOCK_SH) != 0 || ftruncate(fd_, sizeof(Bucket)) != 0) return false;
    // The last mount before us may have removed the file between the two calls.
    struct stat mine, named;
    if (fstat(fd_, &mine) == 0 && stat(bucket_path.c_str(), &named) == 0 &&
        mine.st_ino == named.st_ino)
      break;
    ::close(fd_);
  }
  void* at = mmap(nullptr, sizeof(Bucket), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return false;
  bucket_ = static_cast<Bucket*>(at);
  path_ = bucket_path;
  return true;
}

void Server::close() {
  if (fd_ < 0) return;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) unlink(path_.c_str());
  ::close(fd_);
  fd_ = -1;
}

uint64_t Server::answer_ns(Cost cost, uint64_t arrival_ns, uint64_t bytes) {
  const Options& options = *options_;
  if (cost == Cost::nothing) return 0;
  const uint64_t round_trip = options.round_trip_ns.load(std::memory_order_relaxed);
  if (cost == Cost::metadata) {
    const uint64_t service = options.metadata_ns.load(std::memory_order_relaxed);
    if (service == 0) return arrival_ns + round_trip;
    return reserve(bucket_->metadata_busy_until_ns, arrival_ns, service) + round_trip;
  }
  const uint64_t data = options.data_ns.load(std::memory_order_relaxed);
  const uint64_t rate = options.bytes_per_s.load(std::memory_order_relaxed);
  if (rate == 0 || bytes == 0) return arrival_ns + round_trip + data;
  const uint64_t transfer =
      static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate));
  return reserve(bucket_->data_busy_until_ns, arrival_ns, transfer) + round_trip + data;
}

uint64_t take_space(Options& options, uint64_t wanted) {
  uint64_t left = options.space_bytes.load(std::memory_order_relaxed);
  for (;;) {
    if (left == kNever) return wanted;
    const uint64_t taken = std::min(left, wanted);
    if (options.space_bytes.compare_exchange_weak(left, left - taken, std::memory_order_relaxed))
      return taken;
  }
}

int injected_error(Options& options, Kind kind) {
  for (FailRule& rule : options.fail) {
    if ((rule.kinds.load(std::memory_order_relaxed) >> static_cast<unsigned>(kind) & 1) == 0)
      continue;
    const uint64_t number = rule.seen.fetch_add(1, std::memory_order_relaxed);
    if (number < rule.after) continue;
    if (mixed(rule.seed + mixed(number)) >> 32 >= rule.rate) continue;
    uint64_t times = rule.times.load(std::memory_order_relaxed);
    while (times != 0 && times != kNever && !rule.times.compare_exchange_weak(times, times - 1)) {
    }
    if (times != 0) return static_cast<int>(rule.error.load(std::memory_order_relaxed));
  }
  return 0;
}

void wait_until(const Options& options, uint64_t deadline_ns) {
  uint64_t now = deadline_ns == 0 ? 0 : now_ns();
  if (deadline_ns > now) sleep_until(deadline_ns);
  for (;;) {
    const uint64_t hang_until = options.hang_until_ns.load(std::memory_order_relaxed);
    if (hang_until == 0 || (now = now_ns()) >= hang_until) return;
    sleep_until(std::min(hang_until, now + kLookAgain_ns));
  }
}

}  // namespace weir::testfs
