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

// How probable it is that one of `bits` independent coins seems to say so much after so many throws
// (Kloewer et al. 2021, methods, for one coin): twice the information in nats, times the throws, is
// a square of a normal variable.
double chance(double information, double pairs, size_t bits) {
  const double one = std::erfc(std::sqrt(std::max(0.0, information) * pairs * std::log(2.0)));
  return one * static_cast<double>(bits);
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
  // Rounding noise to a bit or two loses everything: one field in a million may be taken for more.
  constexpr double kOfBit = 0.01, kOfField = 1e-6;
  std::vector<double> result(both_.size(), 0);
  if (pairs_ == 0) return result;
  const auto pairs = static_cast<double>(pairs_);
  double least = 1;
  for (size_t bit = 0; bit < both_.size(); bit++) {
    const double m =
        mutual_information(pairs, static_cast<double>(first_[bit]),
                           static_cast<double>(second_[bit]), static_cast<double>(both_[bit]));
    const double by_chance = chance(m, pairs, both_.size());
    least = std::min(least, by_chance);
    result[both_.size() - 1 - bit] = by_chance < kOfBit ? m : 0;
  }
  if (least >= kOfField) std::fill(result.begin(), result.end(), 0.0);
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
