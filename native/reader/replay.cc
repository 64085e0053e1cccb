// SPDX-License-Identifier: Apache-2.0
#include "reader/replay.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <vector>

#include "reader/spill.h"

namespace weir::reader {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

// The next event of a strand: the start or the end of an operation.
struct Head {
  int64_t time;
  uint32_t place;  // among events of one time: what is put off, then starts before ends
  uint32_t strand;

  bool operator<(const Head& other) const {  // the greatest is at the top of a queue
    if (time != other.time) return time > other.time;
    if (place != other.place) return place > other.place;
    return strand > other.strand;
  }
};

constexpr uint32_t kEnd = 1, kPutOff = 2;

// Calls of a strand follow one another, whatever the records say.
void put_in_order(const weir_reader_replay& run) {
  for (uint64_t strand = 0; strand < run.strands; ++strand) {
    int64_t before = kNever;
    for (uint64_t op = run.first_op[strand]; op < run.first_op[strand + 1]; ++op) {
      run.start_ns[op] = std::max(run.start_ns[op], before);
      before = run.end_ns[op] = std::max(run.end_ns[op], run.start_ns[op]);
    }
  }
}

bool waits_for_one_of_this_time(const weir_reader_replay& run, uint64_t op,
                                const std::vector<bool>& has_started) {
  for (uint64_t at = run.first_wait[op]; at < run.first_wait[op + 1]; ++at) {
    const int64_t awaited = run.waits[at];
    if (awaited >= 0 && !has_started[awaited] && run.start_ns[awaited] == run.end_ns[op])
      return true;
  }
  return false;
}

// When the ranks that have come to a collective so far came: the last of them, and the time of the
// last in the replay.
struct Meeting {
  int64_t last_ns = kNever, replayed_ns = kNever;
  uint32_t last = WEIR_READER_NO_ROW;
};

class Replay {
 public:
  Replay(const weir_reader_replay& run, const int64_t* free_ns, weir_reader_replayed& result)
      : run_(run),
        free_ns_(free_ns),
        result_(result),
        saved_at_start_(run.ops, kNever),
        meetings_(run.instances) {
    if (result.path != nullptr)
      saved_at_end_.resize(run.ops), awaited_.assign(run.ops, WEIR_READER_NO_ROW);
    saved_.assign(run.strands, 0);
    strand_.resize(run.ops);
    for (uint64_t strand = 0; strand < run.strands; ++strand) {
      std::fill(strand_.begin() + int64_t(run.first_op[strand]),
                strand_.begin() + int64_t(run.first_op[strand + 1]), uint32_t(strand));
    }
  }

  void start(uint32_t op) {
    const uint32_t strand = strand_[op];
    const int64_t gap = op > run_.first_op[strand] ? run_.start_ns[op] - run_.end_ns[op - 1] : 0;
    const int64_t saved = saved_[strand] + std::clamp<int64_t>(free_ns_[op], 0, gap);
    saved_at_start_[op] = saved;
    for (uint64_t at = run_.first_join[op]; at < run_.first_join[op + 1]; ++at) {
      Meeting& meeting = meetings_[run_.joins[at]];
      meeting.replayed_ns = std::max(meeting.replayed_ns, run_.start_ns[op] - saved);
      if (run_.start_ns[op] >= meeting.last_ns)
        meeting.last_ns = run_.start_ns[op], meeting.last = op;
    }
  }

  void end(uint32_t op) {
    const bool is_launched =
        op == run_.first_op[strand_[op]] && run_.first_wait[op] < run_.first_wait[op + 1];
    int64_t until = is_launched ? kNever : run_.start_ns[op];
    int64_t replayed = is_launched ? kNever : until - saved_at_start_[op];
    uint32_t awaited = WEIR_READER_NO_ROW;
    for (uint64_t at = run_.first_wait[op]; at < run_.first_wait[op + 1]; ++at) {
      const int64_t of = run_.waits[at];
      Meeting one;
      if (of < 0) {
        one = meetings_[~of];
      } else if (saved_at_start_[of] != kNever) {
        one = {run_.start_ns[of], run_.start_ns[of] - saved_at_start_[of], uint32_t(of)};
      }
      if (one.last_ns == kNever) {
        ++result_.not_followed;
        continue;
      }
      replayed = std::max(replayed, one.replayed_ns);
      if (one.last_ns > until) until = one.last_ns, awaited = one.last;
    }
    const int64_t saved = saved_[strand_[op]] = until == kNever ? 0 : until - replayed;
    if (result_.path != nullptr) saved_at_end_[op] = saved, awaited_[op] = awaited;
    if (result_.awaited != nullptr) result_.awaited[op] = awaited;
  }

