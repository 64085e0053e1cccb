// SPDX-License-Identifier: Apache-2.0
#include "output/engine/alive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

namespace weir::output {

bool is_gone(World& world, int rank) {
  if (world.sites()[static_cast<size_t>(rank)].node != world.sites()[static_cast<size_t>(world.rank())].node) return false;
  const int pid = world.sites()[static_cast<size_t>(rank)].pid;
  if (kill(pid, 0) != 0) return errno == ESRCH;
  const int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  // "pid (name) state": the name may have parentheses of its own.
  const char* end = strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

}  // namespace weir::output
