# SPDX-License-Identifier: Apache-2.0
"""vfork, posix_spawn, popen, system, exec: every program is seen, and the parent of a vfork stays
what it was."""

import sys

from weir_guest import counts

VFORK = """
int main(void) {
  int kept = open_new("kept"), passed = open_new("passed");
  MUST(write(kept, "12345", 5) == 5);
  for (int i = 0; i < 20; ++i) {
    pid_t child = vfork();
    MUST(child >= 0);
    if (child == 0) {
      close(kept);                      // in the child alone
      dup2(passed, 1);
      if (i % 2 == 0) execl("/no/such/program", "x", (char*)NULL);
      else execl("/bin/sh", "sh", "-c", "echo y", (char*)NULL);
      _exit(5);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == (i % 2 == 0 ? 5 : 0));
    MUST(write(kept, "x", 1) == 1);
  }
  return 0;
}
"""


def test_vfork_leaves_what_is_known_of_the_parents_descriptors(guest, traced):
    trace = traced([guest(VFORK)]).ok().trace
    writes = trace.of("write", file="kept")
    assert [r.offset for r in writes] == [0, *range(5, 25)]
    assert len({r.process for r in writes}) == 1
    assert len(trace.of("write", file="passed")) == 10  # by the shells
    assert len(trace.processes) == 11


NESTED_VFORK = """
int main(void) {
  int fd = open_new("file");
  pid_t child = vfork();
  if (child == 0) {
    pid_t below = vfork();
    if (below == 0) {
      close(fd);
      _exit(3);
    }
    int status;
    waitpid(below, &status, 0);
    close(fd);  // still a vfork child
    _exit(WEXITSTATUS(status));
  }
  int status;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  MUST(write(fd, "x", 1) == 1);
  return 0;
}
"""


def test_vfork_in_a_vfork_child(guest, traced):
    trace = traced([guest(NESTED_VFORK)]).ok().trace
    assert [(r.offset, r.size) for r in trace.of("write", file="file")] == [(0, 1)]


VFORK_AND_SIGNALS = """
static volatile sig_atomic_t handled;
static void handler(int s) {
  pid_t child = vfork();
  if (child == 0) _exit(0);
  int status;
  MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  ++handled;
}
int main(void) {
  struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &act, NULL);
  struct itimerval never = {{0, 0}, {0, 0}};
  int fd = open_new("file");
  for (int i = 0; i < 3000 || handled < 200; ++i) {
    // One signal a turn: on a busy machine one that repeats may be there again before the handler's child has run, for ever.
    struct itimerval soon = {{0, 0}, {0, 1 + i % 300}};
    setitimer(ITIMER_REAL, &soon, NULL);
    pid_t child = vfork();
    if (child == 0) _exit(4);
    int status;
    MUST(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
    MUST(pwrite(fd, "x", 1, i) == 1);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  return 0;
}
"""


def test_vfork_in_a_handler_that_interrupts_vfork(guest, traced):
    traced([guest(VFORK_AND_SIGNALS)]).ok()


SPAWN = """
extern char** environ;
int main(void) {
  int kept = open_new("kept");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "spawned", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addclose(&actions, kept);
  char* argv[] = {"sh", "-c", "echo by spawn", NULL};
  pid_t child;
  MUST(posix_spawn(&child, "/bin/sh", &actions, NULL, argv, environ) == 0);
  int status;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(system("echo by system > system") == 0);
  FILE* pipe = popen("cat > piped", "w");
  MUST(fputs("by popen\\n", pipe) >= 0 && pclose(pipe) == 0);
  MUST(posix_spawn(&child, "/no/such", NULL, NULL, argv, environ) == ENOENT);
  MUST(write(kept, "x", 1) == 1);
  return 0;
}
"""


def test_spawn_system_and_popen_children_are_seen(guest, traced):
    trace = traced([guest(SPAWN)]).ok().trace
    assert [r.size for r in trace.of("write", file="spawned")] == [9]
    assert [r.size for r in trace.of("write", file="system")] == [10]
    assert [r.size for r in trace.of("write", file="piped")] == [9]
    assert [(r.offset, r.size) for r in trace.of("write", file="kept")] == [(0, 1)]
    commands = [" ".join(p.command) for p in trace.processes.values()]
    assert sum("by spawn" in c for c in commands) == 1
    assert sum("by system" in c for c in commands) == 1


EXEC = """
int main(int argc, char** argv) {
  int fd = open_new(argc > 1 ? "after" : "before");
  for (int i = 0; i < 10; ++i) MUST(write(fd, "x", 1) == 1);
  if (argc > 1) return 0;
  MUST(execl("/no/such/program", "x", (char*)NULL) == -1 && errno == ENOENT);
  MUST(write(fd, "x", 1) == 1);
  execl("/proc/self/exe", "again", "twice", (char*)NULL);
  return 1;
}
"""


def test_exec_without_fork_is_two_programs_of_one_pid(guest, traced):
    trace = traced([guest(EXEC)]).ok().trace
    first, second = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert first.pid == second.pid
    assert (first.end_ticks, second.end_kind) == (0, 1)
    assert second.command == ["again", "twice"]
    assert {r.process for r in trace.of("write", file="before")} == {first.number}
    assert {r.process for r in trace.of("write", file="after")} == {second.number}
    assert (counts(trace, "write", "before"), counts(trace, "write", "after")) == (11, 10)


SUBPROCESS = """
import os, subprocess
with open("kept", "wb", buffering=0) as kept:
    kept.write(b"12345")
    for i in range(5):
        subprocess.run(["sh", "-c", f"echo {i} > out{i}"], check=True, close_fds=True)
        try:
            subprocess.run(["/no/such/program"])
            raise SystemExit("found")
        except FileNotFoundError:
            pass
        kept.write(b"x")
"""


def test_pythons_subprocess(traced):
    trace = traced([sys.executable, "-S", "-c", SUBPROCESS]).ok().trace
    assert [r.offset for r in trace.of("write", file="kept")] == [0, 5, 6, 7, 8, 9]
    for i in range(5):
        assert [r.size for r in trace.of("write", file=f"out{i}")] == [2]
