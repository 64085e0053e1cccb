# SPDX-License-Identifier: Apache-2.0
"""Layer stage on a tier without room: a tmpfs of 2 MiB. Files go to their place, those that are
open as well; the program sees no error."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

BYTES = 3 << 20
START = """
import os, subprocess, sys, time
def piece(i): return bytes([i % 251]) * 65536
pieces = [piece(i) for i in range(48)]
def at_place(name):  # as a program without rules sees it
    return subprocess.run(["cat", name], env={"PATH": os.environ["PATH"]},
        capture_output=True).stdout
fd = os.open("out.dat", os.O_RDWR | os.O_CREAT, 0o640)
def check(name="out.dat"):
    data = at_place(name)
    assert data == b"".join(pieces), len(data)
"""
WAYS = {
    "write": "for p in pieces: assert os.write(fd, p) == len(p)",
    "one large write": "assert os.write(fd, b''.join(pieces)) == 48 << 16",
    "writev": "for i in range(0, 48, 4): assert os.writev(fd, pieces[i:i+4]) == 4 << 16",
    "pwrite": "for i in reversed(range(48)): assert os.pwrite(fd, pieces[i], i << 16) == 65536",
    "append": "a = os.open('out.dat', os.O_WRONLY | os.O_APPEND); os.close(fd)\n"
              "for p in pieces: assert os.write(a, p) == len(p)",
    "copied descriptor": "other = os.dup(fd); os.dup2(fd, 77)\n"
        "for i, p in enumerate(pieces): assert os.write((fd, other, 77)[i % 3], p) == len(p)",
    "threads": "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    assert set(pool.map(lambda i: os.pwrite(fd, pieces[i], i << 16), range(48))) == {65536}",
    "stream": "f = open(fd, 'wb', closefd=False)\nfor p in pieces: assert f.write(p) == len(p)\n"
              "f.close()",
    "sendfile": "open('source', 'wb').write(b''.join(pieces))\n"
        "s = os.open('source', os.O_RDONLY)\nwhile os.sendfile(fd, s, None, 1 << 20): pass",
}


@pytest.fixture
def full(run, tmp_path, tier):
    """Runs a Python program with a tier of 2 MiB."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a tmpfs needs root and unshare")
    tier.mkdir(mode=0o700)

    def call(program: str, **more):
        script = f'mount -t tmpfs -o size=2m,mode=700 tmpfs {tier} && exec {sys.executable} -c "$0"'
        command = ("unshare", "-m", "env", "-u", "LD_PRELOAD", "sh", "-c",
            script.replace("exec ", 'exec env LD_PRELOAD="$PRELOAD" '), program)
        return run(*command, **more)

    return call


@pytest.fixture
def library(preload):
    return {"PRELOAD": str(preload)}


@pytest.mark.parametrize("way", WAYS)
def test_an_open_file_goes_on_at_its_place(full, library, way, tmp_path):
    end = "\nos.close(fd) if %r != 'append' else os.close(a)\ncheck()" % way
    done = full(START + WAYS[way] + end, **library)
    assert done.returncode == 0, done.stderr
    place = tmp_path / "staged/out.dat"
    assert place.stat().st_size == BYTES and place.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("call", ["lockf", "flock"])
def test_locks_go_with_the_file(full, library, call):
    done = full(START + f"""
import fcntl
fcntl.{call}(fd, fcntl.LOCK_EX)
for p in pieces: assert os.write(fd, p) == len(p)
check()
asks = "import fcntl; fcntl.{call}(open('out.dat', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
other = subprocess.run([sys.executable, "-c", asks], env={{"PATH": os.environ["PATH"]}},
    capture_output=True, text=True)
assert "BlockingIOError" in other.stderr, other.stderr
""", **library)
    assert done.returncode == 0, done.stderr


def test_what_is_written_there_is_seen_by_name_at_once(full, library):
    done = full(START + "for p in pieces: os.write(fd, p)\n"
        "assert os.stat('out.dat').st_size == os.fstat(fd).st_size == 48 << 16\ncheck()\n"
        "assert os.lseek(fd, 0, 1) == 48 << 16 and os.pread(fd, 65536, 65536) == pieces[1]\n"
        "os.rename('out.dat', 'other.dat'); os.write(fd, b'')\ncheck('other.dat')", **library)
    assert done.returncode == 0, done.stderr


