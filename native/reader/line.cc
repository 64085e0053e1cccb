// SPDX-License-Identifier: Apache-2.0
#include "reader/line.h"

#include <optional>
#include <utility>

namespace weir::reader {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr uint32_t kOwn = 1u << WEIR_READER_LINE_IO | 1u << WEIR_READER_LINE_CALLS |
                          1u << WEIR_READER_LINE_LIBRARY;
constexpr uint32_t kAll = 1u << WEIR_READER_LINE_ALL_IO | 1u << WEIR_READER_LINE_ALL_CALLS |
                          1u << WEIR_READER_LINE_ALL_LIBRARY;
constexpr uint32_t kIo = 1u << WEIR_READER_LINE_IO | 1u << WEIR_READER_LINE_ALL_IO;
constexpr uint32_t kLibraries = 1u << WEIR_READER_LINE_LIBRARY | 1u << WEIR_READER_LINE_ALL_LIBRARY;

struct Block {
  int64_t begin, end;
};
using Blocks = std::vector<Block>;

// Joins blocks that touch or overlap; they are sorted by their begin.
void join(Blocks& blocks) {
  size_t last = 0;
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].begin > blocks[last].end)
      blocks[++last] = blocks[i];
    else
      blocks[last].end = std::max(blocks[last].end, blocks[i].end);
  }
  if (!blocks.empty()) blocks.resize(last + 1);
}

// The union of intervals that come in the order of their ends, as they mostly do.
class Growing {
 public:
  void add(int64_t begin, int64_t end) {
    if (!blocks_.empty() && end < blocks_.back().end) is_sorted_ = false;
    if (is_sorted_) {
      while (!blocks_.empty() && blocks_.back().end >= begin) {
        begin = std::min(begin, blocks_.back().begin);
        blocks_.pop_back();
      }
    }
    blocks_.push_back({begin, end});
  }

  Blocks take() {
    if (!is_sorted_) {
      std::sort(blocks_.begin(), blocks_.end(),
                [](const Block& a, const Block& b) { return a.begin < b.begin; });
      join(blocks_);
    }
    is_sorted_ = true;
    Blocks made = std::exchange(blocks_, {});
    blocks_.reserve(made.size());
    return made;
  }

 private:
  Blocks blocks_;
  bool is_sorted_ = true;
};

// Blocks whose begins rise, as one sequence of disjoint ones. Whether a gap lies before a block
// cannot be foreseen: the block that it would end is written anyhow.
void merge(const Blocks& a, const Blocks& b, Blocks& both) {
  if (a.empty() && b.empty()) return both.clear();
  both.resize(a.size() + b.size());
  size_t done = 0, i = 0, j = 0;
  Block open = a.empty() || (!b.empty() && b[0].begin < a[0].begin) ? b[0] : a[0];
  const auto take = [&](const Block& next) {
    const bool is_gap = next.begin > open.end;
    both[done] = open;
    done += is_gap;
    open.begin = is_gap ? next.begin : open.begin;
    open.end = std::max(open.end, next.end);
  };
  while (i < a.size() && j < b.size()) {
    const bool is_b = b[j].begin < a[i].begin;
    take(*(is_b ? &b[j] : &a[i]));
    j += is_b;
    i += !is_b;
  }
  for (; i < a.size(); ++i) take(a[i]);
  for (; j < b.size(); ++j) take(b[j]);
  both[done++] = open;
  both.resize(done);
}

// Unions that all calls so far have in common.
struct Group {
  uint32_t unions = 0;
  Blocks kept;                  // begins rise; what is not complete yet
  std::vector<Blocks> waiting;  // to be joined with it
  size_t count = 0;             // of waiting blocks
  int64_t before_ns = 0, last_ns = kNever;

  // All that is not complete, as one; then nothing waits.
  void settle() {
    std::vector<Blocks> runs = in_runs();
    for (size_t left = runs.size(); left > 1; left = (left + 1) / 2) {
      for (size_t i = 0; i < left; i += 2) {  // neighbours, so that each block is moved few times
        if (i + 1 < left) merge(runs[i], runs[i + 1], merged_), merged_.swap(runs[i]);
        runs[i / 2].swap(runs[i]);
      }
    }
    if (runs.size() == 1) join(runs.front());
    if (!runs.empty()) kept = std::move(runs.front());
  }

