// SPDX-License-Identifier: Apache-2.0
#include "wire/paths.h"

#include <gtest/gtest.h>

namespace weir::wire {
namespace {

TEST(Paths, files_are_absolute_and_not_made_up_by_the_kernel) {
  for (const char* name : {"/scratch/a", "/", "/devices/a", "/dev/shm/a", "//scratch/a", "///dev/shm/a", "/system/x", "/process/x"}) {
    EXPECT_TRUE(names_a_file(name)) << name;
  }
  for (const char* name : {"", "a", "pipe:[7]", "socket:[7]", "/dev/null", "/dev/pts/0", "/dev", "//dev/null", "///dev", "anon_inode:x",
                           "/proc/self/io", "/sys/bus/pci", "/sys"}) {
    EXPECT_FALSE(names_a_file(name)) << name;
  }
}

}  // namespace
}  // namespace weir::wire
