# SPDX-License-Identifier: Apache-2.0
"""What another user has put where a trace or job.json is to be written is neither written to, nor
followed, nor waited for."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

STRANGER = 61002
NODE = socket.gethostname()

needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="two users: needs root")


@pytest.fixture
def step(preload_env):
    """Variables that trace into a directory to which all users may write."""
    env = preload_env()
    Path(env["WEIR_TRACE_DIR"]).chmod(0o777)
    return {**env, "WEIR_NODE": NODE}


def trace_of(env: dict[str, str]) -> Path:
    return Path(env["WEIR_TRACE_DIR"]) / f"{env['WEIR_NODE']}.weir"


@needs_two_users
def test_a_trace_file_of_another_user_is_left_alone(execute, step):
    execute(["true"], env=step).ok()
    trace = trace_of(step)
    os.chown(trace, STRANGER, STRANGER)
    before = trace.read_bytes()
    done = execute(["true"], env=step).ok()
    assert "another user's" in done.stderr and trace.read_bytes() == before
    assert [one.name for one in trace.parent.iterdir()] == [trace.name]


def test_a_link_in_place_of_the_trace_file_is_not_followed(execute, step):
    trace = trace_of(step)
    execute(["true"], env=step).ok()
    other = trace.rename(trace.with_name("elsewhere"))
    before = other.read_bytes()
    trace.symlink_to(other)
    assert "a link" in execute(["true"], env=step).ok().stderr and other.read_bytes() == before


def test_a_pipe_in_place_of_the_trace_file_is_not_waited_for(execute, step):
    os.mkfifo(trace_of(step))
    assert "not a trace" in execute(["true"], env=step).ok().stderr


@needs_two_users
def test_a_step_of_another_user_is_refused(weir, tmp_run):
    step = tmp_run / "main"
    step.mkdir(parents=True)
    os.chown(step, STRANGER, STRANGER)
    done = weir("trace", "-o", tmp_run, "--", "true")
    assert done.returncode != 0 and "belongs to user number 61002" in done.stderr and not list(step
        .iterdir())


@needs_two_users
def test_job_json_takes_no_permissions_and_no_bytes_from_a_link(weir):
    """In a directory that others may write to, with what they can guess put there before."""
    with tempfile.TemporaryDirectory() as place:
        step, precious = Path(place) / "run" / "main", Path(place) / "precious"
        step.mkdir(parents=True)
        step.chmod(0o777)
        precious.write_text("mine")
        precious.chmod(0o666)
        (step / "job.json").symlink_to(precious)
        weir("trace", "-o", step.parent, "--", "true").ok()
        job = (step / "job.json").lstat()
        assert precious.read_text() == "mine"
        assert stat.S_ISREG(job.st_mode) and stat.S_IMODE(job.st_mode) == 0o600


@needs_two_users
def test_a_jobs_directory_that_another_user_made_first_is_reported(weir, tmp_path):
    job = f"pytest-{os.getpid()}"
    directory = Path(f"/dev/shm/weir.0.{job}")
    directory.mkdir()
    try:
        os.chown(directory, STRANGER, STRANGER)
        written = tmp_path / "x.dat"
        rules = tmp_path / "rules.toml"
        rules.write_text('[[rule]]\nname = "*.dat"\nstack = "bufa:4:2"\n')
        done = weir("run", "--rules", rules, "--", "sh", "-c", f"echo data > {written}",
            env={"WEIR_JOB": job})
        assert "not a directory of this user alone" in done.stderr and written.read_text(
            ) == "data\n"
        assert not list(directory.iterdir())
        drained = weir("drain", "--recover", "--job", job)
        assert drained.returncode == 1 and "refused" in drained.stderr
    finally:
        directory.rmdir()
