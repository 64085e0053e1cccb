// SPDX-License-Identifier: Apache-2.0
// Which steps the means, sums and extremes of a stream have, of those since its frame before: all
// of them, unless a server was lost with what it had, or frames were left out.
#pragma once

#include <cstdint>
#include <string>

namespace weir::output {

class Interval {
 public:
  // A frame comes whose interval begins with frame `first` (the one after the last that was due).
  // True: it is another interval than that of the frame before, and whatever was accumulated
  // belongs to that one.
  bool enter(int64_t first);
  // Frame `number` has been accumulated; the one before it was at `previous_s`.
  void add(int64_t number, double previous_s);

  // At the due frame `number`, after add: whether a step is missing_column.
  bool lacks(int64_t number) const { return steps_ < number - first_ + 1; }
  // That were added since it was entered.
  int64_t steps() const { return steps_; }
  // Where the values begin: what a file's bounds of time must say.
  double since_s() const { return since_s_; }
  // "cover 2 of 5 steps, from 180 s on: the values of the steps before were lost with the server
  // that had them".
  std::string in_words(int64_t number) const;

 private:
  int64_t first_ = -1, first_added_ = -1, steps_ = 0;
  double since_s_ = 0;
};

}  // namespace weir::output
