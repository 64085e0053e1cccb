// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/recovery.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "layers/writeback/daemon/output.h"

namespace weir::daemon {

struct Job {
  size_t work;
  int slot;
  std::vector<int> blocks;
};

// Shared by the jobs of one dead process.
struct Death {
  std::vector<Work> works;
  std::vector<std::atomic<uint64_t>> lost;  // by work
  std::function<void(const Work&, uint64_t)> done;
  std::map<uint32_t, std::vector<Job>> waves;  // by level; the lowest that is left is under way
  std::atomic<size_t> left{0};                 // jobs of it

  explicit Death(std::vector<Work> its) : works(std::move(its)), lost(works.size()) {}
};

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;  // of one file, for one thread
constexpr uint32_t kMostCopied = 1u << 20;           // of a shared block, for one request
constexpr auto kPatience = std::chrono::seconds(30);  // for a living writer of a block

// What one job found wrong, for one line in the report.
struct Loss {
  int error = 0;
  uint64_t bytes = 0;
  void add(int why, uint64_t how_many) {
    if (error == 0) error = why;
    bytes += how_many;
  }
};

// The right to write a shared block's bytes to its file.
class Right {
 public:
  // patient: false once a living writer was waited for in vain.
  Right(writeback::Arena* arena, int block, bool* patient)
      : lock_(writeback::writer_of(arena, block)) {
    if (lock_ == nullptr) return;
    const auto end = Clock::now() + kPatience;
    had_ = node::take(*lock_) != node::Taken::kNot;
    while (!had_ && *patient && Clock::now() < end && !node::owner_is_stopped(*lock_)) {
      usleep(20'000);
      had_ = node::take(*lock_) != node::Taken::kNot;
    }
    *patient = *patient && had_;
  }
  ~Right() {
    if (lock_ != nullptr && had_) node::release(*lock_);
  }
  // False: a living process has it. The bytes are written by that one, or when it has died.
  bool is_mine() const { return lock_ == nullptr || (had_ && node::is_mine(*lock_)); }
  Right(const Right&) = delete;
  Right& operator=(const Right&) = delete;

 private:
  node::Lock* lock_;
  bool had_ = false;
};

// A block that living processes go on using. Its lock is not had while a request is at the file:
// what is written is a copy.
class SharedBlock {
 public:
  SharedBlock(writeback::Arena* arena, int block, int slot)
      : arena_(arena), block_(block), slot_(slot), assignment_(number()) {}

  void write(Output& output, const Right& right, Loss* loss) {
    for (uint32_t from = 0; right.is_mine() && copy_next(from); from = range_.hi) {
      const char* const bytes = copy_.data();
      const uint64_t at = offset_ + range_.lo;
      uint64_t done = 0;
      const int error = output.write_at(bytes, range_.hi - range_.lo, at, &done);
      if (done > 0) note_written(right, static_cast<uint32_t>(done));
      if (error != 0) loss->add(error, range_.hi - range_.lo - done);
    }
  }

 private:
  // The next dirty bytes behind `from`. False: there are none, or the block is another's by now.
  bool copy_next(uint32_t from) {
    if (!writeback::lock_block_patiently(arena_, block_)) return false;
    offset_ = writeback::offset_of(arena_, block_);
    bool there = is_same() && offset_ != writeback::kAtEnd;
    there = there && writeback::next_dirty(arena_, block_, from, &range_);
    there = there && range_.lo < range_.hi && range_.hi <= arena_->block_bytes;
    if (there) {
      if (range_.hi - range_.lo > kMostCopied) range_.hi = range_.lo + kMostCopied;
      copy_.assign(data() + range_.lo, data() + range_.hi);
    }
    writeback::unlock_block(arena_, block_);
    return there;
  }
  // What has changed meanwhile stays dirty: who changed it writes it.
  void note_written(const Right& right, uint32_t bytes) {
    if (!writeback::lock_block_patiently(arena_, block_)) return;
    const uint32_t lo = range_.lo;
    if (right.is_mine() && is_same() && memcmp(data() + lo, copy_.data(), bytes) == 0) {
      writeback::mark_clean(arena_, block_, lo, lo + bytes);
    }
    writeback::unlock_block(arena_, block_);
  }
  uint64_t number() const { return base::load(&arena_->blocks[block_].assignment); }
  bool is_same() const {
    return writeback::slot_of(arena_, block_) == slot_ && number() == assignment_;
  }
  const char* data() const { return static_cast<const char*>(writeback::data(arena_, block_)); }