  void finish() {
    uint64_t last = run_.ops;
    result_.finish_ns = result_.replayed_finish_ns = kNever;
    for (uint64_t strand = 0; strand < run_.strands; ++strand) {
      if (run_.first_op[strand] == run_.first_op[strand + 1]) continue;
      const uint64_t op = run_.first_op[strand + 1] - 1;
      if (run_.end_ns[op] > result_.finish_ns) result_.finish_ns = run_.end_ns[op], last = op;
      result_.replayed_finish_ns =
          std::max(result_.replayed_finish_ns, run_.end_ns[op] - saved_[strand]);
    }
    if (result_.path != nullptr && last < run_.ops) walk(last);
  }

 private:
  // Back along the critical path. Of what was saved until somewhere, less remains where others came
  // later than the awaited rank does now.
  void walk(uint64_t op) {
    const auto ratio = [](int64_t part, int64_t whole) {
      return whole > 0 ? std::min(1.0, double(part) / double(whole)) : 0.0;
    };
    double price = ratio(result_.finish_ns - result_.replayed_finish_ns, saved_at_end_[op]);
    while (result_.path_length < run_.ops) {
      const uint64_t before = awaited_[op] != WEIR_READER_NO_ROW ? awaited_[op] : op;
      price *= ratio(saved_at_end_[op], saved_at_start_[before]);
      result_.path[result_.path_length++] = {uint32_t(op), uint32_t(before), price};
      if (before == run_.first_op[strand_[before]]) return;
      op = before - 1;
    }
  }

  const weir_reader_replay& run_;
  const int64_t* free_ns_;
  weir_reader_replayed& result_;
  SpillVector<int64_t> saved_at_start_, saved_at_end_, saved_;
  SpillVector<uint32_t> awaited_, strand_;
  SpillVector<Meeting> meetings_;
};

}  // namespace

void order_events(const weir_reader_replay& run, uint32_t* order) {
  put_in_order(run);
  std::vector<uint32_t> next(run.first_op, run.first_op + run.strands);
  std::vector<bool> has_started(run.ops);
  std::priority_queue<Head> heads;
  for (uint32_t strand = 0; strand < run.strands; ++strand) {
    if (next[strand] < run.first_op[strand + 1])
      heads.push({run.start_ns[next[strand]], 0, strand});
  }
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    const uint32_t op = next[head.strand];
    if ((head.place & kEnd) == 0) {
      *order++ = op << 1;
      has_started[op] = true;
      heads.push({run.end_ns[op], kEnd, head.strand});
    } else if (head.place == kEnd && waits_for_one_of_this_time(run, op, has_started)) {
      heads.push({head.time, kEnd | kPutOff, head.strand});
    } else {
      *order++ = op << 1 | 1;
      const uint32_t then = next[head.strand] = op + 1;
      if (then < run.first_op[head.strand + 1]) heads.push({run.start_ns[then], 0, head.strand});
    }
  }
}

void replay(const weir_reader_replay& run, const uint32_t* order, const int64_t* free_ns,
            weir_reader_replayed& result) {
  result.path_length = result.not_followed = 0;
  Replay made(run, free_ns, result);
  for (uint64_t at = 0; at < 2 * run.ops; ++at) {
    const uint32_t op = order[at] >> 1;
    if ((order[at] & 1) == 0) made.start(op); else made.end(op);
  }
  made.finish();
}

}  // namespace weir::reader
