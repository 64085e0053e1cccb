// SPDX-License-Identifier: Apache-2.0
// The sums themselves: python/weir/report/patterns/test_spread.py.
#include "reader/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace {

using weir::reader::SpreadOfFile;

weir_spread_row row(int32_t name, int32_t rank) {
  return {1, 8, 0, 8, name, 0, rank, 0, 0, 0};
}

TEST(Spread, rows_of_names_apart_and_of_loose_ranks_are_kept) {
  const std::array<uint8_t, 2> apart = {1, 0};
  const std::array<int32_t, 2> loose = {7, 9};
  SpreadOfFile found(apart, loose);
  std::vector<weir_spread_row> rows = {row(0, 3), row(0, 7), row(1, 7), row(1, 4), row(5, 4),
                                       row(-1, 4)};
  found.add(rows);
  std::vector<std::array<int32_t, 3>> kept;
  for (const auto& one : found.kept()) kept.push_back({one.name, one.rank, one.counts});
  const int32_t both = WEIR_SPREAD_RANKS | WEIR_SPREAD_INTERLEAVED;
  EXPECT_EQ(kept, (std::vector<std::array<int32_t, 3>>{
                      {0, 3, both}, {0, 7, both}, {1, 7, WEIR_SPREAD_RANKS}}));
  std::vector<std::array<int64_t, 3>> files;
  for (const auto& one : found.files()) files.push_back({one.name, one.ranks, one.interleaved});
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::array<int64_t, 3>>{{-1, 1, 0}, {1, 1, 2}, {5, 1, 0}}));
}

}  // namespace
