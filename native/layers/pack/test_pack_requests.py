# SPDX-License-Identifier: Apache-2.0
"""Requests that reach the file system: a few for the container, not some for each file."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
import uuid

import pytest

FILES, RANKS = 300, 3
PROGRAM = """
import os, sys
directory, rank, ranks, files = sys.argv[1], *map(int, sys.argv[2:5])
for i in range(rank, files, ranks):
    data = str(i).encode() * 500
    if sys.argv[5] == "create":
        fd = os.open(f"{directory}/{i}.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        assert os.write(fd, data) == len(data)
    else:
        fd = os.open(f"{directory}/{i}.dat", os.O_RDONLY)
        assert os.read(fd, 10000) == data
    os.close(fd)
"""


@pytest.fixture
def job(preload):
    name = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = ("weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=plots.zip|system\n"
             "rule source=test:2 name=*.held stack=bufa|system\n")
    yield {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": name}
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{name}", ignore_errors=True)


def requests_of(fs, env, directory, what):
    before = fs.stats().requests
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, directory, str(rank), str(RANKS),
            str(FILES), what], env=env)
        for rank in range(RANKS)
    ]
    assert [rank.wait(timeout=600) for rank in ranks] == [0] * RANKS
    after = fs.stats().requests
    return {kind: n - before.get(kind, 0) for kind, n in after.items() if n != before.get(kind, 0)}


def metadata(requests):
    return sum(n for kind, n in requests.items() if kind not in ("read", "write"))


@pytest.mark.timeout(300)
def test_requests_do_not_grow_with_the_number_of_files(testfs, job):
    fs = testfs("direct")
    directory = fs.path / "plots"
    directory.mkdir()
    begin = time.monotonic()
    made = requests_of(fs, job, directory, "create")
    # Once a second the directory's time and permissions are asked for, and its list with that.
    looks = 8 * math.ceil(time.monotonic() - begin)
    read = requests_of(fs, job, directory, "read")
    # By each rank: the directory is found; the container is opened, locked and closed. The first
    # one lists the directory, the last one ends the container.
    assert metadata(made) <= 40 + 12 * RANKS + looks and metadata(read) <= 30 + 10 * RANKS
    assert made["write"] < 10 * RANKS and read["read"] < 10 * RANKS
    # Two chunks of each rank (64 and 128 KiB), and for each one request for its space.
    assert 0 < made["fallocate"] <= 2 * RANKS
    assert os.listdir(directory) == ["plots.zip"]


ASKS = """
import os, sys
names = [f"{sys.argv[1]}/{i}.dat" for i in range(40)]
with open(names[0], "w") as file:
    file.write("packed")
print("begin", flush=True)
sys.stdin.readline()
for name in names[1:]:
    assert not os.path.exists(name) and not os.access(name, os.F_OK)
os.symlink("0.dat", names[1])
assert os.path.getsize(names[1]) == 6
print("end", flush=True)
sys.stdin.readline()
"""


@pytest.mark.timeout(300)
def test_a_name_that_is_not_there_is_looked_up_once_by_each_call(testfs, job):
    fs = testfs("direct")
    directory = fs.path / "plots"
    directory.mkdir()
    with subprocess.Popen([sys.executable, "-c", ASKS, directory], env=job, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asks:
        assert asks.stdout.readline() == "begin\n"
        before = fs.stats().requests
        asks.stdin.write("\n")
        asks.stdin.flush()
        assert asks.stdout.readline() == "end\n"
        made = {kind: n - before.get(kind, 0) for kind, n in fs.stats().requests.items()}
        asks.stdin.close()
    walks = 2 * 39 + 8  # this file system is asked for the directory and for the name in each
    assert asks.returncode == 0 and 2 * 2 * 39 <= made["lookup"] <= 2 * walks, made


HOLDER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"held")
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.mark.timeout(300)
def test_requests_do_not_grow_while_a_layer_holds_bytes_of_another_file(testfs, job):
    """An open with O_TRUNC asks whose file it is only where the file system has it."""
    fs = testfs("direct")
    directory = fs.path / "plots"
    directory.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDER, fs.path / "x.held"], env=job,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"holds\n"
        made = requests_of(fs, job, directory, "create")
        holder.communicate()
    assert metadata(made) < 40 * RANKS


@pytest.mark.timeout(300)
def test_a_further_process_of_the_node_walks_one_path(testfs, job):
    """It opens the container that another one has open, and asks nothing that is known."""
    fs = testfs("direct")
    directory = fs.path / "plots"
    directory.mkdir()
    program = [sys.executable, "-c", f"{PROGRAM}print(1, flush=True)\nsys.stdin.read()",
        directory, "0", "1", "9"]
    with subprocess.Popen([*program, "create"], env=job, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE) as first:
        assert first.stdout.readline() == b"1\n"
        for what, most in (("create", 15), ("read", 9)):
            before = fs.stats().requests
            subprocess.run([*program, what], env=job, stdin=subprocess.DEVNULL, timeout=300,
                stdout=subprocess.DEVNULL, check=True)
            made = {kind: n - before.get(kind, 0) for kind, n in fs.stats().requests.items()}
            assert made["lookup"] == made["open"] == 1 and metadata(made) <= most, made
        first.communicate()


MANY, PIECE_BYTES = 1500, 1 << 20
MAKES = """
import sys
for i in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/{i}.dat", "wb", buffering=0) as file:
        file.write(bytes([i % 256]) * 8000)
"""
READS = """
import sys
for i in range(0, int(sys.argv[2]), int(sys.argv[3])):
    with open(f"{sys.argv[1]}/{i}.dat", "rb", buffering=0) as file:
        assert file.read(9000) == bytes([i % 256]) * 8000
"""


@pytest.fixture
def packed(testfs, job):
    """A directory of packed files whose container has several pieces, and what reads of every
    N-th of them cost: requests and bytes."""
    fs = testfs("direct")
    directory = fs.path / "plots"
    directory.mkdir()
    program = [sys.executable, "-c"]
    subprocess.run([*program, MAKES, directory, str(MANY)], env=job, timeout=300, check=True)

    def read(every: int) -> tuple[int, int]:
        before = fs.stats()
        subprocess.run([*program, READS, directory, str(MANY), str(every)], env=job, timeout=300,
            check=True)
        after = fs.stats()
        return (after.requests["read"] - before.requests["read"],
            after.bytes_read - before.bytes_read)

    return directory / "plots.zip", read


@pytest.mark.timeout(300)
def test_who_reads_all_files_reads_each_piece_of_the_container_once(packed):
    container, read = packed
    pieces = -(-container.stat().st_size // PIECE_BYTES)
    assert pieces > 10
    # Besides: two files of the first piece by themselves, and what begins and ends the archive.
    assert pieces <= read(every=1)[0] <= pieces + 6


@pytest.mark.timeout(300)
def test_who_reads_a_file_of_each_piece_reads_no_piece(packed):
    container, read = packed
    directory_bytes = MANY * 200
    requests, read_bytes = read(every=MANY // 10)
    assert requests >= 10
    assert read_bytes < directory_bytes + 10 * 16_000 < container.stat().st_size // 10
