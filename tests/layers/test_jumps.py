# SPDX-License-Identifier: Apache-2.0
"""A signal handler leaves a write by siglongjmp, at any instruction of a layer: the program neither
crashes nor hangs, and what it writes afterwards is in the file."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
from pathlib import Path

import pytest

from weir._native import DRAIN, library_path

PROGRAM = r"""
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf out;
/* rand() has a lock of libc, which a jump out of it would leave locked. */
static unsigned long state = 1;
static long chance(void) { return (state = state * 6364136223846793005ul + 1) >> 40; }
static void leave(int number) { siglongjmp(out, 1); }
int main(void) {
  static char bytes[4096];
  int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0644);
  struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
  sigaction(SIGALRM, &action, 0);
  memset(bytes, 'j', sizeof bytes);
  for (volatile int i = 0; i < 30; ++i) {
    if (sigsetjmp(out, 1)) continue;
    ualarm(1000 + i * 97, 0);
    for (;;) pwrite(fd, bytes, i % 3 ? sizeof bytes : 100, chance() % 500 * (long)sizeof bytes);
  }
  alarm(0);
  if (fork() == 0) _exit(0);
  wait(0);
  for (int i = 0; i < 500; ++i) {
    memset(bytes, 'a' + i % 26, sizeof bytes);
    if (pwrite(fd, bytes, sizeof bytes, (long)i * sizeof bytes) != sizeof bytes) return 1;
  }
  return fsync(fd) != 0 || close(fd) != 0;
}
"""


@pytest.mark.parametrize("stack", ["bufa:always=1", "bufa", "bufa:1:1:always=1", "keep:always=1",
    "gather:1:2:always=1", "global:1:2:always=1"])
def test_a_handler_that_jumps_out_of_writes(weir, cc, tmp_path, stack):
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "data"\nstack = "{stack}"\n')
    program = cc(PROGRAM, "-w", name="jumps")
    done = weir("run", "--rules", "rules.toml", "--", program, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data").read_bytes() == b"".join(bytes([97 + i % 26]) * 4096
        for i in range(500))


AT = (Path(__file__).parents[1] / "programs" / "jumps_at.c").read_text()
one_machine = pytest.mark.skipif(platform.machine() != "x86_64",
    reason="single steps are made with the flags of x86-64")


def jump(weir, cc, tmp_path, stack: str, first: int, stride: int, last: int, how: int,
        job: str) -> str:
    """What the program printed."""
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "data"\nstack = "{stack}"\n')
    program = cc(AT, "-w", name="jumps_at")
    done = weir("run", "--rules", "rules.toml", "--", program, first, stride, last, how,
        cwd=tmp_path, timeout=240, env={**os.environ, "WEIR_JOB": job})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are not on disk" not in done.stderr and "belong to no process" not in done.stderr
    return done.stdout


def left_behind(job: str) -> list[str]:
    """Arenas with dirty bytes of ended processes."""
    directory = Path(f"/dev/shm/weir.{os.geteuid()}.{job}/0")
    if not directory.is_dir():
        return []
    subprocess.run([library_path(DRAIN), "--wait", directory], check=False)
    lines = subprocess.run([library_path(DRAIN), "--status", directory], capture_output=True,
        text=True, check=False).stdout.splitlines()
    return [line for line in lines if json.loads(line)["dirty_bytes"]]


@one_machine
@pytest.mark.parametrize("how", [1, 2, 3])
@pytest.mark.parametrize("stack", ["global:1:2:always=1", "bufa:1:1:always=1"])
def test_a_jump_out_of_single_instructions(weir, cc, tmp_path, stack, how):
    """What was accepted and not returned is neither left in memory nor written over what came
    later."""
    job = f"jumps-{os.getpid()}-{how}"
    first = random.Random(how).randrange(150)
    jump(weir, cc, tmp_path, stack, first, 150, 100_000, how, job)
    assert left_behind(job) == []


@one_machine
@pytest.mark.campaign
@pytest.mark.parametrize("how", [0, 1, 2, 3])
@pytest.mark.parametrize("stack", ["global:1:2:always=1", "gather:1:2:always=1",
    "bufa:1:1:always=1"])
def test_a_jump_out_of_every_instruction(weir, cc, tmp_path, stack, how):
    job = f"jumps-{os.getpid()}-all"
    jump(weir, cc, tmp_path, stack, 1, 5, 100_000, how, job)
    assert left_behind(job) == []
