# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed at any moment while a write-behind buffer over an arena takes records:
every byte that was accepted is on disk afterwards, in its place and once, and no other byte was
touched.

WEIR_TEST_KILLS=1000 makes a campaign of it; `pytest -s` shows what was accepted, on disk and lost.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pytest
from weir_process import clean_environment

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "12"))
pytestmark = pytest.mark.timeout(180 + 2 * KILLS)
RECORDS = 4000  # of a writer; it lives some 100 ms
STRIPE = 1000  # bytes of a record in stripe mode
ENDS = ("kill", "kill", "abort", "segv", "_exit")


@dataclass
class Job:
    """The directory of a job of its own, and the programs."""

    writer: Path
    daemon: Path
    name: str
    started: list[subprocess.Popen] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return Path(f"/dev/shm/weir.{os.geteuid()}.{self.name}/0")

    def start(self, file: Path, page: Path, mode: str, seed: int, records: int,
            end: str) -> subprocess.Popen:
        command = [self.writer, self.daemon, file, page, mode, str(seed), str(records), end]
        self.started.append(subprocess.Popen(command,
            env=clean_environment({"WEIR_JOB": self.name}), stdout=subprocess.DEVNULL))
        return self.started[-1]

    def daemon_pid(self) -> int:
        return struct.unpack("4I", (self.directory / "pulse").read_bytes()[:16])[2]

    def command(self, what: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.daemon, f"--{what}", self.directory], capture_output=True,
            text=True, timeout=300)

    def errors(self) -> list[dict]:
        file = self.directory / "errors"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def job(native_build):
    writer, daemon = (
        native_build / "native/layers/writeback/weir_drain_writer",
        native_build / "native/preload/weir-drain",
    )
    job = Job(writer, daemon, f"pytest-{uuid.uuid4().hex[:12]}")
    yield job
    for process in job.started:
        process.kill()
        process.wait()
    subprocess.run(["rm", "-rf", job.directory.parent], check=True)


