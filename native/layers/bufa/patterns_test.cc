// SPDX-License-Identifier: Apache-2.0
#include "layers/bufa/patterns.h"

#include <gtest/gtest.h>

namespace weir::layers::bufa {
namespace {

History fresh() {
  History h{};
  h.clear();
  return h;
}

TEST(Patterns, SecondRequestThatFollowsTheFirstIsForward) {
  History h = fresh();
  EXPECT_EQ(h.add(0, 512).shape, Shape::kNone);
  EXPECT_EQ(h.add(512, 100).shape, Shape::kForward);
}

TEST(Patterns, ThirdRequestDownwardsIsBackward) {
  History h = fresh();
  EXPECT_EQ(h.add(9000, 1000).shape, Shape::kNone);
  EXPECT_EQ(h.add(8000, 1000).shape, Shape::kNone);
  EXPECT_EQ(h.add(7500, 500).shape, Shape::kBackward);
}

TEST(Patterns, FourthRequestAtEqualDistanceIsStrided) {
  for (const int64_t step : {int64_t{1} << 20, -(int64_t{1} << 20), int64_t{65'536}}) {
    History h = fresh();
    const uint64_t first = uint64_t{1} << 30;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(h.add(first + static_cast<uint64_t>(i * step), 1024).shape, Shape::kNone);
    const Found found = h.add(first + static_cast<uint64_t>(3 * step), 1024);
    EXPECT_EQ(found.shape, Shape::kStrided);
    EXPECT_EQ(found.step, step);
  }
}

TEST(Patterns, GapsOfUpToAPageOrARequestAreReadAsAWhole) {
  const auto fourth = [](uint64_t step, uint64_t bytes, bool backward) {
    History h = fresh();
    for (uint64_t i = 0; i < 3; ++i) h.add((backward ? 9 - i : i) * step, bytes);
    return h.add((backward ? 6 : 3) * step, bytes).shape;
  };
  for (const bool backward : {false, true}) {
    const Shape whole = backward ? Shape::kBackward : Shape::kForward;
    EXPECT_EQ(fourth(1024 + 4096, 1024, backward), whole);
    EXPECT_EQ(fourth(1024 + 4097, 1024, backward), Shape::kStrided);
    EXPECT_EQ(fourth(131'072, 65'536, backward), whole);
    EXPECT_EQ(fourth(131'073, 65'536, backward), Shape::kStrided);
  }
}

TEST(Patterns, FourInterleavedStreamsAreDistinguished) {
  History h = fresh();
  const uint64_t begins[] = {0, 5'000'000, 400'000'000, 3'000'000'000};
  for (const uint64_t begin : begins) EXPECT_EQ(h.add(begin, 700).shape, Shape::kNone);
  for (const uint64_t begin : begins)
    EXPECT_EQ(h.add(begin + 700, 700).shape, Shape::kForward) << begin;
}

TEST(Patterns, OtherLengthsAndPlacesAreNoPattern) {
  History h = fresh();
  EXPECT_EQ(h.add(0, 10).shape, Shape::kNone);
  EXPECT_EQ(h.add(1 << 20, 20).shape, Shape::kNone);
  EXPECT_EQ(h.add(2 << 20, 10).shape, Shape::kNone);
  EXPECT_EQ(h.add(3 << 20, 20).shape, Shape::kNone);
  EXPECT_EQ(h.add(777, 10).shape, Shape::kNone);
}

}  // namespace
}  // namespace weir::layers::bufa
