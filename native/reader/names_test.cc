// SPDX-License-Identifier: Apache-2.0
#include "reader/names.h"

#include <gtest/gtest.h>

namespace {

using weir::reader::Problems;
using weir::reader::Reason;

TEST(Problems, alike_and_near_is_one) {
  Problems problems;
  for (uint64_t at = 0; at < 320; at += 32) problems.add(Reason::record_op, 1000 + at, 32);
  problems.add(Reason::record_op, 100'000, 32);
  ASSERT_EQ(problems.list().size(), 2u);
  EXPECT_EQ(problems.list()[0].count, 10u);
  EXPECT_EQ(problems.list()[0].offset, 1000u);
}

TEST(Problems, a_hostile_file_cannot_make_the_list_long) {
  Problems problems;
  for (uint64_t at = 0; at < 100'000; ++at)
    problems.add(at % 2 == 0 ? Reason::record_op : Reason::no_chunk, at * 4096);
  ASSERT_EQ(problems.list().size(), Problems::kMost);
  EXPECT_EQ(problems.list().back().reason, uint32_t(Reason::more_problems));
  EXPECT_EQ(problems.list().back().count, 100'000 - (Problems::kMost - 1));
}

}  // namespace
