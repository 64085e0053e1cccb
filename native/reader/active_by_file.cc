// SPDX-License-Identifier: Apache-2.0
#include "reader/active_by_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "reader/blocks.h"
#include "reader/parallel.h"
#include "reader/piece.h"

namespace weir::reader {
namespace {

// In the order of time a page of each chunk is in memory at once, and a heap orders all chunks.
constexpr size_t kManyChunks = 4096;
constexpr uint64_t kMostRecords = uint64_t{1} << 20;  // of a file
// Of all files that may be in memory: of more, these are read together in the order of time.
constexpr size_t kMostBlocks = size_t{4} << 20;
constexpr size_t kFewBlocks = 4096;  // of files that were read before, for those that are read next
constexpr size_t kMostSteps = 4;  // over blocks, for each interval that is looked for among them

// Of some parts of a file or step; the blocks of each join those of as many parts, so that each
// block is moved few times.
class Tree {
 public:
  // Begins rise.
  void add(Blocks made) {
    size_t level = 0;
    for (; level < levels_.size() && !levels_[level].empty(); ++level)
      made = both(std::exchange(levels_[level], {}), made);
    if (level == levels_.size()) levels_.emplace_back();
    levels_[level] = std::move(made);
  }

  Blocks take() {
    Blocks made;
    for (Blocks& one : levels_) made = both(std::exchange(one, {}), made);
    return made;
  }

  size_t blocks() const {
    size_t count = 0;
    for (const Blocks& one : levels_) count += one.size();
    return count;
  }

 private:
  static Blocks both(const Blocks& a, const Blocks& b) {
    Blocks made;
    merge(Parts{a}, Parts{b}, {}, made);
    return made;
  }

  std::vector<Blocks> levels_;
};

// Where calls need not be joined: other files are busy all the time there. Ranks that call at the
// same times have most of their calls there.
class Known {
 public:
  // intervals: that it is asked for, by rising begin for the most part.
  Known(const Blocks& blocks, size_t intervals) {
    if (blocks.size() <= kMostSteps * intervals) blocks_ = blocks;
  }

  bool has(const Interval& one) {
    while (!blocks_.empty() && blocks_.front().end < one.start) blocks_ = blocks_.subspan(1);
    return !blocks_.empty() && blocks_.front().begin <= one.start &&
           one.end <= blocks_.front().end;
  }

 private:
  std::span<const Block> blocks_;
};

void add(Active& sum, const Active& one) {
  if (one.is_empty) return;
  sum.first_ns = sum.is_empty ? one.first_ns : std::min(sum.first_ns, one.first_ns);
  sum.last_ns = sum.is_empty ? one.last_ns : std::max(sum.last_ns, one.last_ns);
  sum.records += one.records;
  sum.is_empty = false;
}

// Without the sum. busy: blocks that need not be found once more.
Active of_file(const ActiveInput& input, bool all_names, const Blocks& busy, Blocks& found) {
  const HiddenNames hidden = hidden_of(input);
  Active all;
  Tree tree;
  Window window(*input.file);
  each_counted_chunk(input, all_names, hidden, [&](const auto& chunk, const Hidden* names) {
    const Source source(input, chunk, names);
    Active its = {0, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0,
                  true};
    Growing growing;
    Known known(busy, source.entries());
    source.each(0, source.entries(), [&](const Interval& one) {
      its.first_ns = std::min(its.first_ns, one.start);
      its.last_ns = std::max(its.last_ns, one.end);
      ++its.records;
      if (!known.has(one)) growing.add(one.start, one.end);
    });
    its.is_empty = its.records == 0;
    add(all, its);
    if (!growing.is_empty()) tree.add(growing.take({}));
    window.take(chunk.offset, chunk.size_bytes);
  });
  window.leave();
  found = tree.take();
  return all;
}

}  // namespace

bool are_small(const std::vector<ActiveInput>& inputs) {
  size_t chunks = 0;
  for (const ActiveInput& input : inputs) chunks += input.index->chunks.size();
  return inputs.size() > 1 && chunks > kManyChunks &&
         std::all_of(inputs.begin(), inputs.end(), [](const ActiveInput& one) {
           uint64_t records = 0;
           for (const auto& chunk : one.index->chunks) records += chunk.entries;
           return records <= kMostRecords;
         });
}

bool active_by_file(const std::vector<ActiveInput>& inputs, bool all_names, unsigned threads,
                    Active& active) {
  std::mutex mutex;
  Tree tree;
  auto busy = std::make_shared<const Blocks>();
  bool is_too_large = false;
  each_in_parallel(std::max(threads, 1u), inputs.size(), [&](size_t, size_t i) {
    std::shared_ptr<const Blocks> known;
    {
      const std::lock_guard lock(mutex);
      if (is_too_large) return;
      known = busy;
    }
    Blocks blocks;
    const Active one = of_file(inputs[i], all_names, *known, blocks);
    const std::lock_guard lock(mutex);
    add(active, one);
    tree.add(std::move(blocks));
    is_too_large = tree.blocks() > kMostBlocks;
    if (tree.blocks() > kFewBlocks) return;
    busy = std::make_shared<const Blocks>(tree.take());
    tree.add(*busy);
  });
  if (is_too_large) return false;
  for (const Block& one : tree.take()) active.total_ns += one.end - one.begin;
  return true;
}

}  // namespace weir::reader
