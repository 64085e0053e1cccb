// SPDX-License-Identifier: Apache-2.0
// Dirty lists against a plain array of bits.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "drain/format.h"

using namespace weir::drain;

namespace {

// An arena without a file: one block's table entry is all that lists need.
struct Bare {
  std::vector<Block> blocks{std::vector<Block>(2)};
  Header header{};
  Arena arena{};
  Bare() {
    header.blocks = 2;
    arena.header = &header;
    arena.blocks = blocks.data();
    arena.block_bytes = 4096;
    assign(&arena, 0, 0, 0);
  }
};

std::vector<bool> bits(const Arena* arena, uint32_t size) {
  std::vector<bool> all(size);
  Range ranges[kRanges];
  const uint32_t n = dirty(arena, 0, ranges);
  uint32_t before = 0;
  for (uint32_t i = 0; i < n; ++i) {
    EXPECT_LT(ranges[i].lo, ranges[i].hi);
    EXPECT_TRUE(i == 0 || ranges[i].lo > before) << "sorted, and neither touching nor overlapping";
    before = ranges[i].hi;
    for (uint32_t k = ranges[i].lo; k < ranges[i].hi; ++k) all[k] = true;
  }
  return all;
}

}  // namespace

TEST(Lists, any_sequence_of_marks_equals_the_same_on_bits) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint32_t kSize = 300;
  Bare bare;
  std::vector<bool> expected(kSize);
  int refused = 0;
  for (int i = 0; i < 50000; ++i) {
    const uint32_t lo = random() % kSize, hi = lo + random() % (random() % 4 == 0 ? kSize - lo + 1 : std::min(12u, kSize - lo + 1));
    const bool dirties = random() % 3 != 0;
    std::vector<bool> after = expected;
    for (uint32_t k = lo; k < hi; ++k) after[k] = dirties;
    if (dirties ? mark_dirty(&bare.arena, 0, lo, hi) : mark_clean(&bare.arena, 0, lo, hi)) {
      expected = after;
    } else {
      uint32_t runs = 0;
      for (uint32_t k = 0; k < kSize; ++k) runs += after[k] && (k == 0 || !after[k - 1]);
      EXPECT_GT(runs, kRanges) << "refused what fits";
      ++refused;
    }
    ASSERT_EQ(bits(&bare.arena, kSize), expected) << "operation " << i;
  }
  EXPECT_GT(refused, 0) << "the limit was never reached";
}

TEST(Lists, an_announcement_lasts_until_its_piece_is_clean) {
  Bare bare;
  const auto list = [&]() -> const List& { return bare.blocks[0].lists[bare.blocks[0].active & 1]; };
  mark_dirty(&bare.arena, 0, 0, 100);
  begin_append(&bare.arena, 0, 5000);
  EXPECT_EQ(list().announced, packed(0, 100));
  EXPECT_EQ(list().expected, 5000u);
  mark_dirty(&bare.arena, 0, 100, 150);
  EXPECT_EQ(list().announced, packed(0, 100)) << "what came later was not announced";
  mark_clean(&bare.arena, 0, 0, 100);
  EXPECT_EQ(list().announced, 0u);
  Range ranges[kRanges];
  ASSERT_EQ(dirty(&bare.arena, 0, ranges), 1u);
  EXPECT_EQ(ranges[0].lo, 100u);
  EXPECT_EQ(ranges[0].hi, 150u);
}
