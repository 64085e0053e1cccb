// SPDX-License-Identifier: Apache-2.0
// What ranks that were waited for did meanwhile, followed over as many ranks as it takes. Who waits
// for whom, from when until when, is what a replay found (replay.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "reader/spill.h"
#include "reader/weir_reader.h"

namespace weir::reader {

// Waits of strands as they go on. Timestamps of a strand rise, so its line (line.h) is read once:
// first all is gone through to find at which timestamps lines are asked, and then with the answers.
class Causes {
 public:
  explicit Causes(const weir_reader_stays& stays);

  // Of all strands, one after the other; where those of each begin, and how many there are.
  std::span<const int64_t> points() const { return points_; }
  std::span<const uint64_t> first() const { return first_; }

  std::span<const int64_t> points(uint64_t strand) const {
    return std::span(points_).subspan(first_[strand], first_[strand + 1] - first_[strand]);
  }

  // See weir_reader_causes_run().
  void run(const int64_t* const* lengths, weir_reader_caused* at);

 private:
  struct Event {
    int64_t at_ns;
    uint32_t number, kind;  // of a stay, its end before begins; or of what is asked
  };

  SpillVector<Event> events_;
  weir_reader_stays stays_;
  SpillVector<int64_t> points_;  // strand by strand
  std::vector<uint64_t> first_;  // of each strand, and behind the last one
};

}  // namespace weir::reader
