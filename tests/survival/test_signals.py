# SPDX-License-Identifier: Apache-2.0
"""Handlers that interrupt a hook and make calls of their own: every call is counted, none twice."""

import pytest
from weir_guest import counts, lost


def handled(trace, op: str) -> int:
    return counts(trace, op, "handled_by_main") + counts(trace, op, "handled_by_other")


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_a_handler_that_makes_calls_interrupts_calls(guest, traced, level):
    outcome = traced([guest("handlers.c"), 60000], level=level).ok()
    trace = outcome.trace
    interruptions, _, by_main, by_other = (int(word) for word in outcome.done.stdout.split())
    assert interruptions >= 300
    assert counts(trace, "pwrite", "main") == by_main
    assert counts(trace, "pwrite", "other") == by_other
    for op in ("lseek", "write", "pread"):
        assert handled(trace, op) == interruptions, op
    assert counts(trace, "open", "opened") == interruptions + 1
    assert counts(trace, "close", "opened") == interruptions + 1
    assert lost(trace) == 0


def test_a_handler_that_jumps_out_of_a_call(guest, traced):
    """A call that was left by siglongjmp never returned: it may be missing, and nothing else."""
    outcome = traced([guest("handlers.c"), 60000, "jump"]).ok()
    trace = outcome.trace
    interruptions, jumps, by_main, by_other = (int(word) for word in outcome.done.stdout.split())
    assert jumps >= 50
    for op in ("lseek", "write", "pread"):
        assert handled(trace, op) == interruptions, op
    kept = counts(trace, "pwrite", "main") + counts(trace, "pwrite", "other")
    assert by_main + by_other - jumps <= kept <= by_main + by_other


SMALL_STACK = """
static volatile sig_atomic_t done;
static void handler(int s) {
  int fd = open("relative", O_RDWR | O_CREAT, 0644);
  MUST(fd >= 0 && write(fd, "x", 1) == 1);
  int directory = open(".", O_RDONLY | O_DIRECTORY);
  int by_directory = openat(directory, "relative", O_RDONLY);
  MUST(by_directory >= 0);
  struct stat st;
  MUST(stat("/etc/hostname", &st) == 0 || errno == ENOENT);
  MUST(chdir("/") == 0);
  MUST(stat("etc", &st) == 0);
  MUST(fsync(0) == 0 || errno != 0);
  int copy = dup(fd);
  MUST(copy >= 0 && close(copy) == 0 && close(by_directory) == 0 && close(directory) == 0 && close(fd) == 0);
  done = 1;
}
int main(int argc, char** argv) {
  // What the kernel needs for its frame, and ROOM more, above a page that must not be touched.
  size_t room = sysconf(_SC_MINSIGSTKSZ) + ROOM, whole = (room + 4095) & ~4095ul;
  char* memory = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
  stack_t stack = {.ss_sp = memory + 4096 + (whole - room), .ss_size = room};
  MUST(sigaltstack(&stack, NULL) == 0);
  struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &act, NULL);
  raise(SIGUSR1);
  MUST(done);
  for (char* p = memory + 4096; p < (char*)stack.ss_sp; ++p) MUST(*p == 0);
  return 0;
}
"""


def test_a_handler_on_a_small_stack(guest, traced, tmp_path):
    """4 KiB beyond the kernel's own frame; libc's calls need few of them, and weir may not need
    many more."""
    outcome = traced([guest(SMALL_STACK, "-DROOM=4096")])
    outcome.ok()
    assert len(outcome.trace.of("write", file="relative")) == 1
    assert len(outcome.trace.of("stat", file="/etc")) == 1
