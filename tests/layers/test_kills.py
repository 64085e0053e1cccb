# SPDX-License-Identifier: Apache-2.0
"""An unmodified program under bufa, killed at random moments: every byte that write() had accepted
is in the file.

WEIR_TEST_KILLS=1000 makes a campaign of it; `pytest -s` shows what was accepted, on disk and lost.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy
import pytest

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "8"))
pytestmark = pytest.mark.timeout(180 + 2 * KILLS)

# Writes records of all sizes, in order or backwards in pieces, and counts in a shared page what
# write() has accepted.
WRITER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned long state;
static unsigned long next(unsigned long below) { state = state * 6364136223846793005ul + 1442695040888963407ul; return (state >> 33) % below; }
int main(int argc, char** argv) {
  state = strtoul(argv[3], 0, 10);
  int page = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (page < 0 || ftruncate(page, 4096) != 0) return 1;
  volatile uint64_t* accepted = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
  int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | (argc > 4 ? O_APPEND : 0), 0600);
  static unsigned char data[70000];
  for (uint64_t at = 0;;) {
    unsigned long n = next(20) == 0 ? 1 + next(sizeof data) : 1 + next(200);
    for (unsigned long i = 0; i < n; ++i) data[i] = (unsigned char)((at + i) * 2654435761u >> 24);
    long done = write(fd, data, n);
    if (done <= 0) return 2;
    at += (uint64_t)done;
    *accepted = at;
    if (at > 400000000) return 3;
  }
}
"""


def expected(count: int) -> bytes:
    return ((numpy.arange(count, dtype=numpy.uint64) * 2654435761 & 0xFFFFFFFF) >> 24).astype(
        numpy.uint8).tobytes()


def accepted_by(page: Path) -> int:
    return struct.unpack("Q", page.read_bytes()[:8])[0] if page.exists() and page.stat(
        ).st_size else 0


def wait_for_a_write(page: Path, process: subprocess.Popen) -> None:
    end = time.monotonic() + 300
    while accepted_by(page) == 0 and process.poll() is None:
        assert time.monotonic() < end, "the program does not write"
        time.sleep(0.0005)


@pytest.mark.parametrize("append", [False, True], ids=["positions", "append"])
@pytest.mark.parametrize("stack", ["bufa:64KiB:4:always=1", "bufa:1MiB:4:always=1"])
def test_no_accepted_byte_is_lost(cc, preload, execute, weir, tmp_path, stack, append):
    seed = random.randrange(2**31)
    print("seed", seed)
    rng = random.Random(seed)
    program, job = cc(WRITER), f"kills-{uuid.uuid4().hex[:12]}"
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "out"\nstack = "{stack}"\n')
    exported = execute(["bash", "-c",
        'eval "$("$0" env --rules "$1" --no-trace)"; printf %s "$WEIR_RULES"',
        Path(sys.executable).parent / "weir", rules]).ok()
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": exported.stdout, "WEIR_JOB": job}
    took = landed = held = 0
    try:
        for number in range(-(-KILLS // 4)):
            out, page = tmp_path / "out", tmp_path / f"page{number}"
            command = [program, out, page, str(rng.randrange(2**31)),
                *(["append"] if append else [])]
            process = subprocess.Popen(command, env=env)
            if number % 2 == 0:  # a busy machine may take longer than that to start a program
                wait_for_a_write(page, process)
            time.sleep(rng.uniform(0.003, 0.04))
            process.kill()
            process.wait()
            accepted = accepted_by(page)
            at_death = out.stat().st_size if out.exists() else 0
            assert weir("drain", "--wait", "--job", job, timeout=60).returncode == 0
            content = out.read_bytes() if out.exists() else b""
            assert len(content) >= accepted, (
                f"kill {number}: {accepted} accepted, {len(content)} on disk"
            )
            assert content[:accepted] == expected(accepted)
            took, landed, held = took + accepted, landed + min(len(content),
                accepted), held + max(0, accepted - at_death)
            page.unlink(missing_ok=True)
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    print(f"{-(-KILLS // 4)} kills: {took} bytes accepted, {landed} on disk, {took - landed} lost; "
          f"{held} were in buffers at the kill")
    assert took > 0

