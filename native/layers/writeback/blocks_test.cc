// SPDX-License-Identifier: Apache-2.0
// Dirty lists against a plain array of bits.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "layers/writeback/format.h"

using namespace weir::writeback;

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
  Range range{0, 0};
  for (uint32_t before = 0; next_dirty(arena, 0, range.hi, &range); before = range.hi) {
    EXPECT_LT(range.lo, range.hi);
    EXPECT_TRUE(before == 0 || range.lo > before) << "sorted, and neither touching nor overlapping";
    for (uint32_t k = range.lo; k < range.hi; ++k) all[k] = true;
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
    const uint32_t lo = random() % kSize,
                   hi = lo + random() % (random() % 4 == 0 ? kSize - lo + 1
                                                           : std::min(12u, kSize - lo + 1));
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

TEST(Lists, with_a_map_no_mark_is_refused_and_a_clean_block_has_a_list_again) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint32_t kSize = 4096;
  Bare bare;
  std::vector<uint64_t> maps(2 * kSize / 64);
  bare.arena.maps = maps.data();
  bare.blocks[0].map_backed = 1;
  std::vector<bool> expected(kSize);
  int mapped = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t lo = random() % kSize,
                   hi = lo + random() % std::min(random() % 50 == 0 ? kSize : 150u, kSize - lo + 1);
    const bool dirties = random() % 3 != 0;
    for (uint32_t k = lo; k < hi; ++k) expected[k] = dirties;
    ASSERT_TRUE(dirties ? mark_dirty(&bare.arena, 0, lo, hi) : mark_clean(&bare.arena, 0, lo, hi));
    if (i % 16 == 0) {
      ASSERT_EQ(bits(&bare.arena, kSize), expected) << "operation " << i;
    }
    const uint32_t from = random() % kSize;
    uint32_t clean = from;
    while (clean < kSize && expected[clean]) ++clean;
    ASSERT_EQ(first_clean(&bare.arena, 0, from), clean);
    mapped += is_mapped(&bare.arena, 0);
    if (i % 1000 != 999) continue;
    ASSERT_TRUE(mark_clean(&bare.arena, 0));
    expected.assign(kSize, false);
    EXPECT_FALSE(is_dirty(&bare.arena, 0));
    EXPECT_FALSE(is_mapped(&bare.arena, 0));
  }
  EXPECT_GT(mapped, 1000);
}

TEST(Lists, an_announcement_lasts_until_its_piece_is_clean) {
  Bare bare;
  const auto list = [&]() -> const List& {
    return bare.blocks[0].lists[bare.blocks[0].active & 1];
  };
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