  writeback::Arena* arena_;
  int block_, slot_;
  uint64_t assignment_, offset_ = 0;
  writeback::Range range_{0, 0};
  std::vector<char> copy_;
};

void write_block(Output& output, writeback::Arena* arena, int block, Loss* loss) {
  const auto* data = static_cast<const char*>(writeback::data(arena, block));
  writeback::Range r{0, 0};
  while (writeback::next_dirty(arena, block, r.hi, &r)) {
    if (r.lo >= r.hi || r.hi > arena->block_bytes) return;  // none that a layer made
    uint64_t done = 0;
    const int error =
        output.write_at(data + r.lo, r.hi - r.lo, writeback::offset_of(arena, block) + r.lo, &done);
    if (done > 0) writeback::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(done));
    if (error != 0) loss->add(error, r.hi - r.lo - done);
  }
}

// The first range of the block, of which a part may have arrived before the process died.
void append_block(Output& output, writeback::Arena* arena, int block, Loss* loss) {
  const auto* data = static_cast<const char*>(writeback::data(arena, block));
  for (;;) {
    writeback::Range ranges[writeback::kRanges];
    if (writeback::dirty(arena, block, ranges) == 0) return;
    writeback::Range r = ranges[0];
    if (r.lo >= r.hi || r.hi > arena->block_bytes) return;
    const writeback::Block& b = arena->blocks[block];
    const writeback::List& list = b.lists[b.active & 1];
    const writeback::Range announced = writeback::unpacked(list.announced);
    if (announced.lo == r.lo && announced.hi > r.lo && announced.hi <= r.hi) {
      uint64_t there = 0;
      if (output.find_appended(data + r.lo, announced.hi - r.lo, list.expected, &there) == 0 &&
          there > 0) {
        writeback::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(there));
        continue;
      }
    }
    uint64_t end = 0, done = 0;
    int error = output.size(&end);
    if (error == 0) {
      writeback::begin_append(arena, block, end);
      error = output.append(data + r.lo, r.hi - r.lo, &done);
      if (done > 0) writeback::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(done));
    }
    if (error != 0) {
      for (uint32_t i = 0, n = writeback::dirty(arena, block, ranges); i < n; ++i)
        loss->add(error, ranges[i].hi - ranges[i].lo);
      return;
    }
  }
}

void write_blocks(Errors& errors, Death& death, const Job& job) {
  const Work& work = death.works[job.work];
  const int slot = job.slot;
  Held& held = *work.held;
  const writeback::FileSlot& file = held.arena.slots[slot];
  int descriptor;
  {
    const std::lock_guard<std::mutex> guard(held.lock);
    descriptor = held.files[static_cast<size_t>(slot)];
  }
  Output output(file, descriptor);
  Loss loss;
  bool patient = true;
  for (const int block : job.blocks) {
    if (held.shared()) {
      const Right right(&held.arena, block, &patient);
      SharedBlock(&held.arena, block, slot).write(output, right, &loss);
      continue;
    }
    if (writeback::slot_of(&held.arena, block) != slot) continue;
    if (writeback::offset_of(&held.arena, block) == writeback::kAtEnd)
      append_block(output, &held.arena, block, &loss);
    else write_block(output, &held.arena, block, &loss);
  }
  if (loss.bytes != 0) {
    errors.add(file.path, loss.error, loss.bytes, work.dead.pid, held.run_of(work.dead));
    death.lost[job.work] += loss.bytes;
  }
}

// The slot's dirty blocks in pieces: appended ones in one, in their order.
std::vector<std::vector<int>> pieces_of(const Held& held, int slot) {
  const writeback::Arena& arena = held.arena;
  std::vector<int> appended;
  std::vector<std::vector<int>> pieces;
  uint64_t bytes = kPieceBytes;
  for (int i = 0; i < static_cast<int>(writeback::blocks_used(arena.header)); ++i) {
    if (arena.blocks[i].taken == 0 || writeback::slot_of(&arena, i) != slot ||
        !writeback::is_dirty(&arena, i))
      continue;
    if (writeback::offset_of(&arena, i) == writeback::kAtEnd) {
      appended.push_back(i);
      continue;
    }
    if (bytes >= kPieceBytes) {
      pieces.emplace_back();
      bytes = 0;
    }
    pieces.back().push_back(i);
    bytes += arena.block_bytes;
  }
  std::sort(appended.begin(), appended.end(),
            [&](int a, int b) { return arena.blocks[a].assignment < arena.blocks[b].assignment; });
  if (!appended.empty()) pieces.push_back(appended);
  return pieces;
}

}  // namespace

Recovery::~Recovery() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Recovery::loop() {
  std::unique_lock<std::mutex> guard(lock_);
  for (;;) {
    more_.wait(guard, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    ++busy_;
    guard.unlock();
    job();
    guard.lock();
    --busy_;
  }
}

void Recovery::run(std::function<void()> job) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    jobs_.push_back(std::move(job));
    if (busy_ + jobs_.size() > threads_.size() && threads_.size() < most_threads_)
      threads_.emplace_back([this] { loop(); });
  }
  more_.notify_one();
}

bool Recovery::idle() {
  const std::lock_guard<std::mutex> guard(lock_);
  return jobs_.empty() && busy_ == 0;
}

void Recovery::next_wave(const std::shared_ptr<Death>& death) {
  if (death->waves.empty()) {
    for (size_t i = 0; i < death->works.size(); ++i)
      death->done(death->works[i], death->lost[i].load());
    return;
  }
  const std::vector<Job>& jobs = death->waves.begin()->second;
  death->left = jobs.size();
  for (size_t i = 0, n = jobs.size(); i < n; ++i) {
    run([this, death, job = &jobs[i]] {
      write_blocks(errors_, *death, *job);
      if (death->left.fetch_sub(1) != 1) return;
      death->waves.erase(death->waves.begin());
      next_wave(death);
    });
  }
}

void Recovery::write_out(std::vector<Work> works, std::function<void(const Work&, uint64_t)> done) {
  auto death = std::make_shared<Death>(std::move(works));
  death->done = std::move(done);
  for (size_t i = 0; i < death->works.size(); ++i) {
    const Work& work = death->works[i];
    for (const int slot : work.slots) {
      std::vector<Job>& wave = death->waves[work.held->arena.slots[slot].level];
      for (std::vector<int>& blocks : pieces_of(*work.held, slot))
        wave.push_back({i, slot, std::move(blocks)});
    }
  }
  std::erase_if(death->waves, [](const auto& wave) { return wave.second.empty(); });
  run([this, death] { next_wave(death); });
}

}  // namespace weir::daemon
