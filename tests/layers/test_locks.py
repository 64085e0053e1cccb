# SPDX-License-Identifier: Apache-2.0
"""Locks that a process takes by one descriptor of a file and keeps whatever it does with another,
as long as it closes none: also where a layer has descriptors of its own."""

from __future__ import annotations

import sys

import pytest

STACKS = ["bufa:4KiB:4:direct=1:always=1", "keep:always=1", "global:4KiB:2:always=1",
    "forward:8KiB:8:always=1", "stripe:dirs={at}/a,{at}/b:unit=4KiB",
    "pack:name=out.zip:always=1", "cos:2", "event"]

PROGRAM = """
import ctypes, fcntl, mmap, os
path = "locked.dat"
with open(path, "wb") as f: f.write(b"x" * 40_000)

def show(what):  # as another process sees it
    child = os.fork()
    if child == 0:
        try: fcntl.lockf(last, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: os._exit(1)
        os._exit(0)
    print(what, "is locked" if os.waitpid(child, 0)[1] else "is not locked", flush=True)

first = last = os.open(path, os.O_RDWR)
fcntl.lockf(first, fcntl.LOCK_EX)
show("locked")
last = os.open(path, os.O_RDWR)
show("opened again")
os.pwrite(last, b"y" * 9_000, 4096), os.pread(last, 9_000, 8192)
os.fsync(last)
show("written")
fcntl.fcntl(last, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)
show("other flags")
os.write(last, b"z" * 9_000)
show("appended")
os.ftruncate(last, 100)
show("truncated")
ctypes.CDLL(None).mmap(None, 100, mmap.PROT_READ, mmap.MAP_SHARED, last, 0)
show("mapped")
os.read(os.open(path, os.O_RDONLY), 100)
show("open three times")
fcntl.lockf(first, fcntl.LOCK_UN)
show("given back")
"""


@pytest.mark.parametrize("stack", STACKS)
def test_a_lock_by_one_descriptor_outlives_calls_on_another(weir, tmp_path, stack):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "{stack.format(at=tmp_path)}"\n')
    for directory in (tmp_path / "a", tmp_path / "b", tmp_path / "run"): directory.mkdir()
    program = [sys.executable, "-c", PROGRAM]
    lines = weir("run", "--rules", rules, "--", *program, cwd=directory).ok().stdout.splitlines()
    assert len(lines) == 9
    assert [line for line in lines if "is not locked" in line] == ["given back is not locked"]
