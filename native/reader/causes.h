// SPDX-License-Identifier: Apache-2.0
// What ranks that were waited for did meanwhile, followed over as many ranks as it takes. Who waits
// for whom, from when until when, is what a replay found (replay.h).
#pragma once

#include <span>
#include <vector>

#include "reader/spill.h"
#include "reader/weir_reader.h"

namespace weir::reader {

// Waits of strands as they go on. Timestamps of a strand rise, so its line (line.h) is read once:
// first all is gone through to find at which timestamps lines are asked, and then with the answers.
//
// Answers come strand by strand and are asked in the order of time, which goes from strand to
// strand. They lie in blocks of those that are asked one after the other, by strand within each: a
// block fits into the cache, and no more than one has to be in memory.
class Causes {
 public:
  explicit Causes(const weir_reader_stays& stays);

  // Of all strands, one after the other; where those of each begin, and how many there are.
  std::span<const int64_t> points() const { return points_; }
  std::span<const uint64_t> first() const { return first_; }

  // See weir_reader_causes_give().
  void give(uint64_t low, uint64_t high, const int64_t* const lengths[4]);

  // See weir_reader_causes_run().
  void run(weir_reader_caused* at);

  // Of a strand up to a timestamp.
  struct State {
    int64_t io_ns = 0, calls_ns = 0, all_io_ns = 0, all_calls_ns = 0;
  };
  // When a line is needed.
  struct Ask {
    int64_t at_ns;
    uint32_t strand;
  };

 private:
  struct Event {
    int64_t at_ns;
    uint32_t number, kind;  // of a stay, its end before begins; or of what is asked
  };

  template <class Lines>
  void go_through(Lines lines, weir_reader_caused* at) const;
  void put_by_strand(const SpillVector<Ask>& asks);
  void put_in_blocks(const SpillVector<Ask>& asks);

  SpillVector<Event> events_;
  weir_reader_stays stays_;
  SpillVector<int64_t> points_;  // strand by strand
  std::vector<uint64_t> first_;  // of each strand, and behind the last one
  // In states_, of what is asked in the order of time, and of points_.
  SpillVector<uint32_t> place_of_ask_, place_of_point_;
  SpillVector<State> states_;
};

}  // namespace weir::reader
