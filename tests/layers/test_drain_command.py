# SPDX-License-Identifier: Apache-2.0
"""``weir drain`` on what killed programs have left, and what ``weir run`` says at its end."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from weir_process import clean_environment
from weir_stage import wait_until

from weir.capture import drain


@pytest.fixture
def job():
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{name}"], check=True)


def left_behind(native_build: Path, tmp_path: Path, job: str, records: int = 30,
        name: str = "file") -> Path:
    """A file with bytes that only an arena has: its writer and the daemon are dead."""
    file, page = tmp_path / name, tmp_path / "page"
    command = [native_build / "native/layers/writeback/weir_drain_writer",
        native_build / "native/preload/weir-drain"]
    process = subprocess.Popen([*command, file, page, "position", "1", str(records), "kill"],
        env=clean_environment({"WEIR_JOB": job}))
    end = time.monotonic() + 300
    while not page.exists() or page.read_bytes()[8:16] != struct.pack("Q", records):
        assert time.monotonic() < end
        time.sleep(0.001)
    (directory,) = drain.node_directories(job)
    os.kill(struct.unpack("4I", (directory / "pulse").read_bytes()[:16])[2], signal.SIGKILL)
    process.kill()
    process.wait()
    return file


def test_what_is_left_is_listed_and_waited_for(weir, native_build, job, tmp_path):
    file = left_behind(native_build, tmp_path, job)
    (arena,) = drain.arenas(job)
    assert not arena.alive and arena.dirty_bytes > 0
    assert f"(ended): {arena.dirty_bytes:,} bytes" in weir("drain", "--job", job).ok().stdout
    before = file.stat().st_size
    assert weir("drain", "--wait", env={"WEIR_JOB": job}).ok().stdout == ""
    assert file.stat().st_size == before + arena.dirty_bytes
    assert "no bytes are held" in weir("drain", "--job", job).ok().stdout


@pytest.mark.parametrize("name", ["file", os.fsdecode(b"\xe9 of\nLatin-1")], ids=["text", "bytes"])
def test_bytes_of_a_removed_file_are_given_up_when_asked(weir, native_build, job, tmp_path, name):
    file = left_behind(native_build, tmp_path, job, name=name)
    file.unlink()
    (arena,) = drain.arenas(job)
    assert weir("drain", "--recover", "--job", job).returncode == 1 and drain.arenas(job) == [
        replace(arena, failed=True)]
    done = weir("drain", "--discard", "--job", job).ok()
    said = os.fsencode(f"{file}: {arena.dirty_bytes} bytes given up\n")
    assert done.stdout == said.decode(errors="replace")  # as the fixture reads it
    assert "no bytes are held" in weir("drain", "--job", job).ok().stdout
    assert not file.exists() and drain.arenas(job) == []


def test_discard_writes_what_can_be_written(weir, native_build, job, tmp_path):
    file = left_behind(native_build, tmp_path, job)
    (arena,) = drain.arenas(job)
    before = file.stat().st_size
    assert weir("drain", "--discard", "--job", job).ok().stdout == ""
    assert file.stat().st_size == before + arena.dirty_bytes and drain.arenas(job) == []


def test_what_cannot_be_written_is_said_and_kept(weir, native_build, job, tmp_path):
    file = left_behind(native_build, tmp_path, job)
    file.rename(tmp_path / "moved")
    bytes_ = drain.arenas(job)[0].dirty_bytes
    done = weir("drain", "--wait", "--job", job)
    assert done.returncode == 1
    assert (
        f"{file}: {bytes_:,} bytes accepted from process" in done.stderr and "ENOENT" in done.stderr
    )
    (tmp_path / "moved").rename(file)
    weir("drain", "--recover", "--job", job).ok()
    wait_until(lambda: drain.arenas(job) == [])  # the daemon removes them behind its answer


def test_an_unknown_job_has_nothing(weir, job):
    directory = f"/dev/shm/weir.{os.geteuid()}.{job}"
    expected = f"job {job}: no bytes are held on this node: {directory} does not exist"
    assert expected in weir("drain", "--job", job).ok().stdout
    assert expected in weir("drain", "--wait", "--job", job).ok().stderr
    assert weir("drain", "--wait", "--status").returncode == 2


@pytest.mark.parametrize("option", ["--recover", "--discard"])
def test_an_unknown_job_cannot_be_recovered(weir, job, option):
    other = Path(f"/dev/shm/weir.{os.geteuid()}.{job}-other")
    other.mkdir(mode=0o700)
    try:
        done = weir("drain", option, "--job", job)
    finally:
        other.rmdir()
    assert done.returncode == 3 and done.stdout == ""
    assert f"/dev/shm/weir.{os.geteuid()}.{job} does not exist" in done.stderr
    assert f"{job}-other" in done.stderr.partition("this user's jobs here: ")[2]


def test_the_job_has_the_name_that_programs_give_it():
    assert drain.job_name({}) == "none"
    assert drain.job_name({"SLURM_JOB_ID": "17"}) == "17"
    assert drain.job_name({"SLURM_JOB_ID": "17", "WEIR_JOB": "mine"}) == "mine"


ABORTS = """
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  for (int i = 0; i < 1000; ++i) {
    const int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(fd, "0123456789", 10) != 10 || close(fd) != 0) return 1;
  }
  if (argc > 2) raise(SIGKILL);
  abort();
}
"""


def test_a_command_ends_when_what_its_dead_programs_had_accepted_is_on_disk(weir, cc, job,
        tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "x.log"\nstack = "keep:always=1"\n')
    done = weir("run", "--rules", rules, "--", cc(ABORTS, name="aborts"), tmp_path / "x.log",
        env={"WEIR_JOB": job})
    assert done.returncode == 128 + signal.SIGABRT
    assert (tmp_path / "x.log").read_bytes() == b"0123456789" * 1000
    wait_until(lambda: drain.arenas(job) == [])  # the daemon removes them behind its answer


@pytest.fixture
def small(tmp_path):
    """A file system with room for two pages."""
    directory = tmp_path / "small"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


def test_a_program_that_aborts_says_what_it_could_not_write(weir, cc, job, tmp_path, small):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "x.log"\nstack = "keep:always=1"\n')
    done = weir("run", "--rules", rules, "--", cc(ABORTS, name="aborts"), small / "x.log",
        env={"WEIR_JOB": job})
    lost = 10000 - (small / "x.log").stat().st_size
    assert lost > 0
    assert f"x.log: {lost} bytes accepted were not written" in done.stderr


def test_a_command_says_what_could_not_be_written(weir, cc, job, tmp_path, small):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "x.log"\nstack = "keep:always=1"\n')
    program = cc(ABORTS, name="aborts")
    done = weir("run", "--rules", rules, "--", program, small / "x.log", "by a signal",
        env={"WEIR_JOB": job})
    lost = 10000 - (small / "x.log").stat().st_size
    assert done.returncode == 128 + signal.SIGKILL and lost > 0
    assert f"x.log: {lost:,} bytes accepted from process" in done.stderr
    assert "ENOSPC" in done.stderr and f"weir drain --recover --job {job}" in done.stderr
    later = weir("run", "--rules", rules, "--", "true", env={"WEIR_JOB": job}).ok()
    assert "weir:" not in later.stderr  # the bytes are another command's
    subprocess.run(["mount", "-o", "remount,size=1m", small], check=True)
    weir("drain", "--recover", "--job", job).ok()
    assert (small / "x.log").read_bytes() == b"0123456789" * 1000
