// SPDX-License-Identifier: Apache-2.0
// A field over several steps: mean, sum, minimum, maximum of each element. Missing values are left
// out; an element that is missing in all steps is missing in the result. Sums are kept in double;
// extremes in the field's own type.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "output/core/number.h"
#include "output/core/types.h"
#include <weir/stream.h>

namespace weir::output {

class Accumulator {
 public:
  Accumulator(weir_operation operation, Type type, std::optional<Number> missing, int64_t elements);

  static int64_t memory_bytes(weir_operation operation, Type type, bool missing, int64_t elements);
  // The type of what result gives.
  static Type result_type(weir_operation operation, Type type);

  // One step's values of elements [first, first + count).
  void add(const void* values, int64_t first, int64_t count);
  // After the last add of a step.
  void end_step() { ++steps_; }
  // Elements [first, first + count) in result_type. Sums and means of nothing become `missing_sum`.
  void result(int64_t first, int64_t count, double missing_sum, void* to) const;
  void restart() { steps_ = 0; }
  int64_t steps() const { return steps_; }

  // What it has, for a run that goes on with it: sums, or extremes, by element; and how many values
  // were not missing. Of nothing: no meaning.
  std::span<char> values() {
    if (!sums_.empty())
      return {reinterpret_cast<char*>(sums_.data()), sums_.size() * sizeof(double)};
    return extremes_;
  }
  std::span<char> counts() {
    return {reinterpret_cast<char*>(counts_.data()), counts_.size() * sizeof(uint32_t)};
  }
  // They have been filled with those of so many steps.
  void restore(int64_t steps) { steps_ = steps; }
  static bool counts_values(weir_operation operation, bool missing) {
    return missing && (operation == WEIR_MEAN || operation == WEIR_ACCUMULATE);
  }

 private:
  weir_operation operation_;
  Type type_;
  std::optional<Number> missing_;
  int64_t steps_ = 0;
  std::vector<char> extremes_;
  std::vector<double> sums_;
  std::vector<uint32_t> counts_;
};

}  // namespace weir::output
