# SPDX-License-Identifier: Apache-2.0
"""A rank that is stopped, or leaves a call in a way of its own, holds up no other one, and no byte of either is lost."""

import os
import random
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from weir_process import clean_environment

HERE = Path(__file__).parent
PIECES = 200


@pytest.fixture
def pair(cc, preload, tmp_path):
    """``pair(what)`` starts one process, ``pair("beside")`` the other one, on one file under layer global."""
    program = cc((HERE / "programs/held_up.c").read_text(), "-pthread", name="held_up")
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=global:16384:8:always=1|system\n"
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job, "WEIR_LOCK_WAIT_MS": "300"}
    started = []

    def start(what: str) -> subprocess.Popen:
        started.append(
            subprocess.Popen(
                [program, what, tmp_path / "a.dat", str(PIECES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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
    out, err = process.communicate(text, timeout=60)
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


def test_a_rank_stopped_at_any_instant_holds_up_nobody(pair, tmp_path):
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
