// SPDX-License-Identifier: Apache-2.0
#include "reader/line.h"

#include <bit>
#include <deque>
#include <optional>
#include <utility>

#include "reader/blocks.h"

namespace weir::reader {
namespace {

constexpr uint32_t kOwn = 1u << WEIR_READER_LINE_IO | 1u << WEIR_READER_LINE_CALLS |
                          1u << WEIR_READER_LINE_LIBRARY;
constexpr uint32_t kAll = 1u << WEIR_READER_LINE_ALL_IO | 1u << WEIR_READER_LINE_ALL_CALLS |
                          1u << WEIR_READER_LINE_ALL_LIBRARY;
constexpr uint32_t kIo = 1u << WEIR_READER_LINE_IO | 1u << WEIR_READER_LINE_ALL_IO;
constexpr uint32_t kLibraries = 1u << WEIR_READER_LINE_LIBRARY | 1u << WEIR_READER_LINE_ALL_LIBRARY;

// The durations of calls added up, up to each timestamp, made where they are wanted.
class Durations {
 public:
  // parts: zeros, one for each timestamp.
  Durations(std::span<const int64_t> at, int64_t* parts)
      : at_(at), parts_(parts), whole_(at.size() + 1) {}

  void add(int64_t begin, int64_t end) {
    const size_t first = cell_of(begin);
    if (first == at_.size()) return;
    if (end <= at_[first]) {
      parts_[first] += end - begin;
      return;
    }
    parts_[first] += at_[first] - begin;
    const size_t last = cell_of(end - 1);
    if (last < at_.size()) parts_[last] += end - at_[last - 1];
    ++whole_[first + 1];
    --whole_[last];
  }

  void finish() {
    int64_t sum = 0, calls = 0;
    for (size_t i = 0; i < at_.size(); ++i) {
      calls += whole_[i];
      sum += parts_[i] + (i > 0 ? calls * (at_[i] - at_[i - 1]) : 0);
      parts_[i] = sum;
    }
  }

 private:
  // How many timestamps are not behind this one: mostly as many as of the one before, or some more.
  size_t cell_of(int64_t timestamp) {
    if (cell_ > 0 && timestamp < at_[cell_ - 1]) cell_ = find(timestamp);
    for (int steps = 0; cell_ < at_.size() && at_[cell_] <= timestamp; ++cell_) {
      if (++steps > 4) return cell_ = find(timestamp);
    }
    return cell_;
  }
  size_t find(int64_t timestamp) const {
    return size_t(std::upper_bound(at_.begin(), at_.end(), timestamp) - at_.begin());
  }

  std::span<const int64_t> at_;
  int64_t* const parts_;        // of calls that begin or end between two timestamps
  std::vector<int32_t> whole_;  // calls that last over all of it, begun less ended
  size_t cell_ = 0;
};

class Line {
 public:
  Line(const Calls& calls, const weir_reader_line& line, int64_t* lengths, int64_t* lasts)
      : calls_(calls), line_(line), lengths_(lengths), lasts_(lasts) {
    const std::span at(line.at_ns, line.timestamps);
    if (wants(WEIR_READER_LINE_TIME))
      own_time_.emplace(at, lengths + WEIR_READER_LINE_TIME * line.timestamps);
    if (wants(WEIR_READER_LINE_ALL_TIME))
      all_time_.emplace(at, lengths + WEIR_READER_LINE_ALL_TIME * line.timestamps);
  }

  void run() {
    for (size_t chunk = 0; chunk < calls_.chunks() && done_ < line_.timestamps; ++chunk) {
      if (calls_.begin_of(chunk) >= line_.at_ns[line_.timestamps - 1]) break;
      if (calls_.end_of(chunk) > line_.since_ns) take(chunk);
      if (waiting_ > line_.room) settle(calls_.limit(chunk));
    }
    settle(std::numeric_limits<int64_t>::max());
    if (own_time_) own_time_->finish();
    if (all_time_) all_time_->finish();
  }

 private:
  bool wants(uint32_t figure) const { return (line_.wanted >> figure & 1) != 0; }

  uint32_t unions_of(uint8_t kinds, bool is_own, uint32_t thread) const {
    uint32_t unions = 0;
    if ((kinds & kFileIo) != 0) {
      unions |= kAll | (is_own ? kOwn : 0);
      if (is_own ||
          !std::binary_search(line_.callers, line_.callers + line_.callers_count, thread))
        unions |= 1u << WEIR_READER_LINE_BESIDE_IO;
    }
    if (is_own && (kinds & kMpiCall) != 0) unions |= (kOwn | kAll) & ~kIo;
    if (is_own && (kinds & kLibraryCall) != 0) unions |= kLibraries;
    return unions & unions_wanted_;
  }

