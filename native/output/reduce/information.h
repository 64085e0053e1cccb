// SPDX-License-Identifier: Apache-2.0
// The real information in each bit of values on a grid (Kloewer, Razinger, Dominguez, Dueben and
// Palmer 2021, doi:10.1038/s43588-021-00156-2): the mutual information of the same bit of
// neighbours. A bit of noise says nothing about its neighbour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weir::output {

class BitInformation {
 public:
  explicit BitInformation(int bits)
      : first_(static_cast<size_t>(bits)), second_(first_), both_(first_) {}

  // Values as unsigned numbers: each is the neighbour of the one before.
  void add(const uint32_t* words, int64_t count);
  void add(const uint64_t* words, int64_t count);
  int64_t pairs() const { return pairs_; }
  // In bits, by bit, the most significant first. What independent coins, as many as there are bits,
  // would give with a probability of 99 % is 0; so is all of it where even the most of it is no
  // more than coins may give.
  std::vector<double> information() const;

 private:
  template <typename Word>
  void add_all(const Word* words, int64_t count);

  int64_t pairs_ = 0;
  std::vector<int64_t> first_, second_, both_;  // pairs with a 1 there; the least significant first
};

// The least number of leading bits with this share of all information. 0: there is none, as in a
// field that is the same everywhere, or is noise.
int bits_to_keep(const std::vector<double>& information, double share);

// Runs of values that follow each other in rows of `row`: every pair of neighbours, or where these
// are more than 65,536, runs of up to 2,048 pairs that are evenly spread. use(first, count)
template <typename Use>
void each_run(int64_t count, int64_t row, Use use) {
  constexpr int64_t kMostPairs = 65536, kRunPairs = 2048;
  if (row < 2 || count < row) return;
  const int64_t rows = count / row, in_row = (row - 1 + kRunPairs - 1) / kRunPairs,
                run_pairs = (row - 1 + in_row - 1) / in_row;
  int64_t stride = (rows * (row - 1) + kMostPairs - 1) / kMostPairs;
  while (std::gcd(stride, in_row) > 1) stride++;  // all parts of rows have their turn
  for (int64_t run = 0; run < rows * in_row; run += stride) {
    const int64_t from = run % in_row * run_pairs;
    const int64_t pairs = row - 1 - from < run_pairs ? row - 1 - from : run_pairs;
    use(run / in_row * row + from, pairs + 1);
  }
}

}  // namespace weir::output