def pattern(offsets: numpy.ndarray, seed: int) -> bytes:
    with numpy.errstate(over="ignore"):
        product = offsets.astype(numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64(
            seed)
    return (product >> numpy.uint64(56)).astype(numpy.uint8).tobytes()


def accepted(page: Path) -> tuple[int, int]:
    begin = page.read_bytes()[:16] if page.exists() else b""
    return struct.unpack("2Q", begin) if len(begin) == 16 else (0, 0)


def wait_for_records(page: Path, records: int, process: subprocess.Popen) -> None:
    end = time.monotonic() + 300
    while accepted(page)[1] < records and process.poll() is None:
        assert time.monotonic() < end, "the writer does not write"
        time.sleep(0.0005)


def kill_once(job: Job, tmp_path: Path, number: int, chance: random.Random) -> tuple[int, int]:
    """One writer, or several side by side, ends in one way or another. Bytes accepted and on disk.
    """
    seed = chance.randrange(1, 2**31)
    mode = chance.choice(["position", "append", "stripe"])
    writers = chance.randint(2, 3) if mode == "stripe" else 1
    file = tmp_path / f"file{number}"
    pages = [tmp_path / f"page{number}.{k}" for k in range(writers)]
    ends = [chance.choice(ENDS) for _ in pages]
    processes = [
        job.start(file, page, f"stripe:{k}:{writers}" if mode == "stripe" else mode, seed + k,
            RECORDS, end)
        for k, (page, end) in enumerate(zip(pages, ends, strict=True))
    ]
    for process, page, end in zip(processes, pages, ends, strict=True):
        if end == "kill":
            wait_for_records(page, chance.randrange(1, RECORDS), process)
            time.sleep(chance.random() * 0.003)
            process.send_signal(signal.SIGKILL)
    codes = [process.wait(timeout=300) for process in processes]
    assert 99 not in codes, "the writer itself failed"
    assert job.command("wait").returncode == 0
    content = file.read_bytes()
    if mode != "stripe":
        bytes_, _ = accepted(pages[0])
        assert len(content) >= bytes_, (
            f"seed {seed}, {mode}, {ends}: {bytes_ - len(content)} bytes lost"
        )
        assert content == pattern(numpy.arange(len(content)),
            seed), f"seed {seed}, {mode}, {ends}: wrong bytes"
        return bytes_, len(content)
    everything = pattern(numpy.arange(writers * RECORDS * STRIPE), 0)
    total = 0
    for k, page in enumerate(pages):
        bytes_, records = accepted(page)
        total += bytes_
        for i in range(RECORDS):
            at = (i * writers + k) * STRIPE
            is_there = content[at : at + STRIPE]
            if i < records:
                assert is_there == everything[at : at
                    + STRIPE], f"seed {seed}: record {i} of writer {k} is lost"
            elif i > records:
                assert not any(is_there), f"seed {seed}: record {i} of writer {k} was never written"
    return total, total


def test_nothing_accepted_is_lost_by_random_kills(job, tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    took, landed = 0, 0
    for number in range(KILLS):
        bytes_, on_disk = kill_once(job, tmp_path, number, chance)
        took += bytes_
        landed += min(on_disk, bytes_)
        (tmp_path / f"file{number}").unlink()
    print(f"{KILLS} kills: {took} bytes accepted, {landed} on disk, {took - landed} lost")
    assert took > 0 and took == landed
    assert job.errors() == []


def test_the_daemon_is_killed_again_and_again_and_so_is_the_writer(job, tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    daemons = set()
    for number, mode in enumerate(["position", "append"] * 2):
        file, page = tmp_path / f"file{number}", tmp_path / f"page{number}"
        process = job.start(file, page, mode, seed + number, RECORDS, "kill")
        for step in range(1, 4):
            wait_for_records(page, step * RECORDS // 5, process)
            daemons.add(job.daemon_pid())
            os.kill(job.daemon_pid(), signal.SIGKILL)
        wait_for_records(page, chance.randrange(4 * RECORDS // 5, RECORDS), process)
        process.kill()
        process.wait()
        assert job.command("wait").returncode == 0
        content = file.read_bytes()
        assert len(content) >= accepted(page)[0] > 0
        assert content == pattern(numpy.arange(len(content)), seed + number)
    assert len(daemons) > 4, "the same daemon was never seen dead"


@pytest.mark.parametrize("mode", ["position", "append"])
def test_what_daemon_and_writer_left_when_both_were_killed_is_recovered(job, tmp_path, mode):
    file, page = tmp_path / "file", tmp_path / "page"
    process = job.start(file, page, mode, 5, 50, "kill")
    wait_for_records(page, 50, process)
    for victim in (job.daemon_pid(), process.pid):
        os.kill(victim, signal.SIGKILL)
    process.wait()
    status = [json.loads(line) for line in job.command("status").stdout.splitlines()]
    assert [one["alive"] for one in status] == [False]
    assert status[0]["dirty_bytes"] > 0
    assert job.command("recover").returncode == 0
    assert file.read_bytes()[: accepted(page)[0]] == pattern(numpy.arange(accepted(page)[0]), 5)
    assert list(job.directory.glob("arena.*")) == []


def test_a_file_that_is_another_one_now_is_not_recovered_into(job, tmp_path):
    file, page = tmp_path / "file", tmp_path / "page"
    process = job.start(file, page, "position", 5, 20, "kill")
    wait_for_records(page, 20, process)
    for victim in (job.daemon_pid(), process.pid):
        os.kill(victim, signal.SIGKILL)
    process.wait()
    (tmp_path / "new").write_text("something else\n")
    kept = os.open(file, os.O_RDONLY)  # so that the inode is not used again
    (tmp_path / "new").rename(file)
    assert job.command("recover").returncode == 1
    os.close(kept)
    assert file.read_text() == "something else\n"
    (error,) = job.errors()
    assert (error["path"], error["error"]) == (str(file), "ESTALE")
    assert error["lost_bytes"] > 0
    assert len(list(job.directory.glob("arena.*"))) == 1, "the bytes are still there"


def test_a_full_disk_is_reported_and_recovered_from_when_there_is_room(job, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], check=True)
    try:
        file, page = mount / "file", tmp_path / "page"
        process = job.start(file, page, "position", 3, 8, "kill")
        wait_for_records(page, 1, process)
        (mount / "filler").write_bytes(bytes(65536 - 4096))
        wait_for_records(page, 8, process)
        process.kill()
        process.wait()
        if process.returncode == 99:
            pytest.fail("the writer met the full disk itself")
        bytes_ = accepted(page)[0]
        assert job.command("wait").returncode == 1
        (error,) = job.errors()
        assert error["error"] == "ENOSPC" and error["lost_bytes"] > 0
        (mount / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=4m", mount], check=True)
        assert job.command("recover").returncode == 0
        assert file.read_bytes()[:bytes_] == pattern(numpy.arange(bytes_), 3)
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def test_the_daemon_shares_nothing_with_the_program_and_goes_by_itself(job, tmp_path):
    process = job.start(tmp_path / "file", tmp_path / "page", "position", 1, 5, "kill")
    wait_for_records(tmp_path / "page", 5, process)
    daemon = Path(f"/proc/{job.daemon_pid()}")
    fields = (daemon / "stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) not in (process.pid,
        os.getpid()), "its parent is neither the program nor the shell"
    assert int(fields[3]) != os.getsid(process.pid), "a session of its own"
    assert os.readlink(daemon / "cwd") == "/"
    assert os.readlink(daemon / "fd/0") == "/dev/null"
    assert (daemon / "environ").read_bytes() == b""
    assert sorted(os.sched_getaffinity(int(daemon.name))) == list(range(os.cpu_count()))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE):
        os.kill(int(daemon.name), number)
    time.sleep(0.05)
    assert daemon.exists()
    process.kill()
    process.wait()
    end = time.monotonic() + 300
    while daemon.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not daemon.exists()
    assert (tmp_path / "file").stat().st_size == accepted(tmp_path / "page")[0]


def test_a_daemon_that_is_requested_to_end_writes_first_what_the_dead_left(job, tmp_path):
    process = job.start(tmp_path / "file", tmp_path / "page", "append", 9, 100, "kill")
    wait_for_records(tmp_path / "page", 100, process)
    daemon = job.daemon_pid()
    process.kill()
    os.kill(daemon, signal.SIGTERM)
    process.wait()
    end = time.monotonic() + 300
    while Path(f"/proc/{daemon}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    bytes_ = accepted(tmp_path / "page")[0]
    assert (tmp_path / "file").read_bytes()[:bytes_] == pattern(numpy.arange(bytes_), 9)


def test_somebody_elses_directory_is_not_trusted(job, tmp_path):
    job.directory.parent.mkdir(mode=0o755)
    process = job.start(tmp_path / "file", tmp_path / "page", "position", 1, 5, "exit")
    assert process.wait(timeout=300) == 99, "there is no arena in a directory that others may enter"
