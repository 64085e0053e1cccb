// SPDX-License-Identifier: Apache-2.0
// weir-testfs: what `weir testfs` does natively. Called by python/weir/testfs alone, which chooses the paths.
//
//   weir-testfs mount STATE FOLDER BACKING [bucket=PATH] [owner=PID] [name=value ...]
//   weir-testfs stats STATE [reset]        prints the counters as JSON, then sets them to zero
//   weir-testfs control STATE name=value ...
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <string_view>

#include "testfs/daemon.h"
#include "testfs/options.h"
#include "testfs/report.h"
#include "testfs/state.h"

namespace {

using namespace weir::testfs;

State* opened(const char* path) {
  State* state = open_state(path);
  if (state == nullptr) fprintf(stderr, "weir-testfs: %s: %s\n", path, strerror(errno));
  return state;
}

int mount(int argc, char** argv) {
  MountArguments arguments;
  arguments.state_path = argv[0];
  arguments.folder = argv[1];
  arguments.backing = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text.starts_with("bucket=")) arguments.bucket_path = text.substr(7);
    else if (text.starts_with("owner=")) arguments.owner = atol(argv[i] + 6);
    else arguments.options.emplace_back(text);
  }
  return mount_in_background(arguments);
}

int stats(int argc, char** argv) {
  State* state = opened(argv[0]);
  if (state == nullptr) return 1;
  const std::string json = stats_json(*state);
  if (argc > 1) reset(*state);
  return fwrite(json.data(), 1, json.size(), stdout) == json.size() && fflush(stdout) == 0 ? 0 : 1;
}

int control(int argc, char** argv) {
  State* state = opened(argv[0]);
  if (state == nullptr) return 1;
  std::string message;
  for (int i = 1; i < argc; ++i) {
    if (set_option(*state, argv[i], When::running, &message)) continue;
    fprintf(stderr, "weir-testfs: %s: %s\n", argv[i], message.c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "mount" && argc >= 5) return mount(argc - 2, argv + 2);
  if (verb == "stats" && argc >= 3) return stats(argc - 2, argv + 2);
  if (verb == "control" && argc >= 3) return control(argc - 2, argv + 2);
  fputs("usage: weir-testfs mount STATE FOLDER BACKING [name=value ...] | stats STATE [reset] | control STATE name=value ...\n", stderr);
  return 2;
}
