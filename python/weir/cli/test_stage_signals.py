# SPDX-License-Identifier: Apache-2.0
"""Signals that stop ``weir stage script``, at every moment of a job: what its script has written is
staged out, or a message has the command that does it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

SEED = int(os.environ.get("WEIR_TEST_SEED", "20240611"))
RUNS = int(os.environ.get("WEIR_TEST_KILLS", "12"))
# What a test watches to know how far the job is: its place on the tier, a file of the script, a
# file that is being staged out.
MOMENTS = ("start", "instance", "staged_in", "ran", "out", "any")
JOB = """#!/bin/sh
#DW jobdw type=scratch access_mode=striped capacity=64MB
#DW stage_in type=file source=a destination=$DW_JOB_STRIPED/a
#DW stage_in type=file source=b destination=$DW_JOB_STRIPED/b
#DW stage_out type=file source=$DW_JOB_STRIPED/a.out destination=OUT/a
#DW stage_out type=file source=$DW_JOB_STRIPED/b.out destination=OUT/b
cd $DW_JOB_STRIPED && cp a a.out && cp b b.out; echo > "$RAN"
exec sleep 30
"""


@pytest.fixture(autouse=True)
def default_signals():
    """A shell's background job, as a test may be, ignores SIGINT, and what it starts as well."""
    before = {number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def job(tmp_path):
    for name, size in (("a", 5_000_000), ("b", 5_000_001)):
        (tmp_path / name).write_bytes(random.Random(size).randbytes(size))
    (tmp_path / "job.sh").write_text(JOB)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PBS"))}

    def start(run):
        (tmp_path / f"{run}/tier").mkdir(parents=True)
        for name in ("a", "b", "job.sh"):
            (tmp_path / run / name).hardlink_to(tmp_path / name)
        return subprocess.Popen([sys.executable, "-m", "weir", "stage", "script", "--tier", "tier",
            "job.sh"], cwd=tmp_path / run, start_new_session=True, stderr=subprocess.PIPE,
            text=True, env=environment | {"RAN": str(tmp_path / run / "ran")})

    return start


def reached(moment, where):
    if moment == "staged_in":
        return any(where.glob("tier/*/striped/b"))
    return {"start": True, "instance": any((where / "tier").iterdir()),
        "ran": (where / "ran").exists(), "out": (where / "OUT").exists(),
        "any": any(where.glob("tier/*/instance.json"))}[moment]


def stop(running, where, moment, random):
    """One of the ways in which a job is stopped: once, twice, to the command or to all."""
    if moment == "out":  # the script has to end first
        wait_for("ran", running, where)
        os.killpg(running.pid, signal.SIGTERM)
    wait_for(moment, running, where)
    time.sleep(random.choice((0, 0, 0.001, 0.01, 0.05)))
    for _ in range(random.choice((1, 2, 2, 5))):
        number = random.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        send = random.choice((os.kill, os.killpg))
        if running.poll() is None:
            send(running.pid, number)
        time.sleep(random.choice((0, 0, 0.001, 0.02)))


def wait_for(moment, running, where):
    while running.poll() is None and not reached(moment, where):
        time.sleep(0.001)


def check(running, where, text):
    said = running.communicate(timeout=300)[1]
    ran = (where / "ran").exists()
    out = all((where / "OUT" / n).exists() and (where / "OUT" / n).read_bytes()
        == (where / n).read_bytes() for n in "ab")
    left = list((where / "tier").iterdir())
    reported = "weir stage recover " in said
    text = f"{text}: status {running.returncode}, {left}: {said}"
    assert out or reported or not ran, text
    assert reported or not left, text


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stopped_job_is_staged_out_or_says_how(moment, job, tmp_path):
    chance = random.Random(f"{SEED} {moment}")
    for number in range(max(1, RUNS // len(MOMENTS))):
        running = job(f"{moment}{number}")
        where = tmp_path / f"{moment}{number}"
        stop(running, where, moment, chance)
        if running.poll() is None and moment == "any":
            os.killpg(running.pid, signal.SIGTERM)
        check(running, where, f"seed {SEED}, {moment}, run {number}")


@pytest.mark.parametrize("first, second", [(signal.SIGTERM, signal.SIGTERM),
    (signal.SIGTERM, signal.SIGHUP), (signal.SIGHUP, signal.SIGINT)])
def test_a_signal_that_comes_when_the_script_has_ended_does_not_lose_its_files(job, tmp_path,
        first, second):
    """As timeout(1) does: to the command, then to its group. The second one comes at each copy."""
    (tmp_path / "again.py").write_text(
        "import os, sys\n"
        "from weir.cli import main\n"
        "from weir.stage import copying, instance\n"
        "whole = copying.copy_all\n"
        "def copy_all(copies, title, *rest):\n"
        "    if 'stage_out' in title:\n"
        f"        os.kill(os.getpid(), {int(second)})\n"
        "    return whole(copies, title, *rest)\n"
        "instance.copy_all = copy_all\n"
        "sys.exit(main())\n")
    (tmp_path / "tier").mkdir()
    running = subprocess.Popen([sys.executable, "again.py", "stage", "script", "--tier", "tier",
        "job.sh"], cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"RAN": str(tmp_path / "ran")})
    wait_for("ran", running, tmp_path)
    os.kill(running.pid, first)
    said = running.communicate(timeout=300)[1]
    assert running.returncode == 128 + first, said
    assert (tmp_path / "OUT/a").exists() and (tmp_path / "OUT/b").exists()
    assert f"{second.name}: files are still being staged out" in said
    assert "weir stage recover " in said and list((tmp_path / "tier").iterdir()) == []


def test_an_ignored_hangup_stays_ignored(job, tmp_path):
    """nohup: neither weir nor the script ends."""
    (tmp_path / "tier").mkdir()
    text = JOB.replace("exec sleep 30", "kill -HUP $PPID; kill -HUP $$; echo on > c")
    (tmp_path / "job.sh").write_text(text.replace("b.out destination=OUT/b", "c destination=OUT/c"))
    done = subprocess.run(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", sys.executable, "-m",
        "weir", "stage", "script", "--tier", "tier", "job.sh"], cwd=tmp_path, timeout=300,
        env=os.environ | {"RAN": str(tmp_path / "ran")}, check=False)
    assert done.returncode == 0 and (tmp_path / "OUT/c").read_text() == "on\n"
