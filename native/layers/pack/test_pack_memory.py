# SPDX-License-Identifier: Apache-2.0
"""The memory of a packed file is used again for the next one, but not where anything else can still
reach it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid

import pytest

PROLOGUE = """
import array, fcntl, mmap, os, socket, subprocess, sys
os.chdir(sys.argv[1])
for name in "abc":
    with open(name + ".dat", "w") as f: f.write(name * 3000)
def memory(fd): return os.readlink(f"/proc/self/fd/{fd}")
"""


@pytest.fixture
def run(preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=p.zip:always=1|system\n"
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def run_one(program):
        done = subprocess.run([sys.executable, "-c", PROLOGUE + program, tmp_path], env=env,
            capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr

    yield run_one
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


@pytest.mark.parametrize("flags", ["os.O_RDONLY", "os.O_WRONLY | os.O_CREAT | os.O_TRUNC"])
def test_files_that_follow_one_another_have_one_memory(run, flags):
    run(f"""
seen = set()
for i in range(50):
    fd = os.open("abc"[i % 3] + ".dat", {flags}, 0o644)
    seen.add(memory(fd))
    os.close(fd)
assert len(seen) == 1, seen
""")


def test_nothing_is_left_of_the_file_before(run):
    run("""
with open("a.dat", "w") as f: f.write("long" * 5000)
os.chmod("a.dat", 0o600)
before = os.stat("b.dat")
with open("n.dat", "w") as f: pass
assert os.path.getsize("n.dat") == 0 and open("n.dat").read() == ""
fd = os.open("b.dat", os.O_RDONLY)
now = os.fstat(fd)
assert os.read(fd, 99999) == b"b" * 3000
for what in ("st_mode", "st_size", "st_mtime_ns", "st_uid", "st_gid"):
    assert getattr(before, what) == getattr(now, what), what
""")


OTHERS = {
    "map": """
m = mmap.mmap(fd, 3000, prot=mmap.PROT_READ)
again()
assert m[:] == b"a" * 3000
""",
    "path of /proc": """
other = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
again()
assert os.read(other, 9999) == b"a" * 3000
""",
    "another opening": """
other = os.open("a.dat", os.O_RDONLY)
again()
assert os.read(other, 9999) == b"a" * 3000
""",
    "forked child": """
ready, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    os.read(ready, 1)
    os._exit(os.pread(fd, 9999, 0) != b"a" * 3000)
again()
os.close(go)
assert os.waitpid(child, 0)[1] == 0
""",
    "program": """
other = subprocess.Popen(["sh", "-c", f"read x; cat <&{fd}"], pass_fds=[fd], text=True,
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
again()
assert other.communicate("go\\n")[0] == "a" * 3000
""",
    "message": """
one, two = socket.socketpair()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
again()
other = array.array("i", two.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2])[0]
assert os.pread(other, 9999, 0) == b"a" * 3000
""",
    "pipe": """
out, into = os.pipe()
assert os.sendfile(into, fd, 0, 3000) == 3000
again()
assert os.read(out, 9999) == b"a" * 3000
""",
    "lock": """
fcntl.flock(fd, fcntl.LOCK_SH)
again()
""",
}


@pytest.mark.parametrize("who", OTHERS)
def test_memory_that_others_may_have_is_not_used_again(run, who):
    run("""
fd = os.open("a.dat", os.O_RDONLY)
first = memory(fd)
def again():
    os.close(fd)
    for name in "bc":
        next = os.open(name + ".dat", os.O_RDONLY)
        assert memory(next) != first
        assert os.read(next, 9999) == name.encode() * 3000
        os.close(next)
""" + OTHERS[who])


def test_nothing_of_the_layer_keeps_memory_from_being_sealed(preload, tmp_path):
    """A shared mapping does, also for reading alone: what other processes write while a file
    becomes a real one would be lost."""
    if shutil.which("strace") is None:
        pytest.skip("strace shows the mappings")
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=p.zip:always=1|system\n"
    program = """
import os
for size in (3000, 700_000):
    for _ in range(2):
        with open(f"{size}.dat", "a") as f: f.write("x" * size)
    with open(f"{size}.dat", "r+") as f: f.write("x")
    os.link(f"{size}.dat", f"{size}.txt")
"""
    set_ = [f"-E{name}={value}" for name, value in
        (("LD_PRELOAD", preload), ("WEIR_RULES", rules), ("WEIR_JOB", job))]
    seen = subprocess.run(["strace", "-f", "-y", "-e", "trace=mmap,fcntl", "-o", "calls", *set_,
        sys.executable, "-c", program], cwd=tmp_path, timeout=300, check=False)
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
    assert seen.returncode == 0
    calls = (tmp_path / "calls").read_text()
    assert "memfd:weir-pack" in calls and (tmp_path / "700000.txt").stat().st_size == 1_400_000
    assert not [c for c in calls.splitlines() if "MAP_SHARED" in c and "memfd:weir-pack" in c]
