// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/information.h"

#include <algorithm>
#include <cmath>

namespace weir::output {
namespace {

constexpr int64_t kBlock = 4096;  // of words that stay in the nearest cache while bits are counted

double plogp(double p) { return p > 0 ? p * std::log2(p) : 0; }

// Of two bits that are 1 in `first` and `second` of `pairs`, and both in `both`.
double mutual_information(double pairs, double first, double second, double both) {
  const double p11 = both / pairs, p10 = (first - both) / pairs, p01 = (second - both) / pairs,
               p00 = (pairs - first - second + both) / pairs, p1 = first / pairs,
               q1 = second / pairs;
  const double joint = -plogp(p11) - plogp(p10) - plogp(p01) - plogp(p00);
  return -plogp(p1) - plogp(1 - p1) - plogp(q1) - plogp(1 - q1) - joint;
}

// What a coin seems to say after so many throws (Kloewer et al. 2021, methods): its frequency of
// heads lies within p of 1/2 with a probability of 99 %.
double chance(double pairs) {
  constexpr double kQuantile = 2.5758293035489004;  // of the normal distribution, for 99 %
  const double p = std::min(1.0, 0.5 + kQuantile / (2 * std::sqrt(pairs)));
  return 1 + plogp(p) + plogp(1 - p);
}

}  // namespace

template <typename Word>
void BitInformation::add_all(const Word* words, int64_t count) {
  for (int64_t at = 0; at + 1 < count; at += kBlock) {
    const int64_t n = std::min(kBlock, count - 1 - at);
    const Word* a = words + at;
    for (size_t bit = 0; bit < both_.size(); bit++) {
      Word ones = 0, both = 0;
      for (int64_t i = 0; i < n; i++) {
        ones += a[i] >> bit & 1;
        both += (a[i] & a[i + 1]) >> bit & 1;
      }
      first_[bit] += static_cast<int64_t>(ones);
      second_[bit] += static_cast<int64_t>(ones) - static_cast<int64_t>(a[0] >> bit & 1) +
                      static_cast<int64_t>(a[n] >> bit & 1);
      both_[bit] += static_cast<int64_t>(both);
    }
    pairs_ += n;
  }
}

void BitInformation::add(const uint32_t* words, int64_t count) { add_all(words, count); }
void BitInformation::add(const uint64_t* words, int64_t count) { add_all(words, count); }

std::vector<double> BitInformation::information() const {
  std::vector<double> result(both_.size(), 0);
  if (pairs_ == 0) return result;
  const auto pairs = static_cast<double>(pairs_);
  for (size_t bit = 0; bit < both_.size(); bit++) {
    const double m =
        mutual_information(pairs, static_cast<double>(first_[bit]),
                           static_cast<double>(second_[bit]), static_cast<double>(both_[bit]));
    result[both_.size() - 1 - bit] = m > chance(pairs) ? m : 0;
  }
  return result;
}

int bits_to_keep(const std::vector<double>& information, double share) {
  double all = 0, sum = 0;
  for (double one : information) all += one;
  if (all <= 0) return 0;
  for (size_t bit = 0; bit < information.size(); bit++) {
    sum += information[bit];
    if (sum >= share * all) return static_cast<int>(bit) + 1;
  }
  return static_cast<int>(information.size());
}

}  // namespace weir::output