 private:
  // As few sequences as there are threads: what a thread does follows what it did before.
  std::vector<Blocks> in_runs() {
    waiting.push_back(std::move(kept));
    std::erase_if(waiting, [](const Blocks& one) { return one.empty(); });
    std::sort(waiting.begin(), waiting.end(),
              [](const Blocks& a, const Blocks& b) { return a[0].begin < b[0].begin; });
    std::vector<Blocks> runs;
    for (Blocks& one : waiting) {
      const auto run = std::find_if(runs.begin(), runs.end(), [&](const Blocks& its) {
        return its.back().begin <= one[0].begin;
      });
      if (run == runs.end()) runs.push_back(std::move(one));
      else run->insert(run->end(), one.begin(), one.end());
    }
    waiting.clear();
    kept.clear();
    count = 0;
    return runs;
  }

  Blocks merged_;
};

// The durations of calls added up, up to each timestamp.
class Durations {
 public:
  explicit Durations(std::span<const int64_t> at)
      : at_(at), parts_(at.size() + 1), whole_(at.size() + 1) {}

  void add(int64_t begin, int64_t end) {
    const size_t first = cell_of(begin);
    if (first == at_.size() || end <= at_[first]) {
      parts_[first] += end - begin;
      return;
    }
    parts_[first] += at_[first] - begin;
    const size_t last = cell_of(end - 1);
    parts_[last] += end - at_[last - 1];
    ++whole_[first + 1];
    --whole_[last];
  }

  void give(int64_t* out) const {
    int64_t sum = 0, calls = 0;
    for (size_t i = 0; i < at_.size(); ++i) {
      calls += whole_[i];
      sum += parts_[i] + (i > 0 ? calls * (at_[i] - at_[i - 1]) : 0);
      out[i] = sum;
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
  std::vector<int64_t> parts_,  // of calls that begin or end between two timestamps
      whole_;                   // calls that last over all of it, begun less ended
  size_t cell_ = 0;
};

class Line {
 public:
  Line(const Calls& calls, const weir_reader_line& line, int64_t* lengths, int64_t* lasts)
      : calls_(calls), line_(line), lengths_(lengths), lasts_(lasts) {
    groups_.emplace_back().unions = groups_wanted_;
    const std::span at(line.at_ns, line.timestamps);
    if (wants(WEIR_READER_LINE_TIME)) own_time_.emplace(at);
    if (wants(WEIR_READER_LINE_ALL_TIME)) all_time_.emplace(at);
  }

  void run() {
    for (size_t chunk = 0; chunk < calls_.chunks() && done_ < line_.timestamps; ++chunk) {
      take(chunk);
      size_t waiting = 0, kept = 0;
      for (const Group& group : groups_)
        waiting = std::max(waiting, group.count), kept = std::max(kept, group.kept.size());
      waiting += common_.count;
      if (waiting > std::max<size_t>(line_.room, kept)) settle(calls_.limit(chunk));
    }
    settle(std::numeric_limits<int64_t>::max());
    if (own_time_) own_time_->give(lengths_ + WEIR_READER_LINE_TIME * line_.timestamps);
    if (all_time_) all_time_->give(lengths_ + WEIR_READER_LINE_ALL_TIME * line_.timestamps);
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
    return unions & groups_wanted_;
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
      const uint32_t unions = of_kinds[call.kinds];
      if (unions != 0) growing_[unions].add(call.start_ns, call.end_ns);
      if ((call.kinds & kFileIo) == 0 || call.is_nested || call.start_ns >= call.end_ns) return;
      if (own_time_ && is_own) own_time_->add(call.start_ns, call.end_ns);
      if (all_time_) all_time_->add(call.start_ns, call.end_ns);
    });
    for (uint32_t unions = 1; unions < growing_.size(); ++unions) {
      Blocks blocks = growing_[unions].take();
      if (!blocks.empty()) wait(unions, std::move(blocks));
    }
  }

