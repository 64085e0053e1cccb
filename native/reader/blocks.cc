// SPDX-License-Identifier: Apache-2.0
#include "reader/blocks.h"

#include <algorithm>
#include <deque>

namespace weir::reader {
namespace {

constexpr auto kByBegin = [](const Block& block, int64_t limit) { return block.begin < limit; };

// Joins what comes by rising begin. Whether a gap lies before a block cannot be foreseen: the block
// that it would end is written anyhow.
class Joining {
 public:
  Joining(Block open, Block* out) : open_(open), out_(out) {}

  void take(const Block& next) {
    const bool is_gap = next.begin > open_.end;
    *out_ = open_;
    out_ += is_gap;
    open_.begin = is_gap ? next.begin : open_.begin;
    open_.end = std::max(open_.end, next.end);
  }

  void take(std::span<const Block> some) {
    for (const Block& block : some) take(block);
  }

  // Up to the end of one of them; behind it is what is left.
  void take(std::span<const Block>& a, std::span<const Block>& b) {
    const Block *one = a.data(), *other = b.data();
    const Block *const one_end = one + a.size(), *const other_end = other + b.size();
    while (one != one_end && other != other_end) {
      const bool is_other = other->begin < one->begin;
      take(*(is_other ? other : one));
      other += is_other;
      one += !is_other;
    }
    a = {one, one_end};
    b = {other, other_end};
  }

  Block* end() {
    *out_++ = open_;
    return out_;
  }

 private:
  Block open_;
  Block* out_;
};

size_t count_of(const Parts& parts) {
  size_t count = 0;
  for (const auto& part : parts) count += part.size();
  return count;
}

// Takes the first block away.
Block pop(std::span<const Block>& part) {
  const Block first = part.front();
  part = part.subspan(1);
  return first;
}

}  // namespace

void Growing::join(int64_t begin, int64_t end) {
  if (end < blocks_.back().end) is_sorted_ = false;
  if (is_sorted_) {
    while (!blocks_.empty() && blocks_.back().end >= begin) {
      begin = std::min(begin, blocks_.back().begin);
      blocks_.pop_back();
    }
  }
  blocks_.push_back({begin, end});
}

Blocks Growing::take(Blocks next) {
  if (!is_sorted_) {
    std::sort(blocks_.begin(), blocks_.end(),
              [](const Block& a, const Block& b) { return a.begin < b.begin; });
  }
  is_sorted_ = true;
  next.clear();
  std::swap(blocks_, next);
  return next;
}

void merge(const Parts& a, const Parts& b, std::optional<Block> open, Blocks& both) {
  const size_t count = count_of(a) + count_of(b) + open.has_value();
  both.resize(count);
  if (count == 0) return;
  size_t i = 0, j = 0;
  auto one = a.empty() ? std::span<const Block>() : a[0];
  auto other = b.empty() ? std::span<const Block>() : b[0];
  if (!open)
    open = pop(one.empty() || (!other.empty() && other[0].begin < one[0].begin) ? other : one);
  Joining joining(*open, both.data());
  while (i < a.size() && j < b.size()) {
    joining.take(one, other);
    if (one.empty() && ++i < a.size()) one = a[i];
    if (other.empty() && ++j < b.size()) other = b[j];
  }
  for (; i < a.size(); one = ++i < a.size() ? a[i] : one) joining.take(one);
  for (; j < b.size(); other = ++j < b.size() ? b[j] : other) joining.take(other);
  both.resize(size_t(joining.end() - both.data()));
}

void Pool::add(Blocks blocks) {
  if (blocks.empty()) return;
  const auto run = std::find_if(runs_.begin(), runs_.end(), [&](const Run& its) {
    return its.parts.back().back().begin <= blocks[0].begin;
  });
  (run == runs_.end() ? runs_.emplace_back() : *run).parts.push_back(std::move(blocks));
}

Parts Pool::before(const Run& run, int64_t limit) {
  Parts found;
  for (const Blocks& part : run.parts) {
    const auto begin = part.begin() + int64_t(&part == &run.parts[0] ? run.done : 0);
    const auto end = std::lower_bound(begin, part.end(), limit, kByBegin);
    if (begin != end) found.emplace_back(begin, end);
    if (end != part.end()) break;
  }
  return found;
}

void Pool::drop(Run& run, int64_t limit, std::vector<Blocks>& spare) {
  size_t whole = 0;
  for (; whole < run.parts.size() && run.parts[whole].back().begin < limit; ++whole)
    spare.push_back(std::move(run.parts[whole]));
  run.parts.erase(run.parts.begin(), run.parts.begin() + int64_t(whole));
  if (whole != 0) run.done = 0;
  if (run.parts.empty()) return;
  const Blocks& first = run.parts.front();
  run.done = size_t(std::lower_bound(first.begin() + int64_t(run.done), first.end(), limit,
                                     kByBegin) - first.begin());
}

void Pool::join_until(int64_t limit, std::vector<Blocks>& spare) {
  if (!joined.empty()) last_ns = joined.back().end;
  std::vector<Parts> runs;
  for (const Run& run : runs_) {
    if (Parts some = before(run, limit); !some.empty()) runs.push_back(std::move(some));
  }
  std::deque<Blocks> made;
  while (runs.size() > 2) {  // neighbours, so that each block is moved few times
    std::vector<Parts> fewer;
    for (size_t i = 0; i < runs.size(); i += 2) {
      if (i + 1 < runs.size()) {
        merge(runs[i], runs[i + 1], {}, made.emplace_back());
        runs[i] = {made.back()};
      }
      fewer.push_back(std::move(runs[i]));
    }
    runs = std::move(fewer);
  }
  runs.resize(2);
  merge(runs[0], runs[1], std::exchange(open_, {}), joined);
  for (Run& run : runs_) drop(run, limit, spare);
  std::erase_if(runs_, [](const Run& run) { return run.parts.empty(); });
  if (!joined.empty() && joined.back().end > limit)
    open_ = {limit, std::exchange(joined.back().end, limit)};
}

}  // namespace weir::reader
