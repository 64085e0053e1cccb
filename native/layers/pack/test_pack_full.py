# SPDX-License-Identifier: Apache-2.0
"""A full disk: a close that succeeded has stored its file, and the program sees ENOSPC in the call
that did not. On a tmpfs of 6 MiB, on an ext4 one and on an ext2 one, which has no fallocate."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
import uuid
import zipfile

import pytest

from weir._errors import InputError
from weir.pack import Container, repair, verify

FILE_BYTES = 30_000
# Prints each file whose close succeeded, and the error of the first that did not.
WRITER = """
import errno, os, signal, sys
data = open("../data", "rb").read()
closed, refused = [], []
for number in range(400):
    fd = os.open(f"plot_{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(fd, data)
        os.close(fd)
        closed.append(f"plot_{number}")
        os.write(1, f"{closed[-1]}\\n".encode())
    except OSError as error:
        refused.append(errno.errorcode[error.errno])
        if sys.argv[1] == "die": os.kill(os.getpid(), signal.SIGKILL)
assert set(refused) == {"ENOSPC"}, refused
listed = [name for name in os.listdir(".") if name.startswith("plot_")]
assert sorted(listed) == sorted(closed), set(listed) ^ set(closed)
for name in closed: assert open(name, "rb").read() == data
"""


@pytest.fixture(params=["tmpfs", "ext4", "ext2"])
def full(request, preload, tmp_path):
    """``full(command, status)``: its output, run by the layer in a small file system."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    directory, image = tmp_path / "full", tmp_path / "image"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", directory]
    if request.param != "tmpfs":
        with open(image, "wb") as file:
            file.truncate(6 << 20)
        if shutil.which(f"mkfs.{request.param}") is None:
            pytest.skip(f"needs mkfs.{request.param}")
        subprocess.run([f"mkfs.{request.param}", "-qF", image], check=True, capture_output=True)
        mount = ["mount", "-o", "loop", image, directory]
    if (done := subprocess.run(mount, capture_output=True, text=True)).returncode != 0:
        pytest.skip(f"cannot mount {request.param}: {done.stderr.strip()}")
    shutil.rmtree(directory / "lost+found", ignore_errors=True)
    (tmp_path / "data").write_bytes(os.urandom(FILE_BYTES))
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = ("weir-rules 1\n"
             "rule source=test:1 name=plot_* stack=pack:name=plots.zip:always=1|system\n")
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_JOB": job, "WEIR_RULES": rules}

    def run(*command, status=0):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300,
            cwd=directory, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        run.errors = done.stderr
        return done.stdout.split()

    run.directory, run.container, run.env = directory, directory / "plots.zip", env
    yield run
    subprocess.run(["umount", "-l", directory], check=True)
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


def contents(run):
    """The archive's files as other programs read them, all whole; no space is left reserved."""
    with zipfile.ZipFile(run.container) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-tq", run.container], check=True, stdout=subprocess.DEVNULL)
    assert verify(run.container) == (len(names), [])
    about = run.container.stat()  # a chunk has 64 KiB; ext2 has blocks of block numbers, too
    assert about.st_blocks * 512 <= about.st_size + 32768
    return sorted(names)


@pytest.mark.timeout(300)
def test_each_cp_that_succeeds_has_stored_its_file(full):
    script = "for i in $(seq 400); do cp ../data plot_$i || exit 7; echo plot_$i; done"
    copied = full("bash", "-c", script, status=7)
    assert os.strerror(errno.ENOSPC) in full.errors
    assert len(copied) > 100 and contents(full) == sorted(copied)
    full("bash", "-c", "for i in $(seq $0); do cmp ../data plot_$i || exit 1; done",
         str(len(copied)))


@pytest.mark.timeout(300)
def test_closes_that_succeed_in_one_process_have_stored_their_files(full):
    closed = full(sys.executable, "-c", WRITER, "end")
    assert len(closed) > 140 and contents(full) == sorted(closed)
    number = len(closed)
    assert f"plot_{number}: {FILE_BYTES} bytes accepted were not written" in full.errors


@pytest.mark.timeout(300)
@pytest.mark.parametrize("who", ["repair", "next job"])
def test_a_container_on_a_full_disk_is_repaired_after_a_kill(full, who):
    closed = full(sys.executable, "-c", WRITER, "die", status=-9)
    (full.directory / "rest").write_bytes(b"")
    subprocess.run(["dd", "if=/dev/zero", f"of={full.directory}/rest", "bs=4096"],
        check=False, capture_output=True)  # whatever is left
    end = time.monotonic() + 300
    while True:  # until the write-back daemon has written what had been closed
        with Container(full.container) as archive:
            assert archive.directory() is None
            if sorted(archive.scan()) == sorted(closed):
                break
        assert time.monotonic() < end
        time.sleep(0.05)
    if who == "repair":
        assert repaired(full.container, end) == (len(closed), True)
    else:
        full("bash", "-c", "cmp ../data plot_0")
    assert contents(full) == sorted(closed)


def repaired(container, end: float) -> tuple[int, bool]:
    """The write-back daemon has the lock for a moment longer than it writes."""
    while True:
        try:
            return repair(container)
        except InputError:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.timeout(300)
def test_files_are_removed_on_a_full_disk(full):
    closed = full(sys.executable, "-c", WRITER, "end")
    subprocess.run(["dd", "if=/dev/zero", f"of={full.directory}/rest", "bs=4096"],
        check=False, capture_output=True)
    full("rm", "plot_0", "plot_1")
    assert contents(full) == sorted(set(closed) - {"plot_0", "plot_1"})
    with Container(full.container) as archive:
        assert sorted(archive.scan()) == sorted(set(closed) - {"plot_0", "plot_1"})


HOLDER = """
import sys
open("plot_held", "wb").close()
print("there", flush=True)
sys.stdin.read()
"""
# 30 files fill the smaller chunks: the next begins one of 1 MiB.
KILLED = """
import os, signal
data = open("../data", "rb").read()
for number in range(36):
    with open(f"plot_{number}", "wb") as file: file.write(data)
os.kill(os.getpid(), signal.SIGKILL)
"""
LATER = """
data = open("../data", "rb").read()
for number in range(100, 110):
    with open(f"plot_{number}", "wb") as file: file.write(data)
for number in [*range(36), *range(100, 110)]: assert open(f"plot_{number}", "rb").read() == data
"""


@pytest.mark.timeout(300)
def test_space_that_a_killed_process_had_reserved_is_used(full, weir):
    """While others of the node live: the last of them gives back what is left."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], env=full.env, cwd=full.directory,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"there\n"
    full(sys.executable, "-c", KILLED, status=-9)
    weir("drain", "--wait", "--job", full.env["WEIR_JOB"], timeout=60).ok()
    subprocess.run(["dd", "if=/dev/zero", f"of={full.directory}/rest", "bs=4096"],
        check=False, capture_output=True)
    full(sys.executable, "-c", LATER)
    holder.communicate(b"", timeout=300)
    names = {"plot_held"} | {f"plot_{n}" for n in [*range(36), *range(100, 110)]}
    assert contents(full) == sorted(names)
