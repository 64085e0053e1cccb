# SPDX-License-Identifier: Apache-2.0
"""Layer bufa on the test file system: what reaches it is counted there, and every byte is checked,
in the program and on disk."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest

MIB = 1 << 20


def expected(size: int, begin: int = 0) -> bytes:
    """The bytes that programs/buffered.c writes and looks for."""
    numpy = pytest.importorskip("numpy")
    offsets = numpy.arange(begin, begin + size, dtype=numpy.uint64)
    return ((offsets * numpy.uint64(2654435761)) >> numpy.uint64(13)).astype(numpy.uint8).tobytes()


class Job:
    """The environment of programs under a stack."""

    def __init__(self, preload: Path, stack: str):
        self.name = f"pytest-{uuid.uuid4().hex[:12]}"
        rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}\n"
        self.env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": self.name}


@pytest.fixture
def under(preload):
    jobs = []

    def make(stack: str) -> Job:
        jobs.append(Job(preload, f"{stack}|system"))
        return jobs[-1]

    yield make
    for job in jobs:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job.name}"], check=True)


@pytest.fixture(scope="session")
def buffered(cc):
    return cc((Path(__file__).parent / "programs/buffered.c").read_text(), "-O2", name="buffered")


def before_they_were_full(begin: float) -> int:
    """Blocks that may have been written as they were: one of more than half a second, where the
    program was held up for as long."""
    return int((time.monotonic() - begin) * 2)


@pytest.fixture
def lustre(testfs):
    """A file system far away; ``lustre(size)`` also has x.dat of that size."""

    def make(size: int = 0, **options):
        mount = testfs("lustre", **options)
        if size:
            (mount.backing / "x.dat").write_bytes(expected(size))
        return mount

    return make


@pytest.mark.parametrize(("stack", "blocks"), [("bufa:1048576:8", 32), ("bufa:1048576:2", 32),
    ("bufa:262144:16", 128)])
def test_small_sequential_reads_become_one_request_for_each_block(lustre, execute, buffered, under,
        stack, blocks):
    mount = lustre(32 * MIB)
    execute([buffered, "read", mount.path / "x.dat", 32 * MIB, 1024], env=under(stack).env).ok()
    file = mount.stats().file("x.dat")
    assert blocks <= file.reads <= blocks + 8
    assert file.bytes_read <= 32 * MIB + 4096


@pytest.mark.parametrize("stride", [64 << 10, MIB])
def test_strided_reads_fetch_the_pages_of_the_pieces_and_many_at_once(lustre, execute, buffered,
        under, stride):
    mount = lustre(data_us=30_000)  # long enough for a busy machine to start many
    with open(mount.backing / "x.dat", "wb") as file:  # the pieces, and holes between them
        for at in range(0, 256 * stride, stride):
            file.seek(at)
            file.write(expected(4096, at))
        file.truncate(256 * stride)
    execute([buffered, "stride", mount.path / "x.dat", 256 * stride, 1024, stride],
        env=under("bufa:1048576:2").env).ok()
    stats = mount.stats()
    assert stats.file("x.dat").reads <= 256 + 4
    assert stats.bytes_read <= 256 * 4096 + 4096
    assert stats.max_data_in_flight >= 8


def test_backward_reads_fetch_blocks(lustre, execute, buffered, under):
    mount = lustre(8 * MIB)
    execute([buffered, "backward", mount.path / "x.dat", 8 * MIB, 1024],
        env=under("bufa:1048576:4").env).ok()
    assert mount.stats().file("x.dat").reads <= 8 + 8


def test_random_reads_are_not_amplified(lustre, execute, buffered, under):
    mount = lustre(16 * MIB)
    execute([buffered, "random", mount.path / "x.dat", 16 * MIB, 100, 400],
        env=under("bufa:1048576:4").env).ok()
    file = mount.stats().file("x.dat")
    assert file.reads <= 400
    assert file.bytes_read <= 400 * 100 + 64 * 1024


def test_a_million_small_writes_become_one_request_for_each_block(lustre, execute, buffered, under):
    mount = lustre()
    begin = time.monotonic()
    execute([buffered, "write", mount.path / "x.dat", 64_000_000, 64],
        env=under("bufa:1048576:8").env).ok()
    file = mount.stats().file("x.dat")
    assert file.writes <= 62 + 4 + before_they_were_full(begin)
    assert file.bytes_written == 64_000_000
    assert (mount.backing / "x.dat").read_bytes() == expected(64_000_000)


def test_appended_records_arrive_in_their_order(lustre, execute, buffered, under):
    mount = lustre()
    begin = time.monotonic()
    execute([buffered, "append", mount.path / "x.dat", 6_400_000, 64],
        env=under("bufa:65536:8").env).ok()
    assert mount.stats().file("x.dat").writes <= 98 + 4 + before_they_were_full(begin)
    assert (mount.backing / "x.dat").read_bytes() == expected(6_400_000)


def test_what_is_dirty_is_written_while_the_program_does_nothing(lustre, execute, buffered, under):
    mount = lustre()
    arguments = ["wait", mount.path / "x.dat", 6400, 64, 64, mount.backing / "x.dat"]
    execute([buffered, *arguments], env=under("bufa:65536:8").env).ok()
    assert (mount.backing / "x.dat").read_bytes() == expected(6400)


@pytest.mark.parametrize("size", [64 * 100, 6_400_000])
def test_a_program_that_aborts_loses_no_accepted_byte(lustre, execute, buffered, under, weir, size):
    mount = lustre()
    job = under("bufa:65536:8")
    assert execute([buffered, "die", mount.path / "x.dat", size, 64], env=job.env).returncode == -6
    weir("drain", "--wait", env={"WEIR_JOB": job.name}).ok()
    assert (mount.backing / "x.dat").read_bytes() == expected(size)


def test_a_full_file_system_is_reported_with_the_bytes_that_are_lost(lustre, execute, buffered,
        under):
    mount = lustre(enospc_after=100_000)
    done = execute([buffered, "full", mount.path / "x.dat", 640_000, 64],
        env=under("bufa:65536:4:always=1").env).ok()
    assert int(done.stdout) >= 1
    assert "x.dat" in done.stderr and "no space left on device" in done.stderr


def test_records_read_changed_and_written_in_place(lustre, execute, buffered, under):
    mount = lustre(2 * MIB)
    execute([buffered, "update", mount.path / "x.dat", 2 * MIB, 512],
        env=under("bufa:65536:8").env).ok()
    assert mount.stats().total <= 700, mount.stats().requests
    changed = bytes(byte ^ 0x55 for byte in expected(2 * MIB))
    assert (mount.backing / "x.dat").read_bytes() == changed


@pytest.mark.parametrize("how", ["read", "backward", "random"])
def test_with_o_direct_below_the_bytes_are_the_same(execute, buffered, under, tmp_path, how):
    (tmp_path / "x.dat").write_bytes(expected(3 * MIB + 1234))
    job = under("bufa:262144:4:direct=1:always=1")
    execute([buffered, how, tmp_path / "x.dat", 3 * MIB + 1234, 1024 if how != "backward" else 2,
        500], env=job.env).ok()


def test_written_with_o_direct_below_the_bytes_are_the_same(execute, buffered, under, tmp_path):
    job = under("bufa:262144:4:direct=1:always=1")
    execute([buffered, "write", tmp_path / "x.dat", 3_000_000, 100], env=job.env).ok()
    assert (tmp_path / "x.dat").read_bytes() == expected(3_000_000)


@pytest.mark.parametrize("how", ["read", "random", "backward", "update"])
def test_a_file_that_the_kernel_has_in_memory_is_read_right(execute, buffered, under, tmp_path,
        how):
    (tmp_path / "x.dat").write_bytes(expected(2 * MIB))
    execute([buffered, how, tmp_path / "x.dat", 2 * MIB, 512, 5000],
        env=under("bufa:1048576:4").env).ok()