  void wait(uint32_t unions, Blocks blocks) {
    if (unions == groups_wanted_) {
      common_.count += blocks.size();
      common_.waiting.push_back(std::move(blocks));
      return;
    }
    part(unions);
    Group* last = nullptr;
    for (Group& group : groups_) {
      if ((group.unions & unions) == 0) continue;
      if (last != nullptr) last->waiting.push_back(blocks);
      last = &group;
      group.count += blocks.size();
    }
    if (last != nullptr) last->waiting.push_back(std::move(blocks));
  }

  // Groups of which some unions have these calls and others have not become two.
  void part(uint32_t unions) {
    for (size_t i = 0, count = groups_.size(); i < count; ++i) {
      const uint32_t some = groups_[i].unions & unions;
      if (some == 0 || some == groups_[i].unions) continue;
      groups_.push_back(groups_[i]);
      groups_[i].unions = some;
      groups_.back().unions &= ~some;
    }
  }

  // Answers what lies before the limit, where no call begins any more.
  void settle(int64_t limit) {
    uint64_t upto = done_;
    common_.settle();
    const Blocks common = std::exchange(common_.kept, {});
    for (Group& group : groups_) {
      if (!common.empty()) group.waiting.push_back(common);
      group.settle();
      upto = answer(group, limit);
    }
    done_ = upto;
  }

  uint64_t answer(Group& group, int64_t limit) {
    size_t next = 0;  // block that does not begin before the timestamp
    int64_t before = group.before_ns;
    const auto end_before = [&](size_t block, int64_t at) {
      return std::min(group.kept[block].end, at);
    };
    uint64_t i = done_;
    for (; i < line_.timestamps && line_.at_ns[i] <= limit; ++i) {
      const int64_t at = line_.at_ns[i];
      for (; next < group.kept.size() && group.kept[next].begin < at; ++next) {
        if (next > 0) before += group.kept[next - 1].end - group.kept[next - 1].begin;
      }
      const int64_t inside =
          next > 0 ? end_before(next - 1, at) - group.kept[next - 1].begin : 0;
      for (uint32_t one = 0; one < WEIR_READER_LINE_UNIONS; ++one) {
        if ((group.unions >> one & 1) != 0) lengths_[one * line_.timestamps + i] = before + inside;
      }
      if (lasts_ != nullptr && (group.unions >> WEIR_READER_LINE_ALL_IO & 1) != 0)
        lasts_[i] = next > 0 ? end_before(next - 1, at) : group.last_ns;
    }
    forget(group, limit);
    return i;
  }

  static void forget(Group& group, int64_t limit) {
    size_t first = 0;
    for (; first < group.kept.size() && group.kept[first].end <= limit &&
           group.kept[first].begin < limit;
         ++first) {
      group.before_ns += group.kept[first].end - group.kept[first].begin;
      group.last_ns = group.kept[first].end;
    }
    if (first < group.kept.size() && group.kept[first].begin < limit) {
      group.before_ns += limit - group.kept[first].begin;
      group.last_ns = limit;
      group.kept[first].begin = limit;
    }
    group.kept.erase(group.kept.begin(), group.kept.begin() + int64_t(first));
  }

  const Calls& calls_;
  const weir_reader_line& line_;
  int64_t *lengths_, *lasts_;
  const uint32_t groups_wanted_ = line_.wanted & ((1u << WEIR_READER_LINE_UNIONS) - 1);
  std::vector<Group> groups_;
  Group common_;  // what waits to be joined with all of them
  std::array<Growing, 1u << WEIR_READER_LINE_UNIONS> growing_;  // by the unions that a call is in
  std::optional<Durations> own_time_, all_time_;
  uint64_t done_ = 0;
};

}  // namespace

void line_lengths(const Calls& calls, const weir_reader_line& line, int64_t* lengths,
                  int64_t* lasts) {
  Line(calls, line, lengths, lasts).run();
}

}  // namespace weir::reader
