# SPDX-License-Identifier: Apache-2.0
"""bufa over another layer that holds bytes: a seeded program that reads and writes runs of small
pieces finds what it wrote, and so does the file."""

from __future__ import annotations

import os
import subprocess
import uuid

import pytest

PROGRAM = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { kBytes = 1 << 20 };
static char model[kBytes], piece[2048];
int main(int argc, char** argv) {
  int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
  srand(atoi(argv[1]));
  for (long i = 0; i < kBytes; i++) model[i] = (char)rand();
  if (pwrite(fd, model, kBytes, 0) != kBytes) return 2;
  for (int n = 0; n < 1000; n++) {
    long at = rand() % (kBytes - sizeof piece), bytes = 100 + rand() % 1500;
    int writes = rand() % 2;
    for (int left = 1 + rand() % 40; left > 0 && at + bytes < kBytes; left--, at += bytes) {
      if (writes) {
        for (long i = 0; i < bytes; i++) model[at + i] = piece[i] = (char)rand();
        if (pwrite(fd, piece, bytes, at) != bytes) return 3;
      } else {
        if (pread(fd, piece, bytes, at) != bytes) return 4;
        if (memcmp(piece, model + at, bytes) != 0) return 5;
      }
    }
  }
  if (close(fd) != 0 || (fd = open("data", O_RDONLY)) < 0) return 6;
  static char found[kBytes];
  return read(fd, found, kBytes) == kBytes && memcmp(found, model, kBytes) == 0 ? 0 : 7;
}
"""


@pytest.fixture
def job():
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{name}"], check=True)


@pytest.mark.parametrize("lower", ["bufa:8192:2:always=1", "global:8192:4:always=1"])
@pytest.mark.parametrize("buffers", [2, 64])
def test_a_layer_below_bufa_gives_back_what_was_written(preload, execute, cc, tmp_path, job,
        buffers, lower):
    program = cc(PROGRAM, "-w", name="stacked")
    rules = (
        f"weir-rules 1\nrule source=test:1 name=data "
        f"stack=bufa:4096:{buffers}:always=1|{lower}|system\n"
    )
    for seed in range(2):
        env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
        done = execute([program, str(seed)], cwd=tmp_path, env=env, timeout=20)
        assert done.returncode == 0, (seed, done.stderr)
