// SPDX-License-Identifier: Apache-2.0
#include "wire/paths.h"

#include <gtest/gtest.h>

namespace weir::wire {
namespace {

TEST(Paths, files_are_absolute_and_not_made_up_by_the_kernel) {
  for (const char* name : {"/scratch/a", "/", "/devices/a", "/dev/shm/a", "//scratch/a",
                           "///dev/shm/a", "/system/x", "/process/x", "/memfd:a",
                           "/x/memfd:a (deleted)"}) {
    EXPECT_TRUE(names_a_file(name)) << name;
  }
  for (const char* name :
       {"", "a", "pipe:[7]", "socket:[7]", "/dev/null", "/dev/pts/0", "/dev", "//dev/null",
        "///dev", "anon_inode:x", "/memfd:segment (deleted)", "/proc/self/io",
        "/sys/bus/pci", "/sys"}) {
    EXPECT_FALSE(names_a_file(name)) << name;
  }
}

TEST(Paths, segments_of_mpi_libraries_are_no_files) {
  for (const char* name :
       {"/dev/shm/ucx_shm_posix_5549c4a5", "//dev/shm/vader_segment.vm.0.6cbc0001.1",
        "/dev/shm/sm_segment.node.1000.1.0", "/dev/shm/mpich_shar_tmpVM4YN7",
        "/tmp/ompi.vm.0/pid.66/1/0", "/tmp/prterun.node.66.1000/x",
        "/var/spool/pmix_dstor_ds21_66/smseg-1"}) {
    EXPECT_FALSE(names_a_file(name)) << name;
  }
  for (const char* name : {"/scratch/ompi.5/x", "/scratch/ompi-5.0/x", "/scratch/ompi.conf.0",
                           "/scratch/prte.node.x/y", "/scratch/ucx_shm_posix_1", "/dev/shm/out.nc",
                           "/scratch/pmix/x", "/scratch/o/", "/o"}) {
    EXPECT_TRUE(names_a_file(name)) << name;
  }
}

}  // namespace
}  // namespace weir::wire
