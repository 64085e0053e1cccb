# SPDX-License-Identifier: Apache-2.0
"""What jobs leave in shared memory: nothing, once their last process and the daemon have gone; and
nothing is taken from under those that are there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from weir_process import clean_environment

RULES = '[[rule]]\nname = "*.dat"\nstack = "bufa:64KiB:4:always=1"\n'
READER = "import os; fd = os.open('in.dat', os.O_RDONLY); print(len(os.read(fd, 1000)))"
WRITER = "import os; fd = os.open('out.dat', os.O_WRONLY | os.O_CREAT); os.write(fd, b'x' * 1000)"
WAITING_WRITER = (
    "import os, sys\nfd = os.open('out.dat', os.O_WRONLY | os.O_CREAT)\nos.write(fd, b'x' * "
    "1000)\nprint('wrote', flush=True)\nsys.stdin.read()"
)


@pytest.fixture
def job(tmp_path):
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "in.dat").write_bytes(bytes(5000))
    name = f"pytest-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["rm", "-rf", directory_of(name)], check=True)


def directory_of(job: str) -> Path:
    return Path(f"/dev/shm/weir.{os.geteuid()}.{job}")


def gone(directory: Path) -> bool:
    end = time.monotonic() + 300
    while directory.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return not directory.exists()


@pytest.mark.parametrize("program", [READER, WRITER])
def test_nothing_is_left_of_a_job(weir, job, tmp_path, program):
    run = weir("run", "--rules", "rules.toml", "--", sys.executable, "-I", "-c", program,
        env={"WEIR_JOB": job}, cwd=tmp_path)
    assert run.ok().stderr == ""
    assert gone(directory_of(job))


@pytest.mark.parametrize(("stack", "program"),
    [("bufa:64KiB:4:always=1", WRITER), ("global:64KiB:4:always=1", READER)])
@pytest.mark.any_mpi
def test_nothing_is_left_of_emulated_nodes(weir, mpi, job, tmp_path, stack, program):
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "*.dat"\nstack = "{stack}"\n')
    env = {**mpi.env, "WEIR_JOB": job, "WEIR_NODE_RANKS": "1"}
    weir("run", "--rules", "rules.toml", "--", *mpi.launch(2, sys.executable, "-I", "-c", program),
        env=env, cwd=tmp_path, timeout=120).ok()
    assert gone(directory_of(job))


def test_a_job_that_is_there_keeps_its_directory(weir, job, tmp_path, preload):
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:65536:4:always=1|system\n"
    env = clean_environment({"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job})
    command = [sys.executable, "-I", "-c", WAITING_WRITER]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True) as there:
        assert there.stdout.readline() == "wrote\n"
        registry = next((directory_of(job) / "0").glob("registry.*")).stat().st_ino
        for _ in range(3):
            weir("run", "--rules", "rules.toml", "--", sys.executable, "-I", "-c", READER,
                env={"WEIR_JOB": job}, cwd=tmp_path).ok()
        weir("drain", "--wait", "--job", job).ok()
        assert next((directory_of(job) / "0").glob("registry.*")).stat().st_ino == registry
        there.stdin.close()
        assert there.wait(timeout=300) == 0
    assert (tmp_path / "out.dat").read_bytes() == b"x" * 1000
    assert gone(directory_of(job))


def test_processes_join_while_others_tidy_up(weir, job, tmp_path, preload):
    """Many short programs, each in its own time, while the directory is removed again and again:
    all have one registry or the next."""
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:65536:4:always=1|system\n"
    env = clean_environment({"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job})
    daemon = preload.parent / "weir-drain"
    end = tmp_path / "end"
    tidy = f"while [ ! -e {end} ]; do {daemon} --wait {directory_of(job)}/0; done"
    with subprocess.Popen(["sh", "-c", tidy], env=clean_environment()) as tidying:
        try:
            for _ in range(12):
                both = [
                    subprocess.Popen([sys.executable, "-I", "-c", READER], env=env, cwd=tmp_path,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for _ in range(2)
                ]
                assert [one.communicate(timeout=300) for one in both] == [(b"1000\n", b"")] * 2
                assert [one.returncode for one in both] == [0, 0]
        finally:
            end.touch()  # killed, it would leave a daemon that uses the directory
        tidying.wait(timeout=300)
    assert subprocess.run([daemon, "--wait", directory_of(job) / "0"], env=clean_environment(),
        timeout=300).returncode == 0
    assert gone(directory_of(job))


DAEMON = """
import os, signal, sys, time
if os.fork() > 0: os._exit(0)
os.setsid()
for fd in range(3): os.dup2(os.open('/dev/null', os.O_RDWR), fd)
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0: time.sleep(600)
    children.append(pid)
os.close(os.open('in.dat', os.O_RDONLY))
open('daemon.pid', 'w').write(str(os.getpid()))
os.kill(children.pop(), signal.SIGKILL)
open('wait.fifo').read()
for pid in children: os.kill(pid, signal.SIGTERM)
for _ in range(3): os.wait()
"""


@pytest.mark.parametrize("started_by", ["weir run", "preload"])
def test_nothing_is_left_of_a_daemon_that_outlives_what_started_it(weir, execute, preload, job,
        tmp_path, started_by):
    """As PostgreSQL's server does: no daemon was needed, `weir run` has ended long before, one of
    its children was killed."""
    os.mkfifo(tmp_path / "wait.fifo")
    command = [sys.executable, "-I", "-c", DAEMON]
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:65536:4:always=1|system\n"
    if started_by == "weir run":
        weir("run", "--rules", "rules.toml", "--", *command, env={"WEIR_JOB": job},
            cwd=tmp_path).ok()
    else:
        execute(command, env={"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job},
            cwd=tmp_path).ok()
    end = time.monotonic() + 300
    while not (tmp_path / "daemon.pid").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert {one.name.split(".")[0] for one in (directory_of(job) / "0").iterdir()} <= {"registry",
        "key"}, "no daemon"
    (tmp_path / "wait.fifo").write_text("end")
    assert gone(directory_of(job))
