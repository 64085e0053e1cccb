# SPDX-License-Identifier: Apache-2.0
"""Runs of one user that share the directory of their job on the node: each reports the bytes that
its own programs have lost, and its status is of these alone."""

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
WAITS = "touch began; until [ -e over ]; do sleep 0.05; done"
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


@pytest.mark.parametrize("stack", ["bufa:4096:16:always=1", "global:4096:16:always=1"],
    ids=["private arena", "shared arena"])
def test_bytes_of_a_killed_program_are_lost_by_its_run_alone(weir, environ, tmp_path, stack):
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", small], check=True)
    try:
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
    finally:
        subprocess.run(["umount", "-l", small], check=True)
