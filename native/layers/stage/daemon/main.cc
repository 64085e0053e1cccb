// SPDX-License-Identifier: Apache-2.0
// weir-stage --daemon TIER   publishes files in the background until none is due; started by
//                            programs under rules with the layer stage
// weir-stage --drain TIER    publishes all that may go, and those that wait for the end of the step
// weir-stage --drain-unfinished TIER  the same, and files whose writers were killed
// weir-stage --status TIER   the files on it
// weir-stage --settle TIER   the same, when those that are due are at their place or could not go
//                            there, after a second at most
// All but the first print a line for each file, which ends with a zero: state, drain, bytes, the
// reason why it is not at its place (0: it is; drain.h), number of the run, path. Status 1: files
// are newer than at their place.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/stage/daemon/drain.h"

namespace weir::stage {
namespace {

void print(const Staged& file, Result result) {
  printf("%c %c %llu %d %llu %s", static_cast<char>(file.state), static_cast<char>(file.mode),
         static_cast<unsigned long long>(file.bytes), static_cast<int>(-result),
         static_cast<unsigned long long>(file.run), file.key.c_str());
  putchar(0);
  fflush(stdout);  // whoever reads it shows how far the work is
}

bool any_due(const Tier& tier) {
  for (const Staged& file : files_on(tier)) {
    if (file.state != State::kCopy && file.mode == Mode::kAsync && file.closed) return true;
  }
  return false;
}

// Whoever stages a file looks for a daemon after the file has its mark: so the files are looked at
// once more when there is none.
int serve(const Tier& tier) {
  umask(0);  // files are made with the permissions that the program gave them
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  for (int rounds = 0; rounds == 0 || any_due(tier); ++rounds) {
    int lock = -1;
    if (!become_daemon(tier, &lock)) return 0;
    {
      Drain drain(tier);
      drain.serve(std::chrono::seconds(rounds == 0 ? 5 : 1));
    }
    base::close_fd(lock);
    if (rounds == 3) return 0;  // what cannot be published is left to `weir stage recover`
  }
  return 0;
}

}  // namespace
}  // namespace weir::stage

int main(int count, char** arguments) {
  using namespace weir::stage;
  if (count != 3) {
    fprintf(stderr, "usage: weir-stage --daemon|--drain|--drain-unfinished|--status|--settle "
                    "TIER\n");
    return 2;
  }
  static Tier tier;
  if (const char* const why = attach(tier, weir::base::text(arguments[2]), false)) {
    fprintf(stderr, "weir-stage: %s: %s\n", arguments[2], why);
    return 3;
  }
  if (strcmp(arguments[1], "--daemon") == 0) return serve(tier);
  const bool unfinished = strcmp(arguments[1], "--drain-unfinished") == 0;
  if (unfinished || strcmp(arguments[1], "--drain") == 0)
    return publish_all(tier, unfinished, print) != 0 ? 1 : 0;
  if (strcmp(arguments[1], "--settle") == 0) settle_all(tier, std::chrono::seconds(1));
  for (const Staged& file : files_on(tier)) print(file, why_newer(tier, file));
  return 0;
}
