// SPDX-License-Identifier: Apache-2.0
// weir-drain DIRECTORY [RUN]              the daemon of a node's directory; started by the programs
// themselves weir-drain --wait|--recover DIRECTORY [RUN]  until nothing of a dead process is
// unwritten; does it itself when there is no daemon weir-drain --discard DIRECTORY         removes
// what only processes that have ended had accepted, without writing it weir-drain --remove
// DIRECTORY           the job's directory, when the process that started this one has ended and
// nobody uses it weir-drain --status DIRECTORY           one JSON object a line for each arena
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "layers/writeback/daemon/clean.h"
#include "layers/writeback/daemon/errors.h"
#include "layers/writeback/daemon/daemon.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "layers/machinery/node/registry.h"

namespace weir::daemon {
namespace {

void request_end(int) { end_requested = 1; }

void settle_signals() {
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  struct sigaction end{};
  end.sa_handler = request_end;
  sigaction(SIGTERM, &end, nullptr);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Bytes accepted from processes that have ended, in arenas that may still be written out. What
// nobody can write is not waited for.
uint64_t pending(const std::string& directory, bool with_failed) {
  Arenas arenas(directory);
  uint64_t sum = 0;
  for (const std::string& name : arenas.list()) {
    const auto held = arenas.get(name);
    if (held == nullptr) continue;
    if (!with_failed && (held->arena.header->failed != 0 || held->is_orphaned())) continue;
    sum += held->dirty_bytes_of_dead();
  }
  return sum;
}

// Arenas that are not written out, as another could have made them.
void print_refused(const std::string& directory) {
  const Arenas arenas(directory);
  for (const std::string& name : arenas.list()) {
    const std::string why = arenas.refused(name);
    if (!why.empty())
      fprintf(stderr, "weir-drain: %s/%s: refused: %s\n", directory.c_str(), name.c_str(),
              why.c_str());
  }
}

int status(const std::string& directory) {
  Arenas arenas(directory);
  for (const std::string& name : arenas.list()) {
    const auto held = arenas.get(name);
    if (held == nullptr) continue;
    const node::Identity owner = held->participants()[0];
    printf(
        "{\"arena\": \"%s\", \"pid\": %u, \"alive\": %s, \"dirty_bytes\": %llu, \"failed\": %s}\n",
        name.c_str(), owner.pid, node::alive(owner) ? "true" : "false",
        static_cast<unsigned long long>(held->dirty_bytes()),
        held->arena.header->failed != 0 ? "true" : "false");
  }
  return 0;
}

void report_orphaned(const std::string& directory, const std::string& run) {
  Arenas arenas(directory);
  Errors errors(directory, run);
  for (const std::string& name : arenas.list()) {
    const auto held = arenas.get(name);
    if (held != nullptr) note_orphaned(*held, errors);
  }
}

int settle(const std::string& directory, const std::string& run, bool again) {
  report_orphaned(directory, run);
  for (bool tried = false; (again && !tried) || pending(directory, false) != 0; usleep(10000)) {
    Daemon server(directory, run);
    if (!server.begin()) {
      // The daemon that is there does it; what failed before is tried again when it has gone.
      if (again && pending(directory, false) == 0 && pending(directory, true) == 0) return 0;
      continue;
    }
    tried = true;
    server.recover();
    server.serve(std::chrono::milliseconds(0));  // those who have come to it meanwhile
    if (pending(directory, true) != 0) return 1;
  }
  return pending(directory, true) != 0 ? 1 : 0;
}

// One JSON object a line for each file whose bytes are given up. What a living process takes part
// in stays.
void discard(const std::string& directory) {
  Arenas arenas(directory);
  for (const std::string& name : arenas.list()) {
    const auto held = arenas.get(name);
    if (held == nullptr || held->has_living()) continue;
    for (const auto& [path, bytes] : held->dirty_by_file()) {
      printf("{\"path\": %s, \"bytes\": %llu}\n", quoted(path).c_str(),
             static_cast<unsigned long long>(bytes));
    }
    arenas.remove_file(*held);
  }
}

// Whoever was the last has ended a moment later; a process that came meanwhile, or a daemon, keeps
// the directory.
int remove_after(const std::string& directory) {
  for (useconds_t pause_us = 5000; pause_us < 2'000'000; pause_us *= 4) {
    usleep(pause_us);
    if (remove_unused(directory)) return 0;
  }
  return 1;
}

}  // namespace
}  // namespace weir::daemon

int main(int count, char** arguments) {
  using namespace weir::daemon;
  const std::string first = count > 1 ? arguments[1] : "";
  const bool command = first.rfind("--", 0) == 0;
  const int at = command ? 2 : 1;
  if (count <= at) {
    fprintf(stderr, "usage: weir-drain [--wait|--recover|--discard|--status] DIRECTORY [RUN]\n");
    return 2;
  }
  const std::string directory = arguments[at], run = count > at + 1 ? arguments[at + 1] : "";
  weir::node::use_directory(directory.c_str());
  const long opened = weir::node::open_own_directory();
  if (first == "--remove") {
    if (opened >= 0) close(static_cast<int>(opened));
    return opened >= 0 ? remove_after(directory) : 0;
  }
  if (command && opened < 0 && opened != -ENOENT) {
    const char* why = opened == -EPERM ? "it or the directory above it is not of this user alone"
                                       : strerror(static_cast<int>(-opened));
    fprintf(stderr, "weir-drain: %s: refused: %s\n", directory.c_str(), why);
    return 1;
  }
  if (opened >= 0) {
    close(static_cast<int>(opened));
    weir::node::look_on();
  }
  if (command) print_refused(directory);
  if (first == "--status") return status(directory);
  if (first == "--wait" || first == "--recover") {
    const int left = settle(directory, run, first == "--recover");
    if (left == 0) remove_unused(directory);
    return left;
  }
  if (first == "--discard") {
    discard(directory);
    remove_unused(directory);
    return 0;
  }
  if (command) return 2;
  settle_signals();
  Daemon server(directory, run);
  if (!server.begin()) return 0;
  server.serve(std::chrono::seconds(2));
  remove_unused(directory);
  return 0;
}
