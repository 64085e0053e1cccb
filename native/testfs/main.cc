// SPDX-License-Identifier: Apache-2.0
// weir-testfs: the process that serves a mount. Called by python/weir/testfs alone, which chooses
// the paths.
//
//   weir-testfs STATE DIRECTORY BACKING [bucket=PATH] [owner=PID] [name=value ...]
#include <stdio.h>
#include <stdlib.h>

#include <string_view>

#include "testfs/daemon.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    fputs("usage: weir-testfs STATE DIRECTORY BACKING [bucket=PATH] [owner=PID] [name=value ...]\n",
          stderr);
    return 2;
  }
  weir::testfs::MountArguments arguments;
  arguments.state_path = argv[1];
  arguments.directory = argv[2];
  arguments.backing = argv[3];
  for (int i = 4; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text.starts_with("bucket=")) arguments.bucket_path = text.substr(7);
    else if (text.starts_with("owner=")) arguments.owner = atol(argv[i] + 6);
    else arguments.options.emplace_back(text);
  }
  return weir::testfs::mount_in_background(arguments);
}
