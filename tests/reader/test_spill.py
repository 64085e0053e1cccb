# SPDX-License-Identifier: Apache-2.0
"""Large arrays lie in a temporary file once those in memory have so many bytes: what they hold, and
that private memory stays below a limit that the same report does not fit otherwise."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ARRAYS = """
import ctypes, os, sys, threading, time
import numpy as np
from weir.analysis.memory import follow, spill_arrays
from weir.trace._abi import spill_functions

def sizes():
    found = [ctypes.c_uint64(), ctypes.c_uint64()]
    spill_functions()[2](*map(ctypes.byref, found))
    return [one.value for one in found]

def mapped():
    [line] = [one for one in open("/proc/self/status") if one.startswith("RssFile")]
    return int(line.split()[1]) * 1024

spill_arrays(4 << 20)
first = np.arange(300_000)  # 2.4 MB: private
assert sizes()[1] == 0 < sizes()[0], sizes()
second = np.arange(1_000_000)  # 8 MB: not
assert sizes()[1] >= 8_000_000, sizes()
before = mapped()
many = [np.full(200_000, number) for number in range(200)]  # 320 MB
assert mapped() - before < 80 << 20, (mapped(), before)  # 64 MiB, and what was made last
assert all((one == number).all() for number, one in enumerate(many))
assert sizes()[0] < 4 << 20, sizes()
assert sum(int(one.sum()) for one in many) == sum(200_000 * number for number in range(200))
while mapped() - before > 80 << 20:  # no array is made
    time.sleep(0.01)
del many[::2]
again = [np.zeros(150_000, np.int64) for _ in range(100)]  # in the places of others
assert not any(one.any() for one in again)
assert all((one == 1 + 2 * number).all() for number, one in enumerate(many))
second.resize(3_000_000, refcheck=False)
assert (second[:1_000_000] == np.arange(1_000_000)).all() and not second[1_000_000:].any()
first.resize(10, refcheck=False)
assert first.tolist() == [*range(10)]

found = []
def in_thread():
    follow()
    before = sizes()[1]
    array = np.ones(2_000_000)
    found.append(sizes()[1] - before)
one = threading.Thread(target=in_thread)
one.start(), one.join()
assert found[0] >= 16_000_000, found
del many, again, second
assert sizes() == [0, 0], sizes()
print("whole")
"""
CHILD = """
import os
import numpy as np
from weir.analysis.memory import spill_arrays
spill_arrays(0)
spare, parents = np.ones(1_000_000), np.ones(1_000_000)
del spare
if (pid := os.fork()) == 0:
    mine = np.ones(1_000_000)
    print(mine.sum(), flush=True)
    del parents, mine
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
REPORT = """
import resource, sys
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
import weir.analysis.memory as memory
if sys.argv[3] == "private":
    memory.spill_arrays = lambda: None
else:
    memory.spill_arrays.__defaults__ = (int(sys.argv[3]),)
sys.argv[:] = ["weir", "report", sys.argv[1], "--json"]
from weir.cli import main
sys.exit(main())
"""
RECORDS = 100_000


@pytest.fixture(scope="module")
def run(root, tmp_path_factory):
    """bench/waiting.py's: ranks with messages, requests and collectives of all kinds."""
    sys.path.insert(0, str(root / "bench"))
    try:
        from waiting import write_run
    finally:
        sys.path.pop(0)
    made = tmp_path_factory.mktemp("spill") / "run"
    write_run(made, RECORDS)
    return made


def report(run, limit: int, kept: int | str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", REPORT, str(run), str(limit), str(kept)],
        capture_output=True, text=True)


def test_arrays_keep_what_they_hold_wherever_they_lie(execute):
    assert execute([sys.executable, "-c", ARRAYS]).ok().stdout == "whole\n"


def test_a_child_has_arrays_of_its_own(execute):
    assert execute([sys.executable, "-c", CHILD]).ok().stdout == "1000000.0\n"


def test_a_report_is_the_same_with_its_arrays_in_a_file(run):
    private, spilled = (report(run, 0, kept) for kept in ("private", 0))
    assert private.returncode == spilled.returncode == 0, spilled.stderr
    assert json.loads(private.stdout)["waits"][0]["routines"]
    assert spilled.stdout == private.stdout


def test_no_file_is_left(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert report(run, 0, 0).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_room_leaves_arrays_in_memory(run, tmp_path, monkeypatch):
    """Below /dev/shm a file would take memory, too."""
    monkeypatch.setenv("TMPDIR", "/dev/shm")
    assert report(run, 0, 0).returncode == 0
