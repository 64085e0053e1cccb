# SPDX-License-Identifier: Apache-2.0
"""Layer forward: what reaches the file system from a node's ranks, counted by it, beside plain,
gather and global."""

from __future__ import annotations

import os
import subprocess
import time
import uuid

import numpy
import pytest
from weir_stage import wait_until

pytestmark = pytest.mark.any_mpi

MIB = 1 << 20
RANKS = 8
STACKS = {"plain": None, "gather": "gather:262144:16:wait_ms=5000",
    "global": "global:262144:2:wait_ms=5000", "forward": "forward:262144:16:wait_ms=5000"}

# Each rank: opens the shared file, writes its pieces of it (one in RANKS, or one after another in a
# part of its own), closes it, reads all of it by small requests.
PROGRAM = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static unsigned char byte_at(long at) { return (unsigned char)(at * 7 + at / 251 + at / 65537); }
int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long piece = atol(argv[3]), all = atol(argv[4]), part = all / ranks;
  unsigned char data[65536];
  if (strchr(argv[1], 'w')) {
    const int apart = strchr(argv[1], 'a') != NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    const int fd = open(argv[2], O_WRONLY | O_CREAT, 0644);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < part / piece; ++i) {
      const long at = apart ? rank * part + i * piece : (i * ranks + rank) * piece;
      for (long k = 0; k < piece; ++k) data[k] = byte_at(at + k);
      if (pwrite(fd, data, piece, at) != piece) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (close(fd) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (strchr(argv[1], 'r')) {
    const int fd = open(argv[2], O_RDONLY);
    for (long at = 0, n; (n = read(fd, data, piece)) > 0; at += n)
      for (long k = 0; k < n; ++k)
        if (data[k] != byte_at(at + k)) MPI_Abort(MPI_COMM_WORLD, 5);
    close(fd);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture
def job():
    """A job of its own, whose directory in shared memory goes with the test."""
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{name}"], check=True)


@pytest.fixture
def counted(mpi, preload, job, testfs):
    """``counted("forward", "wr", 256, 4 * MIB)``: requests for the file as the file system counted
    them, and the file's bytes."""

    program = mpi.cc(PROGRAM, name="forward_pieces")

    def play(stack: str, what: str, piece: int, all_: int, nodes: int = 1):
        fs = testfs("lustre", data_us=0, metadata_us=0)
        if "w" not in what:  # made long ago: one that has just changed is read anew by each open
            (fs.backing / "a.dat").write_bytes(content(all_))
            os.utime(fs.backing / "a.dat", (1_000_000_000, 1_000_000_000))
            time.sleep(0.2)  # its change of status cannot be made older
        env = {"WEIR_JOB": job}
        if STACKS[stack] is not None:
            rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={STACKS[stack]}|system\n"
            env |= {"LD_PRELOAD": str(preload), "WEIR_RULES": rules}
        if nodes > 1:
            env["WEIR_NODE_RANKS"] = str(RANKS // nodes)
        mpi.run(RANKS, program, what, fs.path / "a.dat", piece, all_, env=env).ok()
        # The kernel releases a file some time after its last close.
        wait_until(lambda: released(fs.stats().file("a.dat")))
        return fs.stats().file("a.dat"), (fs.backing / "a.dat").read_bytes()

    return play


def content(bytes_: int) -> bytes:
    at = numpy.arange(bytes_, dtype=numpy.uint32)
    return (at * 7 + at // 251 + at // 65537).astype(numpy.uint8).tobytes()


def opens(seen) -> int:
    return seen.requests.get("open", 0) + seen.requests.get("create", 0)


def released(seen) -> bool:
    return seen.requests.get("release", 0) == opens(seen)


@pytest.mark.parametrize("what", ["w", "wa"], ids=["interleaved", "contiguous"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_small_writes_become_blocks_and_a_node_opens_a_file_once(counted, what, nodes):
    all_, seen = MIB, {}
    for stack in list(STACKS)[nodes - 1 :]:  # plain ranks do not know of nodes
        seen[stack], data = counted(stack, what, 256, all_, nodes)
        assert data == content(all_)
    if nodes == 1:
        assert seen["plain"].writes == all_ // 256 and opens(seen["plain"]) == RANKS
    blocks = all_ // (256 << 10)
    # Pieces of two nodes in turn do not lie together on either: each node writes its own runs.
    least = blocks if what == "wa" or nodes == 1 else all_ // 256 // (RANKS // nodes)
    # On a busy machine each rank may once wait for the process in vain, and write a part itself.
    parts = blocks // 2 + RANKS
    assert least <= seen["forward"].writes <= least + parts
    assert seen["forward"].writes <= seen["gather"].writes + parts
    assert opens(seen["gather"]) == opens(seen["global"]) == RANKS
    assert nodes <= opens(seen["forward"]) <= 2 * nodes


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_node_reads_a_block_once(counted, nodes):
    all_, seen = MIB, {}
    for stack in list(STACKS)[nodes - 1 :]:
        seen[stack], data = counted(stack, "r", 1024, all_, nodes)
        assert data == content(all_)
    blocks = all_ // (256 << 10)
    if nodes == 1: assert seen["plain"].reads >= RANKS * all_ // 1024
    assert seen["gather"].reads >= RANKS * all_ // 1024, "reads are not kept"
    # Each rank may look at the end of the file once.
    assert seen["forward"].bytes_read <= nodes * all_
    assert seen["forward"].reads <= nodes * blocks + RANKS
    assert nodes <= opens(seen["forward"]) <= 2 * nodes < opens(seen["global"]) == RANKS
    assert seen["forward"].requests["release"] == opens(seen["forward"])
