# SPDX-License-Identifier: Apache-2.0
"""Processes of several PID namespaces (containers) that share /dev/shm: the number of one means
nothing in another, and none is taken for dead because its number is not in use there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid

import pytest

APART = ["unshare", "-p", "-f"]  # the first process in the new namespace has number 1
pytestmark = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*APART, "true"], capture_output=True).returncode != 0,
    reason="a PID namespace cannot be made here",
)
STACKS = ["bufa:4096:64:always=1|system", "global:65536:4:always=1|system",
    "gather:65536:4:always=1|system", "forward:65536:8:always=1|system"]


@pytest.fixture
def layered(preload):
    job = f"apart-{uuid.uuid4().hex[:12]}"

    def variables(stack: str = STACKS[0]) -> dict[str, str]:
        rules = f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={stack}\n"
        return {"LD_PRELOAD": str(preload), "WEIR_JOB": job, "WEIR_RULES": rules}

    return variables


# What a process holds is written before it starts another one, so that this one is there before.
HOLDER = """
import os, subprocess, sys
shell = ["unshare", "-p", "-f", "sh", "-c", "read go; " + sys.argv[1]]
other = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
f = os.open("out.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
for i in range(int(sys.argv[2])): os.write(f, b"line %d\\n" % i)
said = other.communicate(b"go\\n")[0]
os.write(f, b"end\\n")
os.close(f)
sys.stdout.buffer.write(said)
"""
COUNT, FEW = 1000, 300  # few are less than a block: the process writes none before it ends
LINES = "".join(f"line {i}\n" for i in range(COUNT))
FEW_LINES = "".join(f"line {i}\n" for i in range(FEW))


@pytest.mark.parametrize("stack", STACKS)
def test_a_reader_in_another_namespace_gets_the_bytes_that_a_living_process_holds(execute, layered,
        tmp_path, stack):
    """The holder is called back. A process taken for dead would be waited for (60 s) until it has
    been written out by the daemon."""
    command = [sys.executable, "-c", HOLDER, "cat out.dat", str(COUNT)]
    assert execute(command, cwd=tmp_path, env=layered(stack), timeout=40).ok().stdout == LINES
    assert (tmp_path / "out.dat").read_text() == LINES + "end\n"


def test_a_holder_in_another_namespace_is_called_back(execute, layered, tmp_path):
    """The other way round: the holder has number 1 in its own."""
    inner = """
import os, sys
to, back = map(int, sys.argv[1:])
f = os.open("out.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(f, b"held")
os.write(to, b"1")
os.read(back, 1)
os.write(f, b" on")
os.close(f)
"""
    outer = """
import os, subprocess, sys
(held, to), (back, go) = os.pipe(), os.pipe()
holder = subprocess.Popen([*sys.argv[1:], str(to), str(back)], pass_fds=(to, back))
os.read(held, 1)
sys.stdout.write(open("out.dat").read())
os.write(go, b"1")
sys.exit(holder.wait())
"""
    command = [sys.executable, "-c", outer, *APART, sys.executable, "-c", inner]
    assert execute(command, cwd=tmp_path, env=layered(), timeout=40).ok().stdout == "held"
    assert (tmp_path / "out.dat").read_text() == "held on"


def test_a_daemon_in_another_namespace_leaves_the_arena_of_a_living_process(execute, layered,
        preload, tmp_path):
    """It neither writes its bytes out, nor gives them up, nor reports the process as dead."""
    env = layered()
    directory = f"/dev/shm/weir.{os.geteuid()}.{env['WEIR_JOB']}/0"
    drain = preload.with_name("weir-drain")
    commands = "; ".join(f"LD_PRELOAD= {drain} --{what} {directory}"
        for what in ("status", "wait", "discard", "status"))
    said = execute([sys.executable, "-c", HOLDER, commands, str(FEW)], cwd=tmp_path, env=env,
        timeout=60).ok().stdout
    assert [json.loads(line)["alive"] for line in said.splitlines()] == [True, True]
    before, after = (json.loads(line)["dirty_bytes"] for line in said.splitlines())
    assert 0 < before == after
    assert (tmp_path / "out.dat").read_text() == FEW_LINES + "end\n"


def test_bytes_of_a_process_that_was_killed_with_its_namespace_are_written_out_by_another(execute,
        layered, weir, tmp_path):
    """The daemon was of that namespace, too."""
    program = """
import os, signal, struct, sys
f = os.open("out.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
for i in range(1000): os.write(f, b"line %d\\n" % i)
daemon = struct.unpack("4I", open(sys.argv[1] + "/pulse", "rb").read(16))[2]
for pid in daemon, os.getpid(): os.kill(pid, signal.SIGKILL)
"""
    (tmp_path / "program.py").write_text(program)
    env = layered()
    directory = f"/dev/shm/weir.{os.geteuid()}.{env['WEIR_JOB']}/0"
    execute([*APART, "sh", "-c", f"{sys.executable} program.py {directory}; true"], cwd=tmp_path,
        env=env, timeout=40).ok()
    assert (tmp_path / "out.dat").read_text() != LINES
    weir("drain", "--wait", "--job", env["WEIR_JOB"], timeout=30).ok()
    assert (tmp_path / "out.dat").read_text() == LINES
