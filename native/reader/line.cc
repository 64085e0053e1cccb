// SPDX-License-Identifier: Apache-2.0
#include "reader/line.h"

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
    return std::exchange(blocks_, {});
  }

 private:
  Blocks blocks_;
  bool is_sorted_ = true;
};

// Unions that all calls so far have in common.
struct Group {
  uint32_t unions = 0;
  Blocks kept;                  // begins rise; what is not complete yet
  std::vector<Blocks> waiting;  // to be joined with it
  size_t count = 0;             // of waiting blocks
  int64_t before_ns = 0, last_ns = kNever;

  // All that is not complete, as one; then nothing waits.
  void settle() {
    waiting.push_back(std::move(kept));
    for (; waiting.size() > 1;) {  // neighbours in pairs, so that each block is moved few times
      std::vector<Blocks> merged;
      for (size_t i = 0; i < waiting.size(); i += 2) {
        if (i + 1 == waiting.size()) {
          merged.push_back(std::move(waiting[i]));
          break;
        }
        Blocks both(waiting[i].size() + waiting[i + 1].size());
        std::merge(waiting[i].begin(), waiting[i].end(), waiting[i + 1].begin(),
                   waiting[i + 1].end(), both.begin(),
                   [](const Block& a, const Block& b) { return a.begin < b.begin; });
        merged.push_back(std::move(both));
      }
      waiting = std::move(merged);
    }
    kept = std::move(waiting.front());
    waiting.clear();
    count = 0;
    join(kept);
  }
};

class Line {
 public:
  Line(const Calls& calls, const weir_reader_line& line, int64_t* lengths, int64_t* lasts)
      : calls_(calls), line_(line), lengths_(lengths), lasts_(lasts) {
    groups_.emplace_back().unions = line.wanted;
  }

  void run() {
    for (size_t chunk = 0; chunk < calls_.chunks() && done_ < line_.timestamps; ++chunk) {
      take(chunk);
      size_t waiting = 0, kept = 0;
      for (const Group& group : groups_)
        waiting = std::max(waiting, group.count), kept = std::max(kept, group.kept.size());
      if (waiting > std::max<size_t>(line_.room, kept)) settle(calls_.limit(chunk));
    }
    settle(std::numeric_limits<int64_t>::max());
  }

 private:
  struct Taken {
    int64_t begin, end;
    uint32_t unions;
  };

  uint32_t unions_of(const CallRecord& call, const Member& member) const {
    const bool is_own = member.is_on_line(call.thread);
    uint32_t unions = 0;
    if ((call.kinds & kFileIo) != 0) {
      unions |= kAll | (is_own ? kOwn : 0);
      if (is_own || !std::binary_search(line_.callers, line_.callers + line_.callers_count,
                                        call.thread))
        unions |= 1u << WEIR_READER_LINE_BESIDE_IO;
    }
    if (is_own && (call.kinds & kMpiCall) != 0)
      unions |= (kOwn | kAll) & ~kIo;
    if (is_own && (call.kinds & kLibraryCall) != 0) unions |= kLibraries;
    return unions & line_.wanted;
  }

  void take(size_t chunk) {
    taken_.clear();
    std::array<bool, 1u << WEIR_READER_LINE_UNIONS> seen{};
    const Member& member = calls_.member_of(chunk);
    calls_.each(chunk, [&](const CallRecord& call) {
      const uint32_t unions = unions_of(call, member);
      if (unions == 0) return;
      taken_.push_back({call.start_ns, call.end_ns, unions});
      seen[unions] = true;
    });
    for (uint32_t unions = 1; unions < seen.size(); ++unions) {
      if (seen[unions]) part(unions);
    }
    for (Group& group : groups_) {
      for (const Taken& one : taken_) {
        if ((one.unions & group.unions) != 0) growing_.add(one.begin, one.end);
      }
      Blocks blocks = growing_.take();
      if (blocks.empty()) continue;
      group.count += blocks.size();
      group.waiting.push_back(std::move(blocks));
    }
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
    for (Group& group : groups_) {
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
  std::vector<Group> groups_;
  std::vector<Taken> taken_;
  Growing growing_;
  uint64_t done_ = 0;
};

}  // namespace

void line_lengths(const Calls& calls, const weir_reader_line& line, int64_t* lengths,
                  int64_t* lasts) {
  Line(calls, line, lengths, lasts).run();
}

}  // namespace weir::reader
