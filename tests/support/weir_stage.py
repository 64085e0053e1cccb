# SPDX-License-Identifier: Apache-2.0
"""What tests of the layer stage look at: the files of a tier, and those at their place."""

from __future__ import annotations

import os
import time
from pathlib import Path


def real_files(where):
    return {str(p.relative_to(where)): p.read_bytes() for p in sorted(where.rglob("*"))
        if p.is_file() and not p.is_symlink()}


def tier_files(tier, where):
    below = Path(f"{tier}/tree{where}")
    return {str(p.relative_to(below)): p.read_bytes() for p in below.rglob("*") if p.is_file()}


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def drained(tier):
    marks = Path(f"{tier}/marks")
    return all(os.readlink(mark)[0] == "c" for mark in marks.iterdir()
        if mark.is_symlink() and mark.suffix == "")


def daemon_of(tier) -> int | None:
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:3] == [b"weir-stage", b"--daemon", os.fsencode(tier)]:
            return int(process.name)
    return None
