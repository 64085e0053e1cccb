// SPDX-License-Identifier: Apache-2.0
// For tests of bufa without a process around it: a file below that lives in memory, answers late,
// short or with errors as a seed has it, and counts; an arena without a daemon; what the stack
// would note.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mutex>
#include <random>
#include <vector>

#include "layers/bufa/declared.h"
#include "layers/bufa/state.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/lock.h"

namespace weir::layers::bufa::test {

struct Below {
  std::mutex lock;
  std::vector<char> bytes;
  std::mt19937_64 random;
  unsigned delay_us = 0;        // at most
  unsigned steady_delay_us = 0;
  double short_rate = 0, error_rate = 0;
  int errors_left = 0;          // writes that fail
  bool append = false;
  uint64_t reads = 0, writes = 0, bytes_read = 0, bytes_written = 0, largest = 0,
           unaligned_writes = 0, most_under_way = 0, under_way = 0;
  std::vector<std::pair<uint64_t, uint64_t>> log;  // offset, bytes of reads
};
inline Below* below = nullptr;

struct Noted {
  int error = 0;
  uint64_t lost_bytes = 0;
  int errors = 0;
  stack::Reason left{}, bypass{};
};
inline Noted noted;
inline bool has_daemon = true;
inline bool taken_away = false;  // what begin_to_hold says

inline void be_late() {
  unsigned us = 0;
  {
    const std::lock_guard hold(below->lock);
    if (below->delay_us != 0) us = static_cast<unsigned>(below->random() % (below->delay_us + 1));
    us += below->steady_delay_us;
    if (++below->under_way > below->most_under_way) below->most_under_way = below->under_way;
  }
  if (us != 0) {
    timespec t{0, static_cast<long>(us) * 1000};
    nanosleep(&t, nullptr);
  }
  const std::lock_guard hold(below->lock);
  --below->under_way;
}

inline bool by_chance(double rate) {
  return rate > 0 && static_cast<double>(below->random() % 1000000) < rate * 1e6;
}

inline Result fake_read(Layer&, const Transfer& t) {
  be_late();
  const std::lock_guard hold(below->lock);
  ++below->reads;
  below->log.emplace_back(t.offset, t.bytes);
  uint64_t end =
      t.offset + t.bytes < below->bytes.size() ? t.offset + t.bytes : below->bytes.size();
  if (t.offset >= end) return 0;
  if (by_chance(below->short_rate)) end = t.offset + 1 + below->random() % (end - t.offset);
  uint64_t at = t.offset;
  for (int i = 0; i < t.count && at < end; ++i) {
    const uint64_t n = t.pieces[i].iov_len < end - at ? t.pieces[i].iov_len : end - at;
    memcpy(t.pieces[i].iov_base, below->bytes.data() + at, n);
    at += n;
  }
  below->bytes_read += at - t.offset;
  return static_cast<Result>(at - t.offset);
}

inline Result fake_write(Layer&, const Transfer& t) {
  be_late();
  const std::lock_guard hold(below->lock);
  ++below->writes;
  if (below->errors_left > 0 && --below->errors_left >= 0) return -ENOSPC;
  if (by_chance(below->error_rate)) return -EIO;
  uint64_t n = t.bytes;
  if (by_chance(below->short_rate)) n = 1 + below->random() % n;
  const uint64_t offset = below->append ? below->bytes.size() : t.offset;
  if (below->bytes.size() < offset + n) below->bytes.resize(offset + n);
  uint64_t at = 0;
  for (int i = 0; i < t.count && at < n; ++i) {
    const uint64_t part = t.pieces[i].iov_len < n - at ? t.pieces[i].iov_len : n - at;
    memcpy(below->bytes.data() + offset + at, t.pieces[i].iov_base, part);
    at += part;
  }
  below->bytes_written += n;
  if (n > below->largest) below->largest = n;
  return static_cast<Result>(n);
}

inline Result fake_size(Layer&) {
  const std::lock_guard hold(below->lock);
  return static_cast<Result>(below->bytes.size());
}
inline Result fake_truncate(Layer&, uint64_t bytes) {
  const std::lock_guard hold(below->lock);
  below->bytes.resize(bytes);
  return 0;
}

inline constexpr stack::Kind kFake{
    .name = "fake",
    .flags = 0,
    .state_bytes = 0,
    .statistics_count = 0,
    .create = nullptr,
    .open = nullptr,
    .ready = nullptr,
    .read = fake_read,
    .write = fake_write,
    .size = fake_size,
    .truncate = fake_truncate,
    .flush = [](Layer&) { return Result{0}; },
    .sync = [](Layer&, bool) { return Result{0}; },
    .invalidate = [](Layer&) {},
    .close = nullptr,
};

// A file open under `bufa:block_bytes:buffers`, over *below.
class Opened {
 public:
  Opened(uint64_t block_bytes, uint64_t buffers, bool always, int flags = O_RDWR) {
    noted = {};
    taken_away = false;
    file_ = static_cast<stack::File*>(calloc(1, sizeof(stack::File) + 64));
    strcpy(file_->path, "/in/memory");
    file_->flags = flags;
    file_->descriptor = -1;
    file_->size_at_open = below->bytes.size();
    below->append = (flags & O_APPEND) != 0;
    spec_.args[0] = block_bytes;
    spec_.args[1] = buffers;
    spec_.arg_count = 2;
    option_ = {base::text("always"), base::text("1")};
    spec_.options = &option_;
    spec_.option_count = always ? 1 : 0;
    under_ = Layer{&kFake, nullptr, file_, &spec_, nullptr, 1, nullptr, {}};
    Layer* u = &under_;
    layer_ = Layer{&kBufa,
                   u,
                   file_,
                   &spec_,
                   statistics_,
                   0,
                   calloc(1, kBufa.state_bytes),
                   {u, u, u, u, u, u, u, u}};
    kBufa.create(layer_);
    kBufa.ready(layer_);
  }
  ~Opened() {
    stack::lock(file_);
    kBufa.flush(layer_);
    kBufa.close(layer_);
    free(layer_.state_);
    free(file_);
  }
  Opened(const Opened&) = delete;

