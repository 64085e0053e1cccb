# SPDX-License-Identifier: Apache-2.0
"""Runs of one user that share the directory of their job on the node, or a tier: each reports the
bytes of its own programs that are not in their files, and its status is of these alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

WEIR = Path(sys.executable).with_name("weir")


def until(name: str) -> str:
    return f"until [ -e {name} ]; do sleep 0.05; done"


WAITS = f"touch began; {until('over')}"
# Loses what it has written when the file is closed, and does not look at the result.
LOSES = """
import os
fd = os.open("f", os.O_WRONLY | os.O_CREAT)
os.write(fd, bytes(10000))
try:
    os.close(fd)
except OSError:
    pass
"""
LOSING_STACK = "bufa:4096:2:always=1|error:op=write:errno=ENOSPC|system"


@pytest.fixture
def environ():
    """Of one job, which no other test has."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    yield {**os.environ, "WEIR_JOB": job}
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(f'[[rule]]\nname = "f"\nstack = "{LOSING_STACK}"\n')
    return path


@contextmanager
def run_beside(rules: Path, environ: dict[str, str], script: str = WAITS):
    """A run with these rules that loses nothing and ends after the block; what came of it, when it
    has ended."""
    directory = rules.parent
    command = [WEIR, "run", "--rules", rules, "--", "sh", "-c", script]
    with subprocess.Popen(command, cwd=directory, env=environ, stderr=subprocess.PIPE,
            text=True) as process:
        ended = subprocess.CompletedProcess(command, 0)
        try:
            end = time.monotonic() + 60
            while not (directory / "began").exists():
                assert process.poll() is None and time.monotonic() < end, "it did not begin"
                time.sleep(0.02)
            yield ended
        finally:
            (directory / "over").touch()
            ended.stderr = process.communicate(timeout=60)[1]
            ended.returncode = process.returncode


def test_a_run_beside_one_that_loses_bytes_succeeds(weir, rules, environ, tmp_path):
    with run_beside(rules, environ) as beside:
        lost = weir("run", "--rules", rules, "--", sys.executable, "-c", LOSES, cwd=tmp_path,
            env=environ)
    assert lost.returncode == 5 and "/f: 10,000 bytes accepted" in lost.stderr, lost.stderr
    assert (beside.returncode, beside.stderr) == (0, "")


def test_a_run_reports_what_a_run_within_it_has_lost(weir, rules, environ, tmp_path):
    (tmp_path / "loses.py").write_text(LOSES)
    inner = f"{WEIR} run --rules {rules} -- {sys.executable} loses.py; echo inner $?"
    with run_beside(rules, environ) as beside:
        done = weir("run", "--rules", rules, "--", "sh", "-c", inner, cwd=tmp_path, env=environ)
    assert (done.returncode, done.stdout) == (5, "inner 5\n")
    assert done.stderr.count("/f: 10,000 bytes accepted from process") == 2  # of each run
    assert (beside.returncode, beside.stderr) == (0, "")


def test_what_a_program_without_a_run_has_lost_is_reported_once_and_costs_no_run_its_status(
        weir, rules, environ, tmp_path):
    with run_beside(rules, environ) as beside:
        first = weir("run", "--rules", rules, "--", "env", "-u", "WEIR_RUN_NUMBER", sys.executable,
            "-c", LOSES, cwd=tmp_path, env=environ)
    assert first.returncode == 0 and first.stderr.count("/f: 10,000 bytes accepted from") == 1
    assert "(of a program that weir run did not start" in first.stderr
    assert (beside.returncode, beside.stderr) == (0, "")
    later = weir("run", "--rules", rules, "--", "true", cwd=tmp_path, env=environ)
    assert (later.returncode, later.stderr) == (0, "")


@pytest.fixture
def small(tmp_path):
    """A directory that has no room for 40,000 bytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.parametrize("stack", ["bufa:4096:16:always=1", "global:4096:16:always=1"],
    ids=["private arena", "shared arena"])
def test_bytes_of_a_killed_program_are_lost_by_its_run_alone(weir, environ, small, tmp_path, stack):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "f"\nstack = "{stack}"\n'
        f'[[rule]]\nname = "mine"\nstack = "{stack}"\n')
    killed = ("import os; fd = os.open('small/f', os.O_RDWR | os.O_CREAT); "
        "os.write(fd, bytes(40000)); os.kill(os.getpid(), 9)")
    # A shared arena has both runs in it.
    script = f"exec 3<>mine; echo x >&3; {WAITS}"
    with run_beside(rules, environ, script) as beside:
        lost = weir("run", "--rules", rules, "--", "sh", "-c",
            f'{sys.executable} -c "{killed}"; true', cwd=tmp_path, env=environ)
    assert lost.returncode == 5 and "small/f: " in lost.stderr, lost.stderr
    assert (beside.returncode, beside.stderr) == (0, "")
    weir("drain", "--discard", env=environ)


@pytest.mark.parametrize("drain", ["async", "end"])
def test_files_that_cannot_leave_a_tier_cost_the_run_that_wrote_them_its_status_alone(weir, environ,
        small, tmp_path, drain):
    rules, tier = tmp_path / "rules.toml", tmp_path / "tier"
    stack = f"stage:tier={tier}:drain={drain}"
    rules.write_text("".join(f'[[rule]]\nname = "{name}"\nstack = "{stack}"\n' for name in "fg"))
    writes = "head -c 40000 /dev/zero > small/f"
    if drain == "async":  # the daemon may come to it later than weir run waits
        writes += f"; until {WEIR} stage status {tier} | grep -q 'small/f: No space'; do :; done"
    # It writes while the other one runs.
    script = f"touch began; {until('go')}; {writes}; touch wrote; {until('over')}"
    with run_beside(rules, environ, script) as beside:
        done = weir("run", "--rules", rules, "--", "sh", "-c",
            f"touch go; {until('wrote')}; echo x > g", cwd=tmp_path, env=environ)
    stuck = beside.stderr if drain == "end" else ""  # which each run tries to bring
    assert (done.returncode, done.stderr) == (0, stuck)
    assert (tmp_path / "g").stat().st_size == 2
    assert beside.returncode == 5 and "small/f: the file system of" in beside.stderr
    later = weir("run", "--rules", rules, "--", "sh", "-c", "echo y > g", cwd=tmp_path, env=environ)
    assert (later.returncode, later.stderr) == (0, stuck)
    again = weir("run", "--rules", rules, "--", "sh", "-c", writes, cwd=tmp_path, env=environ)
    assert again.returncode == 5 and "small/f: the file system of" in again.stderr
    (listed,) = [line for line in weir("stage", "status", tier).stdout.splitlines() if "/f" in line]
    assert "small/f" in listed
