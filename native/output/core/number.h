// SPDX-License-Identifier: Apache-2.0
// A number that is exact both as a float64 and as a 64-bit integer, whichever it was given as.
#pragma once

#include <cstdint>
#include <type_traits>

namespace weir::output {

struct Number {
  double real = 0;
  int64_t whole = 0;     // of a number without fraction within the range; else 0
  bool is_whole = true;  // `whole` is the number

  Number() = default;
  Number(double value) : real(value) {  // NOLINT: a number is what it is
    constexpr double kEnd = 9223372036854775808.0;
    is_whole =
        value >= -kEnd && value < kEnd && static_cast<double>(static_cast<int64_t>(value)) == value;
    if (is_whole) whole = static_cast<int64_t>(value);
  }
  static Number exactly(int64_t value) {
    Number number;
    number.real = static_cast<double>(value);
    number.whole = value;
    return number;
  }

  friend bool operator==(const Number& a, const Number& b) {
    return a.is_whole == b.is_whole && (a.is_whole ? a.whole == b.whole : a.real == b.real);
  }

  template <typename T>
  T as() const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(whole);
    else return static_cast<T>(real);
  }
};

}  // namespace weir::output