  Result read(void* to, uint64_t bytes, uint64_t offset) {
    const iovec piece{to, bytes};
    return enter([&] { return kBufa.read(layer_, {&piece, 1, bytes, offset}); });
  }
  Result write(const void* from, uint64_t bytes, uint64_t offset) {
    const iovec piece{const_cast<void*>(from), bytes};
    return enter([&] { return kBufa.write(layer_, {&piece, 1, bytes, offset}); });
  }
  Result append(const void* from, uint64_t bytes) {
    return write(from, bytes, static_cast<uint64_t>(size()));
  }
  Result transfer(const Transfer& t, bool writes) {
    return enter([&] { return writes ? kBufa.write(layer_, t) : kBufa.read(layer_, t); });
  }
  Result size() { return enter([&] { return kBufa.size(layer_); }); }
  Result truncate(uint64_t bytes) { return enter([&] { return kBufa.truncate(layer_, bytes); }); }
  Result flush() { return enter([&] { return kBufa.flush(layer_); }); }
  Result sync() { return enter([&] { return kBufa.sync(layer_, false); }); }
  void invalidate() {
    enter([&] { return kBufa.flush(layer_); });
    enter([&] { return kBufa.invalidate(layer_), Result{0}; });
  }
  uint64_t statistic(Statistic what) const { return statistics_[what]; }
  State& state() { return state_of(layer_); }
  stack::File* file() { return file_; }

 private:
  template <typename F>
  Result enter(F f) {
    stack::lock(file_);
    const Result r = f();
    stack::unlock(file_);
    return r;
  }
  stack::File* file_;
  rules::LayerSpec spec_;
  rules::Option option_;
  uint64_t statistics_[kStatistics] = {};
  Layer layer_, under_;
};

}  // namespace weir::layers::bufa::test
