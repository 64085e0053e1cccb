// SPDX-License-Identifier: Apache-2.0
// One mount from beginning to end: `weir-testfs mount`.
#pragma once

#include <string>
#include <vector>

namespace weir::testfs {

struct MountArguments {
  std::string state_path;
  std::string directory;   // absolute
  std::string backing;  // absolute
  std::string bucket_path;
  long owner = 0;  // the mount ends with this process; 0: with none
  std::vector<std::string> options;
};

// Mounts and returns when the mount is there and a process of its own serves it: 0, or 1 after a
// message.
int mount_in_background(const MountArguments& arguments);

}  // namespace weir::testfs
