// SPDX-License-Identifier: Apache-2.0
#include "reader/causes.h"

#include <algorithm>
#include <limits>

namespace weir::reader {
namespace {

constexpr uint32_t kEnd = 0, kAsked = 1, kBegin = 2;
constexpr uint32_t kNobody = WEIR_READER_NO_ROW;
constexpr unsigned kMostHops = 64;
constexpr size_t kBetweenUnmappings = 1 << 14;  // events

// Of a strand up to a timestamp.
struct State {
  int64_t io_ns = 0, calls_ns = 0, all_io_ns = 0, all_calls_ns = 0;
};

using Points = std::vector<std::vector<int64_t>>;  // of each strand

// Lines are not known yet: notes where they are asked.
class Noting {
 public:
  explicit Noting(Points& points) : points_(points) {}
  State at(uint32_t strand, int64_t at_ns) {
    auto& its = points_[strand];
    if (its.empty() || its.back() < at_ns) its.push_back(at_ns);
    return {};
  }

 private:
  Points& points_;
};

// Lines are known where they were asked, in the same order.
class Reading {
 public:
  Reading(const Causes& causes, uint64_t strands, const int64_t* const* lengths)
      : causes_(causes), lengths_(lengths), next_(strands) {}
  State at(uint32_t strand, int64_t at_ns) {
    const auto its = causes_.points(strand);
    uint64_t& i = next_[strand];
    while (i + 1 < its.size() && its[i] < at_ns) ++i;
    const int64_t* const* const of = lengths_ + 4 * strand;
    return {of[0][i], of[1][i], of[2][i], of[3][i]};
  }

 private:
  const Causes& causes_;
  const int64_t* const* lengths_;
  std::vector<uint64_t> next_;
};

struct Amount {
  int64_t io_ns = 0, computing_ns = 0;
  Amount operator+(const Amount& other) const {
    return {io_ns + other.io_ns, computing_ns + other.computing_ns};
  }
  Amount operator-(const Amount& other) const {
    return {io_ns - other.io_ns, computing_ns - other.computing_ns};
  }
};

template <class Lines>
class Following {
 public:
  Following(uint64_t strands, Lines lines) : strands_(strands), lines_(lines) {}

  void begin(uint32_t strand, uint32_t awaited, int64_t at_ns) {
    Strand& one = strands_[strand];
    one.before = waited(strand, at_ns, 0);
    const State own = lines_.at(strand, at_ns);
    one.room_ns = own.calls_ns - own.io_ns;
    one.awaited_at = caused(awaited, at_ns, 0);
    one.awaited = awaited;
    one.at_ns = at_ns;
    one.waited = one.before;
  }

  void end(uint32_t strand, int64_t at_ns) {
    Strand& one = strands_[strand];
    one.waited = waited(strand, at_ns, 0);
    one.awaited = kNobody;
  }

  weir_reader_caused at(uint32_t strand, int64_t at_ns) {
    const Amount found = waited(strand, at_ns, 0);
    const State own = lines_.at(strand, at_ns);
    return {found.io_ns, found.computing_ns, own.io_ns, own.calls_ns, own.all_calls_ns};
  }

 private:
  struct Strand {
    uint32_t awaited = kNobody;
    int64_t at_ns = std::numeric_limits<int64_t>::min();  // of `waited`
    int64_t room_ns = 0;  // in calls of MPI without I/O, when the wait began
    Amount before, waited, awaited_at;
  };

  // Its waits so far that I/O and computing caused.
  Amount waited(uint32_t strand, int64_t at_ns, unsigned hops) {
    Strand& one = strands_[strand];
    if (one.awaited == kNobody || one.at_ns >= at_ns) return one.waited;
    if (hops == kMostHops) return one.waited;
    const Amount more = caused(one.awaited, at_ns, hops + 1) - one.awaited_at;
    const State own = lines_.at(strand, at_ns);
    const int64_t room = std::max<int64_t>(own.calls_ns - own.io_ns - one.room_ns, 0);
    Amount made;
    made.io_ns = std::clamp<int64_t>(more.io_ns, 0, room);
    made.computing_ns = std::clamp<int64_t>(more.computing_ns, 0, room - made.io_ns);
    made = one.before + made;
    made.io_ns = std::max(made.io_ns, one.waited.io_ns);
    made.computing_ns = std::max(made.computing_ns, one.waited.computing_ns);
    one.at_ns = at_ns;
    return one.waited = made;
  }

  // What others would wait for if they waited for this strand all the time.
  Amount caused(uint32_t strand, int64_t at_ns, unsigned hops) {
    const Amount found = waited(strand, at_ns, hops);
    const State state = lines_.at(strand, at_ns);
    return found + Amount{state.all_io_ns, at_ns - state.all_calls_ns};
  }

  std::vector<Strand> strands_;
  Lines lines_;
};

template <class Lines, class Event>
void go_through(const SpillVector<Event>& events, const weir_reader_stays& stays, Lines lines,
                weir_reader_caused* at) {
  Following<Lines> following(stays.strands, lines);
  for (size_t i = 0; i < events.size(); ++i) {
    if (i % kBetweenUnmappings == 0) weir_spill_unmap();
    const Event& event = events[i];
    if (event.kind == kAsked) {
      const auto found = following.at(stays.asked_strand[event.number], event.at_ns);
      if (at != nullptr) at[event.number] = found;
      continue;
    }
    const uint32_t strand = stays.strand[event.number];
    if (event.kind == kBegin) following.begin(strand, stays.awaited[event.number], event.at_ns);
    else following.end(strand, event.at_ns);
  }
}

}  // namespace

Causes::Causes(const weir_reader_stays& stays) : stays_(stays), first_(stays.strands + 1) {
  events_.reserve(2 * stays.count + stays.asked);
  for (uint32_t i = 0; i < stays.count; ++i) {
    events_.push_back({stays.begin_ns[i], i, kBegin});
    events_.push_back({stays.until_ns[i], i, kEnd});
  }
  for (uint32_t i = 0; i < stays.asked; ++i) events_.push_back({stays.asked_ns[i], i, kAsked});
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    if (a.at_ns != b.at_ns) return a.at_ns < b.at_ns;
    return a.kind != b.kind ? a.kind < b.kind : a.number < b.number;
  });
  Points points(stays.strands);
  go_through(events_, stays_, Noting(points), nullptr);
  for (size_t strand = 0; strand < points.size(); ++strand)
    first_[strand + 1] = first_[strand] + points[strand].size();
  points_.reserve(first_.back());
  for (auto& its : points) {
    points_.insert(points_.end(), its.begin(), its.end());
    its = std::vector<int64_t>();  // {} would keep the memory
  }
}

void Causes::run(const int64_t* const* lengths, weir_reader_caused* at) {
  go_through(events_, stays_, Reading(*this, stays_.strands, lengths), at);
}

}  // namespace weir::reader
