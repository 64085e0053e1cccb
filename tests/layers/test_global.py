# SPDX-License-Identifier: Apache-2.0
"""Layers global and gather: what reaches the file system when ranks share a file, counted by it,
and what the ranks see of each other's bytes."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy
import pytest
from weir_process import clean_environment

pytestmark = pytest.mark.any_mpi

MIB = 1 << 20
HERE = Path(__file__).parent


def content(bytes_: int) -> bytes:
    at = numpy.arange(bytes_, dtype=numpy.uint32)
    return (at * 7 + at // 251 + at // 65537).astype(numpy.uint8).tobytes()


@pytest.fixture
def job():
    """Variables of a job of its own, whose directory in shared memory goes with the test."""
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{name}"], check=True)


@pytest.fixture
def layered(preload, job):
    """``layered("global:65536:4")``: the environment of programs whose files *.dat have this stack.
    """

    def variables(stack: str, **more: str) -> dict[str, str]:
        rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
        return {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job, **more}

    return variables


def old(path: Path, bytes_: int) -> None:
    """A file that was made long ago: one that has just changed may change again without a sign, and
    is not shared as freely."""
    path.write_bytes(content(bytes_))
    os.utime(path, (1_000_000_000, 1_000_000_000))
    time.sleep(0.2)  # its change of status cannot be made older


@pytest.fixture
def share(mpi):
    program = mpi.cc(HERE / "share.c", name="share")
    return lambda ranks, *arguments, env: mpi.run(ranks, program, *arguments, env=env).ok()


EMPTY_IN_TURN = r"""
#include <fcntl.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>
enum { kPiece = 256, kPieces = 200 };
int main(int argc, char** argv) {
  int rank, ranks, fd = -1;
  char piece[kPiece];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int turn = 0; turn < ranks; ++turn) {
    if (turn == rank) fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  memset(piece, 'a' + rank, kPiece);
  for (long i = 0; i < kPieces; ++i) {
    if (pwrite(fd, piece, kPiece, (i * ranks + rank) * kPiece) != kPiece) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (close(fd) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("stack", ["global:65536:4", "gather:65536:4", "forward:65536:8"])
def test_ranks_that_empty_a_file_one_after_the_other_share_its_blocks(mpi, layered, testfs, stack):
    fs = testfs("direct")
    old(fs.backing / "a.dat", MIB)  # of more bytes than are written
    mpi.run(4, mpi.cc(EMPTY_IN_TURN, name="empty_in_turn"), fs.path / "a.dat",
        env=layered(stack)).ok()
    written = b"".join(bytes([97 + i % 4]) * 256 for i in range(800))
    assert (fs.backing / "a.dat").read_bytes() == written
    # 3.1 blocks; without layers 800 requests
    assert fs.stats().file("a.dat").writes <= 8


@pytest.mark.parametrize("stack", ["global:524288:5", "forward:524288:20"])  # the file fits
def test_a_node_reads_each_block_once(share, layered, testfs, stack):
    fs = testfs("direct")
    old(fs.backing / "a.dat", 8 * MIB + 1000)
    share(4, "read", fs.path / "a.dat", 10_000, env=layered(stack))
    seen = fs.stats().file("a.dat")
    assert seen.bytes_read == 8 * MIB + 1000
    # A request for each block, and each rank asks at the end of the file once.
    assert seen.reads <= 17 + 4


@pytest.mark.parametrize("stack", ["global:131072:2", "forward:131072:8"])
def test_ranks_that_keep_together_need_a_small_ring_only(share, layered, testfs, stack):
    """64 blocks, of which 8 fit; the ranks wait for each other after every four."""
    fs = testfs("direct")
    old(fs.backing / "a.dat", 8 * MIB)
    share(4, "read", fs.path / "a.dat", 4096, 128, env=layered(stack))
    seen = fs.stats().file("a.dat")
    assert seen.bytes_read == 8 * MIB
    assert 64 <= seen.reads <= 64 + 4  # each rank asks at the end of the file once


def test_nodes_read_each_block_once_for_the_job(share, layered, testfs):
    fs = testfs("direct")
    old(fs.backing / "a.dat", 8 * MIB)
    share(4, "read", fs.path / "a.dat", 10_000,
        env=layered("global:524288:16", WEIR_NODE_RANKS="1"))
    seen = fs.stats().file("a.dat")
    assert seen.bytes_read == 8 * MIB
    assert seen.reads <= 16 + 4


LOOK_AT_CACHE = """
import glob, os, sys
os.pread(os.open(sys.argv[1], os.O_RDONLY), 1, 0)
[there] = glob.glob(sys.argv[2] + "/shared.*")
open(sys.argv[3] + "/" + os.path.basename(there), "wb").write(open(there, "rb").read())
"""


def leave_caches_of_version_1(job: str, file: Path, env: dict[str, str], nodes: int,
        place: Path) -> None:
    """What ranks of an earlier weir left in the directories of these nodes: the caches had no
    version in their names then."""
    sizes = {"OMPI_COMM_WORLD_SIZE": str(nodes), "OMPI_COMM_WORLD_LOCAL_SIZE": str(nodes),
        "WEIR_NODE_RANKS": "1"}
    for node in range(nodes):
        directory, copies = Path(f"/dev/shm/weir.{os.geteuid()}.{job}/{node}"), place / str(node)
        copies.mkdir()
        run = [sys.executable, "-c", LOOK_AT_CACHE, file, directory, copies]
        subprocess.run(run,
            env=clean_environment({**env, **sizes, "OMPI_COMM_WORLD_RANK": str(node)}), check=True,
            timeout=300)
        [cache] = copies.iterdir()
        before = re.fullmatch(r"shared\.\d+\.cache-\d+-(\d+-\d+)", cache.name)
        assert before, cache.name
        data = bytearray(cache.read_bytes())
        struct.pack_into("I", data, 8, 1)
        # the last process of a job that ends in order removes them
        for each in (directory.parent, directory):
            each.mkdir(mode=0o700, exist_ok=True)
        (directory / f"shared.cache-{before[1]}").write_bytes(data)


def test_what_an_earlier_version_left_is_not_in_the_way(weir, mpi, layered, job, testfs, tmp_path):
    fs = testfs("direct")
    old(fs.backing / "a.dat", 4 * MIB)
    old(fs.backing / "b.dat", 1000)
    leave_caches_of_version_1(job, fs.path / "b.dat", layered("global:65536:64"), 4, tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "global:64KiB:64"\n')
    program = mpi.cc(HERE / "share.c", name="share")
    command = mpi.launch(4, program, "read", fs.path / "a.dat", "4096")
    weir("run", "--rules", rules, "--", *command,
        env={**mpi.env, "WEIR_JOB": job, "WEIR_NODE_RANKS": "1"}, timeout=90).ok()
    assert fs.stats().file("a.dat").bytes_read == 4 * MIB


def test_nodes_with_mounts_of_their_own_share_what_they_read(mpi, layered, testfs):
    first = testfs("direct")
    second = testfs("direct", backing=first.backing)
    old(first.backing / "a.dat", 4 * MIB)
    program = mpi.cc(HERE / "share.c", name="share")
    env = layered("global:524288:16", WEIR_NODE_RANKS="1")
    arguments = [program, "read"]
    command = mpi.launch(2, *arguments, first.path / "a.dat", "4096")
    command += [":", *(["-n", "2"]), *map(str, arguments), str(second.path / "a.dat"), "4096"]
    from weir_process import run

    run(command, env={**mpi.env, **env}, timeout=90).ok()
    both = [m.stats().file("a.dat") for m in (first, second)]
    assert sum(f.bytes_read for f in both) == 4 * MIB
    assert sum(f.reads for f in both) <= 8 + 4


@pytest.mark.parametrize("stack",
    ["global:262144:2:wait_ms=60000", "gather:262144:16:wait_ms=5000",
        "forward:262144:16:wait_ms=5000", "forward:262144:16:ranks=2:wait_ms=5000"])
def test_pieces_of_all_ranks_become_whole_blocks(share, layered, testfs, stack):
    fs = testfs("direct")
    total, piece = 4_000_000, 500
    share(4, "interleave", fs.path / "w.dat", piece, total, env=layered(stack))
    seen = fs.stats().file("w.dat")
    assert (fs.backing / "w.dat").read_bytes() == content(total)
    assert seen.bytes_written == total
    # A request for each of the 16 blocks, though no rank writes more than a quarter of any.
    assert seen.writes <= 2 * 16


@pytest.mark.parametrize("nodes", ["0", "1", "2"])
@pytest.mark.parametrize("stack", ["global:65536:4", "gather:65536:8", "forward:65536:8"])
def test_what_was_written_before_a_barrier_is_read_after_it(share, layered, testfs, stack, nodes):
    fs = testfs("direct")
    env = layered(stack) if nodes == "0" else layered(stack, WEIR_NODE_RANKS=nodes)
    share(4, "in-turn", fs.path / "t.dat", 24, 30_001, env=env)


@pytest.mark.parametrize("stack", ["global:65536:4", "gather:65536:8", "forward:65536:8"])
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_write_that_fails_later_is_reported(share, layered, testfs, stack, error):
    fs = testfs("direct", fail=[f"write:{error}:1:1"])
    done = share(2, "until-error", fs.path / "e.dat", 1000, 400_000, env=layered(stack))
    assert f"error {getattr(__import__('errno'), error)}" in done.stdout
    assert "accepted were not written" in done.stderr


def entries(page: Path, ranks: int) -> list[tuple[int, int, int]]:
    data = page.read_bytes() if page.exists() else b""
    if len(data) < 32 * ranks:
        return [(0, 0, 0)] * ranks
    return [struct.unpack_from("3q", data, 32 * i) for i in range(ranks)]


def accepted_by(page: Path, rank: int) -> int:
    """As entries(page, ...)[rank][1], which many calls of it would make with the time of a rank."""
    try:
        fd = os.open(page, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        return int.from_bytes(os.pread(fd, 8, 32 * rank + 8), "little")
    finally:
        os.close(fd)


@pytest.mark.parametrize("stack", ["global:65536:4", "gather:65536:8", "forward:65536:8"])
def test_ranks_go_on_when_others_are_killed(cc, layered, job, testfs, tmp_path, stack):
    seed = int(os.environ.get("WEIR_TEST_SEED", "0")) or random.randrange(1, 2**31)
    print(f"WEIR_TEST_SEED={seed}")
    chance = random.Random(seed)
    program = cc(HERE / "share_killed.c", name="share_killed")
    fs = testfs("direct")
    for number in range(int(os.environ.get("WEIR_TEST_KILLS", "6"))):
        file, page = fs.path / f"k{number}.dat", tmp_path / f"page{number}"
        ranks, piece, pieces = 4, chance.choice([300, 1000, 5000]), 2000
        env = clean_environment(layered(stack))
        victim, after = chance.randrange(ranks), chance.randrange(1, pieces)
        command = [program, file, page, str(ranks), str(piece), str(pieces), str(victim)]
        running = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        limit = time.monotonic() + 300
        while accepted_by(page, victim) < after and running.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.0005)
        os.kill(entries(page, ranks)[victim][0], 9)
        _, said = running.communicate(timeout=300)
        assert running.returncode == 0, said
        ended = entries(page, ranks)
        assert [e[2] for i, e in enumerate(ended) if i != victim] == [1] * (ranks - 1)
        wait_for_drain(job)
        data = (fs.backing / file.name).read_bytes()
        whole = content(ranks * piece * pieces)
        for rank, (_, accepted, _) in enumerate(ended):
            for i in range(accepted):
                at = (i * ranks + rank) * piece
                assert data[at : at + piece] == whole[at : at
                    + piece], f"piece {i} of rank {rank} of {ended}"


def wait_for_drain(job: str) -> None:
    daemon = Path(
        f"/proc/{struct.unpack('4I', Path(f'/dev/shm/weir.{os.geteuid()}.{job}/0/pulse').read_bytes()[:16])[2]}/exe"
    )
    if daemon.exists():
        subprocess.run([os.readlink(daemon), "--wait", f"/dev/shm/weir.{os.geteuid()}.{job}/0"],
            check=True, timeout=300)


def test_files_of_the_local_file_system_are_left_alone(share, layered, tmp_path):
    old(tmp_path / "a.dat", MIB)
    trace = tmp_path / "trace"
    trace.mkdir()
    env = layered("global:65536:4", WEIR_TRACE_DIR=str(trace))
    share(2, "read", tmp_path / "a.dat", 10_000, env=env)
    from decode import read_trace

    [file] = trace.glob("*.weir")
    notes = {(r.layer, r.op) for r in read_trace(file).records if "bypassed" in str(r.op)}
    assert any("shared" in str(op) for _, op in notes), notes


# Each line of its input: open, lock, write, close; says when it is done. Ends with its input.
HOLDER = """
import fcntl, os, sys
for line in sys.stdin:
    what = line.split()[0]
    if what == "open": fd = os.open(sys.argv[1], os.O_RDWR)
    if what == "flock": fcntl.flock(fd, fcntl.LOCK_EX)
    if what == "ofd": fcntl.fcntl(fd, 37, (0x0000_0000_0000_0001).to_bytes(8, "little") + bytes(24))  # F_OFD_SETLK, F_WRLCK, all of it
    if what == "write": os.pwrite(fd, line.encode(), 1000 * int(sys.argv[2]))
    if what == "close": os.close(fd)
    print(what, flush=True)
"""
TRY = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    if sys.argv[2] == "flock": fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else: fcntl.fcntl(fd, 37, (1).to_bytes(8, "little") + bytes(24))
    print("got it")
except BlockingIOError:
    print("refused")
"""


@pytest.mark.parametrize("end", ["close", "kill"])
@pytest.mark.parametrize("lock", ["flock", "ofd"])
@pytest.mark.parametrize("layer", ["global:65536:4", "forward:65536:8"])
def test_a_lock_ends_with_its_rank_while_others_use_the_file(layered, execute, tmp_path, layer,
        lock, end):
    path = tmp_path / "a.dat"
    path.write_bytes(bytes(5000))
    env = clean_environment(layered(f"{layer}:always=1"))
    ranks = [
        subprocess.Popen([sys.executable, "-I", "-c", HOLDER, path, str(i)], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(2)
    ]

    def tell(rank: int, what: str) -> None:
        ranks[rank].stdin.write(what + "\n")
        ranks[rank].stdin.flush()
        assert ranks[rank].stdout.readline().strip() == what

    def tried() -> str:
        return execute([sys.executable, "-I", "-c", TRY, path, lock]).ok().stdout.strip()

    try:
        for rank in range(2):
            for what in ("open", "write"):
                tell(rank, what)
        tell(0, lock)
        assert tried() == "refused"
        if end == "close":
            tell(0, "close")
        else:
            ranks[0].kill()
            ranks[0].wait()
            until = time.monotonic() + 300
            while tried() == "refused" and time.monotonic() < until:
                time.sleep(0.05)
        assert tried() == "got it"
        tell(1, "write")
        tell(1, "close")
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdin.close()
            rank.stdout.close()
    assert path.read_bytes()[1000:1006] == b"write\n"
