# SPDX-License-Identifier: Apache-2.0
"""Processes are killed at random moments; whatever had been closed before is in the container."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from weir import InputError
from weir.pack import Container, repair, verify

# Writes files of its own, and states each that has been closed on standard output.
WRITER = """
import os, sys
directory, rank = sys.argv[1], int(sys.argv[2])
os.write(1, b"ready\\n")
for i in range(100000):
    name = f"f{rank}.{i}.dat"
    data = (f"{rank} {i} " * (1 + i * 7919 % 900)).encode()
    if i % 3 == 0:  # looked at between open and write
        with open(f"{directory}/{name}", "wb", buffering=0) as f:
            f.write(data)
    else:
        fd = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, data)
        os.close(fd)
    os.write(1, f"{name} {len(data)}\\n".encode())
"""
RANKS = 3
RULES = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=plots.zip:always=1|system\n"


def _kill_once(weir_env, directory, pause_s):
    """Names with sizes that were closed when all writers were killed at once."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, directory, str(rank)], env=weir_env,
            stdout=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    time.sleep(pause_s)
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    closed = {}
    for writer in writers:
        lines = writer.communicate(timeout=300)[0].decode().splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                name, size = line.split()
                closed[name] = int(size)
    return closed


def _wait_for_daemon(container, closed):
    """Until the write-back daemon has written what the killed processes had closed."""
    end = time.monotonic() + 300
    while True:
        with Container(container) as archive:
            found = archive.scan()
        missing = [name for name in closed if name not in found]
        if not missing or time.monotonic() > end:
            return found, missing
        time.sleep(0.05)


def _repair(container):
    """The write-back daemon may have the file open for a moment, even with nothing to write."""
    end = time.monotonic() + 300
    while True:
        try:
            return repair(container)
        except InputError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


@pytest.mark.timeout(3000)
def test_what_was_closed_before_a_kill_is_there(preload, tmp_path):
    kills = int(os.environ.get("WEIR_TEST_KILLS", "0")) or 4
    seed = int(os.environ.get("WEIR_TEST_SEED", "1"))
    print("seed", seed)
    rng = random.Random(seed)
    total = 0
    for kill in range(kills):
        directory = tmp_path / f"k{kill}"
        directory.mkdir()
        job = f"pytest-pack-{os.getpid()}-{kill}"
        env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": RULES, "WEIR_JOB": job}
        closed = _kill_once(env, directory, rng.random() * 0.3)
        container = directory / "plots.zip"
        if not closed and not container.exists():
            continue
        found, missing = _wait_for_daemon(container, closed)
        assert missing == []
        assert {name: found[name].size_bytes for name in closed} == closed
        files, written = _repair(container)
        assert written and files >= len(closed)
        assert verify(container) == (files, [])
        assert zipfile.ZipFile(container).testzip() is None
        total += len(closed)
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    print(f"{kills * RANKS} processes killed, {total} files closed before, 0 lost")


HOLDER = """
import os, sys
os.chdir(sys.argv[1])
for name in ("a.dat", "b.dat"):
    with open(name, "w") as file: file.write("of " + name)
print("closed", flush=True)
sys.stdin.read()
"""
CHANGER = """
import os, sys
os.chdir(sys.argv[1])
os.chmod("a.dat", 0o600)
os.utime("b.dat", (7, 7))
print([(oct(s.st_mode & 0o777), s.st_mtime) for s in map(os.stat, ("a.dat", "b.dat"))][1][1])
"""


def test_a_change_of_what_another_process_has_not_written_outlives_it(preload, weir, tmp_path):
    """The process, or the daemon for it, writes what it had closed over the container's bytes."""
    job, directory = f"pytest-pack-{os.getpid()}-change", tmp_path / "d"
    directory.mkdir()
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": RULES, "WEIR_JOB": job}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, directory], env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"closed\n"
    changed = subprocess.run([sys.executable, "-c", CHANGER, directory], env=env,
        capture_output=True, text=True, timeout=300, check=True)
    assert changed.stdout == "7.0\n"
    holder.kill()
    holder.communicate(timeout=300)
    weir("drain", "--wait", "--job", job, timeout=60).ok()
    _repair(directory / "plots.zip")
    with Container(directory / "plots.zip") as archive:
        found = archive.scan()
        assert archive.read(found["a.dat"]) == b"of a.dat"
    assert found["a.dat"].mode & 0o777 == 0o600
    assert found["b.dat"].mtime_ns == 7_000_000_000
