# SPDX-License-Identifier: Apache-2.0
"""The memory of a packed file holds another file's bytes until the first write: nobody sees them,
whatever comes before that write, in this process or in another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

import pytest

PROLOGUE = """
import array, fcntl, mmap, os, socket, subprocess, sys, threading
os.chdir(sys.argv[1])
def stored(name, data):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    assert os.write(fd, data) == len(data)
    os.close(fd)
def elsewhere(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
def begin(flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    stored("before.dat", b"stale" * 1000)
    return os.open("a.dat", flags, 0o644)
"""


@pytest.fixture
def run(preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=p.zip:always=1|system\n"
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def run_one(program, *words):
        done = subprocess.run([sys.executable, "-c", PROLOGUE + program, tmp_path, *words], env=env,
            capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return tmp_path / "p.zip"

    yield run_one
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


# What comes between the open and the first write; what the file holds before that.
BETWEEN = {
    "nothing": "",
    "fstat": "assert os.fstat(fd).st_size == 0",
    "its end": "assert os.lseek(fd, 0, os.SEEK_END) == 0",
    "stat": "assert os.stat('a.dat').st_size == 0",
    "stat of another process": "assert elsewhere('import os; print(os.path.getsize(\"a.dat\"))') == '0\\n'",
    "opening of another process": "assert elsewhere('print(open(\"a.dat\").read())') == '\\n'",
    "another opening": "assert open('a.dat').read() == ''",
    "a copy": "os.close(os.dup(fd))",
    "stat by /proc": "assert os.stat(f'/proc/self/fd/{fd}').st_size == 0",
    "opening by /proc": "assert open(f'/proc/self/fd/{fd}').read() == ''",
    "opening by /dev": "assert open(f'/dev/fd/{fd}').read() == ''",
    "a child": """
if os.fork() == 0:
    os._exit(os.fstat(fd).st_size)
assert os.wait()[1] == 0
""",
    "a program": """
got = subprocess.run(["sh", "-c", f"cat </proc/self/fd/{fd}"], pass_fds=[fd], capture_output=True)
assert got.stdout == b"", got
""",
    "a message": """
one, two = socket.socketpair()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
other = array.array("i", two.recvmsg(1, socket.CMSG_SPACE(4))[1][0][2])[0]
assert os.fstat(other).st_size == 0
os.close(other)
""",
    "a lock": "fcntl.flock(fd, fcntl.LOCK_EX)",
    "chmod": "os.chmod('a.dat', 0o600)",
    "empty write": "assert os.write(fd, b'') == 0",
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("data", [b"new", b"x" * 7000], ids=["shorter", "longer"])
def test_only_what_was_written_is_there(run, between, data):
    archive = run(f"""
data = {data!r}
fd = begin()
{BETWEEN[between]}
assert os.write(fd, data) == len(data)
assert os.write(fd, b"more") == 4
os.close(fd)
assert open("a.dat", "rb").read() == data + b"more"
""")
    found = archive if archive.exists() else None
    if found is not None and "a.dat" in zipfile.ZipFile(found).namelist():
        assert zipfile.ZipFile(found).read("a.dat") == data + b"more"
    else:  # a child or a program made a real file of it
        assert (archive.parent / "a.dat").read_bytes() == data + b"more"


@pytest.mark.parametrize("what", ["", "os.fsync(fd)", "os.rename('a.dat', 'b.dat')",
    "os.link('a.dat', 'a.lnk')", "os.truncate('a.dat', 0)"])
def test_a_file_without_a_write_is_empty(run, what):
    run(f"""
fd = begin()
{what}
os.close(fd)
name = "b.dat" if os.path.exists("b.dat") else "a.dat"
assert os.path.getsize(name) == 0 and open(name).read() == ""
""")


def test_other_ways_to_write_leave_nothing_of_the_file_before(run):
    run("""
fd = begin()
assert os.pwrite(fd, b"x", 3) == 1
os.close(fd)
assert open("a.dat", "rb").read() == b"\\0\\0\\0x"
fd = begin()
assert os.writev(fd, [b"ab", b"cd"]) == 4
os.close(fd)
assert open("a.dat", "rb").read() == b"abcd"
fd = begin(os.O_RDWR | os.O_CREAT | os.O_TRUNC)
assert os.read(fd, 10) == b""
assert os.write(fd, b"one") == 3 and os.pread(fd, 10, 0) == b"one"
os.close(fd)
fd = begin(os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.ftruncate(fd, 5)
with mmap.mmap(fd, 5) as m: assert m[:] == bytes(5)
os.close(fd)
fd = begin()
with os.fdopen(fd, "w") as f: f.write("stream")
assert open("a.dat").read() == "stream"
fd = begin()
os.rename("a.dat", "c.dat")
assert os.write(fd, b"renamed") == 7
os.close(fd)
assert open("c.dat").read() == "renamed"
fd = begin()
os.unlink("a.dat")
assert os.fstat(fd).st_size == 0 and os.write(fd, b"gone") == 4
os.close(fd)
stored("z.dat", b"z")
assert open("z.dat").read() == "z" and not os.path.exists("a.dat")
""")


def test_writes_of_threads_are_all_there(run):
    run("""
for turn in range(30):
    fd = begin()
    threads = [threading.Thread(target=os.write, args=(fd, bytes([65 + i]) * (20 + i)))
        for i in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    os.close(fd)
    data = open("a.dat", "rb").read()
    assert len(data) == sum(20 + i for i in range(6)), data
    for i in range(6): assert bytes([65 + i]) * (20 + i) in data, data
""")


def test_a_file_that_is_read_has_its_time_when_somebody_looks(run):
    run("""
stored("a.dat", b"old")
os.utime("a.dat", ns=(0, 1_000_000_000_000_000_007))
stored("before.dat", b"later")
for look in (lambda fd: os.fstat(fd), lambda fd: os.stat(f"/proc/self/fd/{fd}"),
        lambda fd: os.stat("a.dat"), lambda fd: os.fstat(os.dup(fd))):
    for reads in (False, True):
        fd = os.open("a.dat", os.O_RDONLY)
        if reads: assert os.read(fd, 10) == b"old"
        assert look(fd).st_mtime_ns == 1_000_000_000_000_000_007
        os.close(fd)
fd = os.open("a.dat", os.O_RDONLY)
again = os.open("a.dat", os.O_RDWR)
os.close(again)
os.close(fd)
assert os.stat("a.dat").st_mtime_ns == 1_000_000_000_000_000_007
fd = os.open("a.dat", os.O_RDONLY)
got = subprocess.run(["stat", "-L", "-c", "%Y", f"/proc/self/fd/{fd}"], pass_fds=[fd],
    capture_output=True, text=True)
assert got.stdout == "1000000000\\n", got
""")
