// SPDX-License-Identifier: Apache-2.0
#include "reader/causes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

namespace weir::reader {
namespace {

constexpr uint32_t kEnd = 0, kAsked = 1, kBegin = 2;
constexpr uint32_t kNobody = WEIR_READER_NO_ROW;
constexpr unsigned kMostHops = 64;
constexpr size_t kBlock = 1 << 16;  // states: 2 MiB

using State = Causes::State;
using Ask = Causes::Ask;

// Lines are not known yet: notes where they are asked.
class Noting {
 public:
  Noting(uint64_t strands, SpillVector<Ask>& asks) : last_(strands), asks_(asks) {}
  State at(uint32_t strand, int64_t at_ns) {
    auto& last = last_[strand];
    if (!last || *last < at_ns) {
      last = at_ns;
      asks_.push_back({at_ns, strand});
    }
    return {};
  }

 private:
  std::vector<std::optional<int64_t>> last_;  // of each strand
  SpillVector<Ask>& asks_;
};

// Lines are known where they were asked, in the same order.
class Reading {
 public:
  Reading(uint64_t strands, const SpillVector<State>& states, const SpillVector<uint32_t>& places)
      : last_(strands), states_(states), places_(places) {}
  State at(uint32_t strand, int64_t at_ns) {
    auto& last = last_[strand];
    if (!last || last->first < at_ns) last = {at_ns, states_[places_[next_++]]};
    return last->second;
  }

 private:
  std::vector<std::optional<std::pair<int64_t, State>>> last_;  // of each strand
  const SpillVector<State>& states_;
  const SpillVector<uint32_t>& places_;
  size_t next_ = 0;
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
  Following(uint64_t strands, Lines lines) : strands_(strands), lines_(std::move(lines)) {}

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
  SpillVector<Ask> asks;
  go_through(Noting(stays.strands, asks), nullptr);
  if (asks.size() > std::numeric_limits<uint32_t>::max()) throw std::length_error("points");
  put_by_strand(asks);
  put_in_blocks(asks);
}

void Causes::put_by_strand(const SpillVector<Ask>& asks) {
  for (const Ask& one : asks) ++first_[one.strand + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<uint64_t> next = first_;
  points_.resize(asks.size());
  for (const Ask& one : asks) points_[next[one.strand]++] = one.at_ns;
}

void Causes::put_in_blocks(const SpillVector<Ask>& asks) {
  std::vector<uint64_t> next = first_;
  place_of_ask_.resize(asks.size());
  place_of_point_.resize(asks.size());
  std::vector<uint32_t> order;
  for (size_t begin = 0; begin < asks.size(); begin += kBlock) {
    order.resize(std::min(kBlock, asks.size() - begin));
    std::iota(order.begin(), order.end(), uint32_t(begin));
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return asks[a].strand < asks[b].strand;
    });
    for (size_t i = 0; i < order.size(); ++i) {
      place_of_ask_[order[i]] = uint32_t(begin + i);
      place_of_point_[next[asks[order[i]].strand]++] = uint32_t(begin + i);
    }
  }
}

template <class Lines>
void Causes::go_through(Lines lines, weir_reader_caused* at) const {
  Following<Lines> following(stays_.strands, std::move(lines));
  for (const Event& event : events_) {
    if (event.kind == kAsked) {
      const auto found = following.at(stays_.asked_strand[event.number], event.at_ns);
      if (at != nullptr) at[event.number] = found;
      continue;
    }
    const uint32_t strand = stays_.strand[event.number];
    if (event.kind == kBegin) following.begin(strand, stays_.awaited[event.number], event.at_ns);
    else following.end(strand, event.at_ns);
  }
}

void Causes::give(uint64_t low, uint64_t high, const int64_t* const lengths[4]) {
  states_.resize(points_.size());
  const uint64_t begin = first_[low], count = first_[high] - begin;
  for (uint64_t i = 0; i < count; ++i) {
    states_[place_of_point_[begin + i]] = {lengths[0][i], lengths[1][i], lengths[2][i],
                                           lengths[3][i]};
  }
}

void Causes::run(weir_reader_caused* at) {
  states_.resize(points_.size());
  go_through(Reading(stays_.strands, states_, place_of_ask_), at);
}

}  // namespace weir::reader
