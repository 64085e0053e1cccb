# SPDX-License-Identifier: Apache-2.0
"""Layers on a real distributed file system: GlusterFS of two bricks. Requests are those that the
event layers saw."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from decode import read_trace

pytestmark = pytest.mark.any_mpi

MIB = 1 << 20
HERE = Path(__file__).parent
# Small records written, an older one changed, read back backwards and forwards through another
# opening, cut, appended to.
SMALL = r"""
import os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
for i in range(40_000):
    assert os.write(fd, b"%063d\n" % i) == 64
assert os.stat(path).st_size == os.fstat(fd).st_size == 40_000 * 64
os.pwrite(fd, b"changed\n", 100_000)
os.fsync(fd)
os.close(fd)
fd = os.open(path, os.O_RDONLY)
whole = b"".join(iter(lambda: os.read(fd, 1000), b""))
for at in range(2_000_000, 1_000_000, -1000):
    assert os.pread(fd, 1000, at) == whole[at : at + 1000]
os.close(fd)
fd = os.open(path, os.O_WRONLY | os.O_APPEND)
os.ftruncate(fd, 1_500_001)
for i in range(100):
    os.write(fd, b"more %d\n" % i)
os.close(fd)
"""


def byte_sums(size: int) -> bytes:
    """What share.c writes and expects."""
    return bytes((at * 7 + at // 251 + at // 65537) & 255 for at in range(size))


@pytest.fixture
def layered(preload, tmp_path):
    """``layered(stack)``: the environment whose files on GlusterFS have the stack, traced into
    ``env["WEIR_TRACE_DIR"]``."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"

    def variables(stack: str) -> dict[str, str]:
        trace = tmp_path / f"trace-{stack.split(':')[0]}"
        trace.mkdir()
        rules = (
            f"weir-rules 1\nrule source=test:1 fstype=fuse.glusterfs "
            f"stack=event|{stack}|event|system\n"
        )
        return {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job,
            "WEIR_TRACE_DIR": str(trace), "WEIR_LEVEL": "trace"}

    yield variables
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


@pytest.fixture
def directory(glusterfs):
    made = glusterfs.path / uuid.uuid4().hex[:12]
    made.mkdir()
    yield made
    subprocess.run(["rm", "-rf", made], check=True)


def requests(env: dict[str, str], op: str, position: int) -> list:
    """Data requests that passed the event layer at this position of the stack, of all ranks."""
    ops = (op, f"p{op}", f"{op}v", f"p{op}v")
    return [r for r in read_trace(env["WEIR_TRACE_DIR"]).records if r.layer == f"event{position}"
        and r.op in ops]


def test_small_requests_become_few_and_the_file_is_the_same(directory, layered, execute, tmp_path):
    # 45,000 plain requests there would take a minute
    plain, behind = tmp_path / "plain", directory / "behind"
    execute([sys.executable, "-I", "-c", SMALL, plain]).ok()
    env = layered("bufa:262144:8")
    execute([sys.executable, "-I", "-c", SMALL, behind], env=env).ok()
    assert behind.read_bytes() == plain.read_bytes()

    written, issued = requests(env, "write", 0), requests(env, "write", 2)
    assert len(written) == 40_101
    assert sum(r.size for r in issued) == sum(r.size
        for r in written), "each byte goes to the file once"
    assert len(issued) * 50 < len(written)
    assert len(requests(env, "read", 2)) * 20 < len(requests(env, "read", 0))


def test_ranks_read_a_file_once(directory, layered, mpi):
    size = 4 * MIB + 777
    (directory / "in.dat").write_bytes(byte_sums(size))
    os.utime(directory / "in.dat", (1_000_000_000, 1_000_000_000))
    time.sleep(0.2)  # a file that has just changed is not shared as freely
    # room for the whole file: a rank that falls behind finds each block
    env = layered("global:262144:5")
    mpi.run(4, mpi.cc(HERE / "share.c", name="share"), "read", directory / "in.dat", 10_000,
        env=env).ok()
    assert sum(r.size for r in requests(env, "read", 0)) == 4 * size
    assert sum(r.size for r in requests(env, "read", 2)) == size


def test_pieces_of_ranks_become_whole_blocks(directory, layered, mpi):
    size = 3 * MIB + 501
    # room for the whole file: no block goes before a rank that falls behind has filled it
    env = layered("global:262144:13")
    mpi.run(4, mpi.cc(HERE / "share.c", name="share"), "interleave", directory / "out.dat", 1000,
        size, env=env).ok()
    assert (directory / "out.dat").read_bytes() == byte_sums(size)
    issued = requests(env, "write", 2)
    assert sum(r.size for r in issued) == size
    assert len(issued) * 20 < len(requests(env, "write", 0))
