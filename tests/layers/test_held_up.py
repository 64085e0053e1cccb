# SPDX-License-Identifier: Apache-2.0
"""A rank that is stopped, or leaves a call in a way of its own, holds up no other one, and no byte
of either is lost."""

import os
import random
import signal
import struct
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from weir_process import clean_environment, limit

HERE = Path(__file__).parent
PIECES = 200


@pytest.fixture
def pair(cc, preload, tmp_path):
    """``pair(what)`` starts one process, ``pair("beside")`` the other one, on one file under layer
    global."""
    program = cc((HERE / "programs/held_up.c").read_text(), "-pthread", name="held_up")
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=global:16384:8:always=1|system\n"
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job,
        "WEIR_LOCK_WAIT_MS": "300"}
    started = []

    def start(what: str) -> subprocess.Popen:
        started.append(
            subprocess.Popen(
                [program, what, tmp_path / "a.dat", str(PIECES)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=clean_environment(env),
            )  # fmt: skip
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


def finish(process: subprocess.Popen, text: str = "") -> str:
    out, err = process.communicate(text, timeout=300)
    assert process.returncode == 0, err
    return out


def assert_whole(path: Path) -> None:
    assert path.read_bytes() == b"".join(bytes([ord("a") + i % 23]) * 700 for i in range(PIECES))


@pytest.mark.parametrize("what", ["jumps", "cancels"])
def test_calls_that_are_left_hold_up_nobody(pair, tmp_path, what):
    first = pair(what)
    assert first.stdout.readline() == "ready\n", first.stderr.read()
    finish(pair("beside"))
    out = finish(first, "x")
    assert what != "jumps" or int(out) >= 50
    assert_whole(tmp_path / "a.dat")


def test_a_rank_stopped_at_any_moment_holds_up_nobody(pair, tmp_path):
    moments = random.Random(5)
    first = pair("writes")
    assert first.stdout.readline() == "ready\n", first.stderr.read()
    for _ in range(6):
        subprocess.run(["sleep", f"{moments.random() * 0.02}"], check=True)
        first.send_signal(signal.SIGSTOP)
        finish(pair("beside"))
        first.send_signal(signal.SIGCONT)
    finish(first, "x")
    assert_whole(tmp_path / "a.dat")


# One of two processes with one block; the other's bytes are being written by the daemon, whose
# request hangs.
ACCEPTS = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.pwrite(fd, b"d" * 100, 0 if sys.argv[2] == "dies" else 100)
print("ready", flush=True)
sys.stdin.readline()
os.pwrite(fd, b"l" * 150, 50)
print("accepted", flush=True)
sys.stdin.readline()
os.close(fd)
"""


def is_writing(daemon: int) -> bool:
    """Whether a thread of it is within pwrite."""
    states = Path(f"/proc/{daemon}/task").glob("*/syscall")
    return any(state.read_text().split()[0] == "18" for state in states)


def test_a_block_that_the_daemon_writes_takes_bytes_meanwhile(preload, testfs):
    fs, job = testfs("direct"), f"pytest-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=global:16384:8:always=1|system\n"
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = []
    try:
        for what in "dies", "lives":
            command = [sys.executable, "-c", ACCEPTS, fs.path / "a.dat", what]
            started.append(subprocess.Popen(command, env=clean_environment(env), **pipes))
            assert started[-1].stdout.readline() == "ready\n"
        dead, living = started
        pulse = Path(f"/dev/shm/weir.{os.geteuid()}.{job}/0/pulse")
        daemon = struct.unpack("4I", pulse.read_bytes()[:16])[2]
        os.kill(daemon, signal.SIGSTOP)
        dead.kill()
        dead.wait()  # its end is a request, too
        fs.control(hang=limit(15))
        os.kill(daemon, signal.SIGCONT)
        end = time.monotonic() + limit(10)
        while not is_writing(daemon):
            assert time.monotonic() < end, "the daemon writes nothing"
            time.sleep(0.01)
        print("go on", file=living.stdin, flush=True)
        assert living.stdout.readline() == "accepted\n"
        assert is_writing(daemon), "the request came first"
        fs.control(hang=0)
        finish(living, "x\n")
        assert (fs.backing / "a.dat").read_bytes() == b"d" * 50 + b"l" * 150
    finally:
        fs.control(hang=0)
        for process in started:
            process.kill()
            process.wait()
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