def test_a_file_without_write_permission_goes_on(full, library, tmp_path):
    done = full("import os\nfd = os.open('out.dat', os.O_WRONLY | os.O_CREAT, 0o444)\n"
        "for i in range(48): assert os.write(fd, b'x' * 65536) == 65536\n", **library)
    assert done.returncode == 0, done.stderr
    place = tmp_path / "staged/out.dat"
    assert place.stat().st_size == BYTES and place.stat().st_mode & 0o777 == 0o444


MAPPED = """
import mmap
f = open(fd, "r+b", closefd=False)
f.truncate(48 << 16)
def store():
    with mmap.mmap(fd, 48 << 16) as m:
        for i, p in enumerate(pieces): m[i << 16:(i + 1) << 16] = p
"""


def test_a_file_is_mapped_where_there_is_room(full, library, tmp_path):
    done = full(START + MAPPED + "store()\ncheck()\nassert os.fstat(fd).st_size == 48 << 16",
        **library)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert (tmp_path / "staged/out.dat").stat().st_size == BYTES


def test_a_mapping_for_which_there_is_no_room_is_refused(full, library):
    done = full(START + MAPPED + "child = os.fork()\nif child == 0:\n    time.sleep(600)\n"
        "try:\n    store()\nexcept OSError as e: print(e.errno)\nos.kill(child, 9)", **library)
    assert done.stdout == "12\n", (done.returncode, done.stderr)


def test_a_mapped_file_that_has_room_stays_on_the_tier(full, library, tmp_path):
    done = full(START + MAPPED.replace("48 << 16", "16 << 16").replace("enumerate(pieces)",
        "enumerate(pieces[:1])") + "store()\nos.close(fd)", drain="end", **library)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert not (tmp_path / "staged/out.dat").exists()


def test_files_that_others_have_open_stay_and_report_it(full, library):
    done = full(START + "child = os.fork()\nif child == 0:\n    import time; time.sleep(600)\n"
        "try:\n    for p in pieces: os.write(fd, p)\nexcept OSError as e: print(e.errno)\n"
        "os.kill(child, 9)", **library)
    assert done.stdout == "28\n", done.stderr


def test_copies_make_room_first(full, library, tier):
    script = START + f"MARKS = {str(tier / 'marks')!r}" + """
open("first.dat", "wb").write(bytes(700 << 10))
def is_copy(mark): return mark.isdecimal() and os.readlink(f"{MARKS}/{mark}").startswith("c")
while not any(map(is_copy, os.listdir(MARKS))): time.sleep(0.01)
assert len(at_place("first.dat")) == 700 << 10
for p in pieces[:24]: assert os.write(fd, p) == len(p)
assert at_place("out.dat") == b""
"""
    done = full(script, drain="async", **library)
    assert done.returncode == 0, done.stderr



def test_a_long_path_needs_no_room_that_is_not_there(full, library, tmp_path):
    """The text of a mark takes a page of the tier where the path is long."""
    done = full("import os\nfd = os.open('out.dat', os.O_WRONLY | os.O_CREAT, 0o640)\n"
        "for i in range(48): assert os.write(fd, b'x' * 65536) == 65536\n",
        where=tmp_path / ("d" * 200), **library)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ("d" * 200) / "out.dat").stat().st_size == BYTES


def test_a_file_that_is_closed_when_the_tier_is_full_is_not_taken_for_unfinished(full, library,
        tier, tmp_path):
    done = full("import os, sys\nfd = os.open('out.dat', os.O_WRONLY | os.O_CREAT)\n"
        f"os.write(fd, b'x' * 65536)\nrest = os.open('{tier}/rest', os.O_WRONLY | os.O_CREAT)\n"
        "try:\n    while os.write(rest, b'y' * 4096): pass\nexcept OSError: pass\nos.close(fd)\n"
        f"for mark in os.listdir('{tier}/marks'): print(os.readlink('{tier}/marks/' + mark)[:3])\n",
        where=tmp_path / ("d" * 200), **library)
    assert done.stdout == "wn.\n", (done.stdout, done.stderr)
