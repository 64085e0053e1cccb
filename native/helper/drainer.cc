// SPDX-License-Identifier: Apache-2.0
#include "helper/drainer.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "helper/output.h"

namespace weir::helper {

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

constexpr uint64_t kPieceBytes = uint64_t{8} << 20;  // of one file, for one thread

// What one job found wrong, for one line in the report.
struct Loss {
  int error = 0;
  uint64_t bytes = 0;
  void add(int why, uint64_t how_many) {
    if (error == 0) error = why;
    bytes += how_many;
  }
};

class BlockGuard {
 public:
  BlockGuard(drain::Arena* arena, int block, bool shared)
      : arena_(arena), block_(block), shared_(shared), held_(!shared || drain::lock_block_patiently(arena, block)) {}
  ~BlockGuard() {
    if (shared_ && held_) drain::unlock_block(arena_, block_);
  }
  // False: a living process has the block and does not go on. Its bytes are written by that one, or when it has died.
  bool held() const { return held_; }
  BlockGuard(const BlockGuard&) = delete;
  BlockGuard& operator=(const BlockGuard&) = delete;

 private:
  drain::Arena* arena_;
  int block_;
  bool shared_;
  bool held_;
};

void write_block(Output& output, drain::Arena* arena, int block, Loss* loss) {
  const auto* data = static_cast<const char*>(drain::data(arena, block));
  drain::Range r{0, 0};
  while (drain::next_dirty(arena, block, r.hi, &r)) {
    if (r.lo >= r.hi || r.hi > arena->block_bytes) return;  // none that a layer made
    uint64_t done = 0;
    const int error = output.write_at(data + r.lo, r.hi - r.lo, drain::offset_of(arena, block) + r.lo, &done);
    if (done > 0) drain::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(done));
    if (error != 0) loss->add(error, r.hi - r.lo - done);
  }
}

// The first range of the block, of which a part may have arrived before the process died.
void append_block(Output& output, drain::Arena* arena, int block, Loss* loss) {
  const auto* data = static_cast<const char*>(drain::data(arena, block));
  for (;;) {
    drain::Range ranges[drain::kRanges];
    if (drain::dirty(arena, block, ranges) == 0) return;
    drain::Range r = ranges[0];
    if (r.lo >= r.hi || r.hi > arena->block_bytes) return;
    const drain::Block& b = arena->blocks[block];
    const drain::List& list = b.lists[b.active & 1];
    const drain::Range announced = drain::unpacked(list.announced);
    if (announced.lo == r.lo && announced.hi > r.lo && announced.hi <= r.hi) {
      uint64_t there = 0;
      if (output.find_appended(data + r.lo, announced.hi - r.lo, list.expected, &there) == 0 && there > 0) {
        drain::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(there));
        continue;
      }
    }
    uint64_t end = 0, done = 0;
    int error = output.size(&end);
    if (error == 0) {
      drain::begin_append(arena, block, end);
      error = output.append(data + r.lo, r.hi - r.lo, &done);
      if (done > 0) drain::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(done));
    }
    if (error != 0) {
      for (uint32_t i = 0, n = drain::dirty(arena, block, ranges); i < n; ++i) loss->add(error, ranges[i].hi - ranges[i].lo);
      return;
    }
  }
}

void write_blocks(Errors& errors, Death& death, const Job& job) {
  const Work& work = death.works[job.work];
  const int slot = job.slot;
  Held& held = *work.held;
  const drain::FileSlot& file = held.arena.slots[slot];
  int descriptor;
  {
    const std::lock_guard<std::mutex> guard(held.lock);
    descriptor = held.files[static_cast<size_t>(slot)];
  }
  Output output(file, descriptor);
  Loss loss;
  for (const int block : job.blocks) {
    const BlockGuard guard(&held.arena, block, held.shared());
    if (!guard.held() || drain::slot_of(&held.arena, block) != slot) continue;
    if (drain::offset_of(&held.arena, block) == drain::kAtEnd) append_block(output, &held.arena, block, &loss);
    else write_block(output, &held.arena, block, &loss);
  }
  if (loss.bytes != 0) {
    errors.add(file.path, loss.error, loss.bytes, work.dead.pid);
    death.lost[job.work] += loss.bytes;
  }
}

// The slot's dirty blocks in pieces: appended ones in one, in their order.
std::vector<std::vector<int>> pieces_of(const Held& held, int slot) {
  const drain::Arena& arena = held.arena;
  std::vector<int> appended;
  std::vector<std::vector<int>> pieces;
  uint64_t bytes = kPieceBytes;
  for (int i = 0; i < static_cast<int>(drain::blocks_used(arena.header)); ++i) {
    if (arena.blocks[i].taken == 0 || drain::slot_of(&arena, i) != slot || !drain::is_dirty(&arena, i)) continue;
    if (drain::offset_of(&arena, i) == drain::kAtEnd) {
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

Drainer::~Drainer() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Drainer::loop() {
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

void Drainer::run(std::function<void()> job) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    jobs_.push_back(std::move(job));
    if (busy_ + jobs_.size() > threads_.size() && threads_.size() < most_threads_) threads_.emplace_back([this] { loop(); });
  }
  more_.notify_one();
}

bool Drainer::idle() {
  const std::lock_guard<std::mutex> guard(lock_);
  return jobs_.empty() && busy_ == 0;
}

void Drainer::next_wave(const std::shared_ptr<Death>& death) {
  if (death->waves.empty()) {
    for (size_t i = 0; i < death->works.size(); ++i) death->done(death->works[i], death->lost[i].load());
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

void Drainer::drain(std::vector<Work> works, std::function<void(const Work&, uint64_t)> done) {
  auto death = std::make_shared<Death>(std::move(works));
  death->done = std::move(done);
  for (size_t i = 0; i < death->works.size(); ++i) {
    const Work& work = death->works[i];
    for (const int slot : work.slots) {
      std::vector<Job>& wave = death->waves[work.held->arena.slots[slot].level];
      for (std::vector<int>& blocks : pieces_of(*work.held, slot)) wave.push_back({i, slot, std::move(blocks)});
    }
  }
  std::erase_if(death->waves, [](const auto& wave) { return wave.second.empty(); });
  run([this, death] { next_wave(death); });
}

}  // namespace weir::helper
