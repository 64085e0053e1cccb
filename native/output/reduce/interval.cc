// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/interval.h"

#include <stdio.h>

namespace weir::output {

bool Interval::enter(int64_t first) {
  if (first == first_) return false;
  *this = {};
  first_ = first;
  return true;
}

void Interval::add(int64_t number, double previous_s) {
  if (steps_++ > 0) return;
  first_added_ = number;
  since_s_ = previous_s;
}

std::string Interval::in_words(int64_t number) const {
  const int64_t all = number - first_ + 1, lost = first_added_ - first_,
                left_out = all - lost - steps_;
  char from[64] = "";
  if (lost > 0) snprintf(from, sizeof from, ", from %.15g s on", since_s_);
  std::string text =
      "cover " + std::to_string(steps_) + " of " + std::to_string(all) + " steps" + from + ": ";
  if (lost > 0) text += "the values of the steps before were lost with the server that had them";
  if (left_out > 0)
    text += (lost > 0 ? "; " : "") + std::to_string(left_out) +
            (left_out == 1 ? " frame was" : " frames were") + " left out";
  return text;
}

}  // namespace weir::output
