# SPDX-License-Identifier: Apache-2.0
"""A signal handler leaves a write by siglongjmp, at any instruction of a layer: the program neither
crashes nor hangs, and what it writes afterwards is in the file."""

from __future__ import annotations

import pytest

PROGRAM = r"""
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static sigjmp_buf out;
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
    for (;;) pwrite(fd, bytes, i % 3 ? sizeof bytes : 100, (long)(rand() % 500) * sizeof bytes);
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
