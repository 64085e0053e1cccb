// SPDX-License-Identifier: Apache-2.0
#include "reader/names.h"

#include <gtest/gtest.h>

namespace {

using weir::reader::names_a_file;
using weir::reader::Problems;
using weir::reader::Reason;

TEST(Names, files_are_absolute_and_not_made_up_by_the_kernel) {
  for (const char* name : {"/scratch/a", "/", "/devices/a", "/dev/shm/a", "//scratch/a", "/system/x", "/process/x"}) {
    EXPECT_TRUE(names_a_file(name)) << name;
  }
  for (const char* name : {"", "a", "pipe:[7]", "socket:[7]", "/dev/null", "/dev/pts/0", "/dev", "//dev/null", "anon_inode:x", "/proc/self/io",
                           "/sys/bus/pci", "/sys"}) {
    EXPECT_FALSE(names_a_file(name)) << name;
  }
}

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
  for (uint64_t at = 0; at < 100'000; ++at) problems.add(at % 2 == 0 ? Reason::record_op : Reason::no_chunk, at * 4096);
  ASSERT_EQ(problems.list().size(), Problems::kMost);
  EXPECT_EQ(problems.list().back().reason, uint32_t(Reason::more_problems));
  EXPECT_EQ(problems.list().back().count, 100'000 - (Problems::kMost - 1));
}

}  // namespace
