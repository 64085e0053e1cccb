// SPDX-License-Identifier: Apache-2.0
#include "output/writer/distribute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace weir::output::writer {
namespace {

std::vector<int64_t> loads(const std::vector<int64_t>& weights, int collectors) {
  std::vector<int64_t> sums(static_cast<size_t>(collectors));
  const std::vector<int> owners = distribute(weights, collectors);
  for (size_t i = 0; i < weights.size(); ++i) sums[static_cast<size_t>(owners[i])] += weights[i];
  return sums;
}

TEST(Distribute, heaviest_variables_go_to_different_collectors) {
  EXPECT_EQ(distribute({1, 47, 1, 47}, 2), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(distribute({5}, 3), std::vector<int>{0});
  EXPECT_TRUE(distribute({}, 3).empty());
}

TEST(Distribute, a_thousand_unequal_variables_leave_less_than_the_lightest_between_collectors) {
  std::vector<int64_t> weights(1000);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = 1 + static_cast<int64_t>((i * 2654435761u) % 97);
  for (const int collectors : {1, 3, 15, 31}) {
    const auto sums = loads(weights, collectors);
    const auto [least, most] = std::ranges::minmax(sums);
    EXPECT_LE(most - least, 97);
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}),
              std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  }
}

TEST(Distribute, no_collector_has_more_than_four_thirds_of_the_best) {
  // Two collectors could have 6 each.
  const auto sums = loads({3, 3, 2, 2, 2}, 2);
  EXPECT_LE(std::ranges::max(sums), 8);
}

}  // namespace
}  // namespace weir::output::writer
