# SPDX-License-Identifier: Apache-2.0
"""Opening and closing a file costs the same with 4,000 openings of it as with 500: instructions are
counted, not time."""

from __future__ import annotations

import re
import resource
import shutil

import pytest

# Holds openings of one file, here or in another process, and has 50 more opened and closed: among
# FEW of them, then among MANY.
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>
static int how;
static int open_one(const char *path) {
  const int fd = open(path, how);
  if (fd < 0) { perror(path); exit(1); }
  return fd;
}
static void hold(const char *path, int number) { for (int i = 0; i < number; ++i) open_one(path); }
static void open_and_close(const char *path) {
  int fds[50];
  for (int i = 0; i < 50; ++i) fds[i] = open_one(path);
  for (int i = 0; i < 50; ++i) close(fds[i]);
}
static void count_turn(const char *path) {
  CALLGRIND_TOGGLE_COLLECT;
  open_and_close(path);
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS;
}
int main(int count, char **arguments) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const char *path = arguments[1];
  const int few = atoi(arguments[3]), many = atoi(arguments[4]), apart = atoi(arguments[5]);
  how = strcmp(arguments[2], "write") == 0 ? O_RDWR : O_RDONLY;
  int ask[2], done[2];
  char byte;
  if (count != 6 || pipe(ask) != 0 || pipe(done) != 0) return 2;
  if (apart && fork() == 0) {
    close(ask[1]);
    close(done[0]);
    for (int held = 0; read(ask[0], &byte, 1) == 1; held = held == 0 ? few : many) {
      hold(path, held == 0 ? few : many - few);
      if (write(done[1], "x", 1) != 1) _exit(3);
    }
    _exit(0);
  }
  for (int round = 0; round < 2; ++round) {
    if (apart && (write(ask[1], "x", 1) != 1 || read(done[0], &byte, 1) != 1)) return 4;
    if (!apart) hold(path, round == 0 ? few : many - few);
    open_and_close(path);
    for (int turn = 0; turn < TURNS; ++turn) count_turn(path);
  }
  close(ask[1]);
  if (apart) wait(NULL);
  return 0;
}
"""
FEW, MANY, TURNS = 500, 4000, 5
STACKS = ["bufa:64KiB:4:always=1", "keep:always=1", "global:64KiB:4:always=1", "cos", "event"]

pytestmark = [
    pytest.mark.skipif(not shutil.which("valgrind"),
        reason="valgrind, which counts the instructions, is not installed"),
    pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < MANY + 1000,
        reason="no more than 5,000 descriptors may be open"),
]


@pytest.fixture
def counted(weir, cc, tmp_path):
    """Instructions of opening and closing 50 times among FEW and among MANY other openings: the
    least of TURNS turns, since one of them may be the one that finishes a block of the trace."""

    def play(stack: str, mode: str, apart: bool) -> tuple[int, int]:
        rules, file = tmp_path / "rules.toml", tmp_path / "a.dat"
        rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "{stack}"\n')
        file.write_bytes(b"x" * 100)
        program = cc(PROGRAM, "-O1", f"-DTURNS={TURNS}", name="many_openings")
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no",
            f"--callgrind-out-file={tmp_path}/out.%p", program, file, mode, FEW, MANY, int(apart)]
        trace = ["--trace", tmp_path / "run"] if stack == "event" else []
        weir("run", "--rules", rules, *trace, "--", *command, timeout=300).ok()
        [first] = tmp_path.glob("out.*.1")
        turns = [read_total(first.with_suffix(f".{turn + 1}")) for turn in range(2 * TURNS)]
        return min(turns[:TURNS]), min(turns[TURNS:])

    return play


def read_total(dump) -> int:
    return int(re.search(r"^summary: (\d+)$", dump.read_text(), re.M).group(1))


@pytest.mark.parametrize(("mode", "apart"), [("read", False), ("write", True)],
    ids=["read-one-process", "write-two-processes"])
@pytest.mark.parametrize("stack", STACKS)
def test_an_opening_costs_the_same_among_many_of_its_file(counted, stack, mode, apart):
    few, many = counted(stack, mode, apart)
    print(f"{stack} {mode} {'apart' if apart else 'here'}: {few // 50} and {many // 50} "
          f"instructions an opening")
    assert many <= 1.5 * few
