# SPDX-License-Identifier: Apache-2.0
"""Calls that concern every thread of the process, while weir's own threads run: nobody waits for
them, and none takes a signal."""

import os
import subprocess
import uuid

import pytest

LIBC = 1 << 31 | 1 << 32  # signals 32 and 33
PROGRAMS = (1 << 64) - 1 - LIBC - (1 << 8) - (1 << 18)  # no thread can block SIGKILL and SIGSTOP

STACKS = ["bufa:65536:2:always=1", "global:65536:4:always=1", "gather:65536:4:always=1",
    "forward:65536:8:always=1", "keep:always=1|bufa:65536:2:always=1"]


@pytest.fixture
def job():
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{name}"], check=True)


def threads_of(stderr: str) -> dict[str, int]:
    """By name, the signals that they block all the time: glibc blocks every one while it makes or
    ends a thread."""
    threads: dict[str, int] = {}
    for line in stderr.splitlines():
        if line.startswith("thread "):
            _, name, blocked = line.split()
            threads[name] = threads.get(name, -1) & int(blocked, 16)
    return threads


def assert_leave_libc_alone(threads: dict[str, int]) -> None:
    for name, blocked in threads.items():
        assert blocked & LIBC == 0, f"{name} blocks glibc's own signals: {blocked:x}"
        assert blocked & PROGRAMS == PROGRAMS, f"{name} takes signals of the program: {blocked:x}"


@pytest.mark.parametrize("stack", STACKS)
def test_set_ids_fork_exec_cancel_and_sigwait_beside_weirs_threads(guest, traced, execute, tmp_path,
        job, stack):
    program = guest("identities.c")
    plain = execute([program, "plain.dat"], cwd=tmp_path).ok().stdout
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    done = traced([program, "a.dat", "b.dat"], timeout=30, WEIR_RULES=rules, WEIR_JOB=job).done
    assert done.ok().stdout == plain
    threads = threads_of(done.stderr)
    assert threads, done.stderr
    assert_leave_libc_alone(threads)


def test_set_ids_in_ranks_that_read_from_other_nodes(mpi, preload, tmp_path, testfs, job):
    fs = testfs("direct")
    (fs.backing / "a.dat").write_bytes(bytes(4 << 20))
    os.utime(fs.backing / "a.dat", (1_000_000_000, 1_000_000_000))
    here = os.path.dirname(__file__)
    source = open(f"{here}/survive.h").read() + open(f"{here}/programs/identities.c").read()
    program = mpi.cc(source, "-pthread", "-DWITH_MPI", name="identities_mpi")
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=global:65536:4|system\n"
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job, "WEIR_NODE_RANKS": "1",
        "WEIR_BETWEEN": "mpi"}
    done = mpi.run(2, program, fs.path / "a.dat", env=env).ok()
    assert done.stdout.count("setgid 0\n") == 2 and done.stdout.count("setresuid 0\n") == 2
    threads = threads_of(done.stderr)
    assert "weir-mpi" in threads, done.stderr
    assert_leave_libc_alone(threads)