  // Calls of the same unions are joined on the way.
  void take(size_t chunk) {
    const Member& member = calls_.member_of(chunk);
    uint32_t thread = 0, of_kinds[kAllKinds + 1];
    bool is_known = false, is_own = false;
    calls_.each(chunk, [&](const CallRecord& call) {
      if (!is_known || call.thread != thread) {
        is_known = true;
        thread = call.thread;
        is_own = member.is_on_line(thread);
        for (uint8_t kinds = 0; kinds <= kAllKinds; ++kinds)
          of_kinds[kinds] = unions_of(kinds, is_own, thread);
      }
      if (call.end_ns < line_.since_ns) return;
      const uint32_t unions = of_kinds[call.kinds];
      const int64_t begin_ns = std::max(call.start_ns, line_.since_ns);
      if (unions != 0) growing_[unions].add(begin_ns, call.end_ns);
      if ((call.kinds & kFileIo) == 0 || !call.has_own_time || begin_ns >= call.end_ns) return;
      if (own_time_ && is_own) own_time_->add(begin_ns, call.end_ns);
      if (all_time_) all_time_->add(begin_ns, call.end_ns);
    });
    for (uint32_t unions = 1; unions < growing_.size(); ++unions) {
      if (!growing_[unions].is_empty()) put_away(unions);
    }
  }

  void put_away(uint32_t unions) {
    Blocks next;
    if (!spare_.empty()) next = std::move(spare_.back()), spare_.pop_back();
    Blocks blocks = growing_[unions].take(std::move(next));
    waiting_ += blocks.size();
    const auto same = std::find_if(pools_.begin(), pools_.end(),
                                   [&](const Pool& one) { return one.kind == unions; });
    (same == pools_.end() ? pools_.emplace_back(unions) : *same).add(std::move(blocks));
  }

  // Answers what lies before the limit, where no call begins any more.
  void settle(int64_t limit) {
    for (Pool& pool : pools_) pool.join_until(limit, spare_);
    waiting_ = 0;
    uint64_t upto = done_;
    while (upto < line_.timestamps && line_.at_ns[upto] <= limit) ++upto;
    for (uint32_t left = unions_wanted_; left != 0;) {
      const uint32_t unions = same_as_lowest(left);
      answer(unions, limit, upto);
      left &= ~unions;
    }
    done_ = upto;
  }

  // Of some unions those that have the same calls as the first of them.
  uint32_t same_as_lowest(uint32_t unions) const {
    const uint32_t lowest = unions & -unions;
    for (const Pool& pool : pools_) unions &= (pool.kind & lowest) != 0 ? pool.kind : ~pool.kind;
    return unions;
  }

  // unions: of the same pools.
  void answer(uint32_t unions, int64_t limit, uint64_t upto) {
    std::vector<const Pool*> its;
    int64_t last_ns = std::numeric_limits<int64_t>::min();
    for (const Pool& pool : pools_) {
      if ((pool.kind & unions) == 0) continue;
      its.push_back(&pool);
      last_ns = std::max(last_ns, pool.last_ns);
    }
    if (its.empty()) return;
    std::sort(its.begin(), its.end(), [](const Pool* a, const Pool* b) {
      return a->joined.size() > b->joined.size();
    });
    Blocks others, more;
    for (size_t i = 1; i < its.size(); ++i) {
      merge({others}, {its[i]->joined}, {}, more);
      others.swap(more);
    }
    MeasureOfBoth measure(its[0]->joined, others);
    int64_t& before = before_ns_[std::countr_zero(unions)];
    const bool has_lasts = lasts_ != nullptr && (unions >> WEIR_READER_LINE_ALL_IO & 1) != 0;
    for (uint64_t i = done_; i < upto; ++i) {
      const int64_t length = before + measure.until(line_.at_ns[i]);
      for (uint32_t one = 0; one < WEIR_READER_LINE_UNIONS; ++one) {
        if ((unions >> one & 1) != 0) lengths_[one * line_.timestamps + i] = length;
      }
      if (has_lasts) lasts_[i] = measure.last(line_.at_ns[i], last_ns);
    }
    const int64_t length = before + measure.until(limit);
    for (uint32_t one = 0; one < WEIR_READER_LINE_UNIONS; ++one) {
      if ((unions >> one & 1) != 0) before_ns_[one] = length;
    }
  }

  const Calls& calls_;
  const weir_reader_line& line_;
  int64_t *lengths_, *lasts_;
  const uint32_t unions_wanted_ = line_.wanted & ((1u << WEIR_READER_LINE_UNIONS) - 1);
  std::array<Growing, 1u << WEIR_READER_LINE_UNIONS> growing_;  // by the unions that a call is in
  std::deque<Pool> pools_;                                      // likewise
  std::vector<Blocks> spare_;
  std::array<int64_t, WEIR_READER_LINE_UNIONS> before_ns_ = {};  // up to the last limit
  size_t waiting_ = 0;                                           // blocks that came behind it
  std::optional<Durations> own_time_, all_time_;
  uint64_t done_ = 0;
};

}  // namespace

void line_lengths(const Calls& calls, const weir_reader_line& line, int64_t* lengths,
                  int64_t* lasts) {
  Line(calls, line, lengths, lasts).run();
}

}  // namespace weir::reader
