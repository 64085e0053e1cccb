# SPDX-License-Identifier: Apache-2.0
"""Instructions of a call, counted by valgrind's callgrind: the same on a busy machine as on an idle
one. User code alone."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .measure import Bench, Case
from .tools import BARE, Tool

FEW, MANY = 2_000, 12_000


def executed(bench: Bench, tool: Tool, case: Case, count: int) -> int:
    """Instructions of the whole program with so many calls."""
    room = bench.room_of(tool)
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out", "--"),
            *(str(case.program), case.name, str(count), str(bench.data)),
        ]
        done = subprocess.run(command, env=environment(tool, room), capture_output=True, text=True,
            timeout=600)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"callgrind: {done.stderr[-1000:]}")
    return int(found.group(1))


def environment(tool: Tool, room: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **tool.environment(room)}


def per_call(bench: Bench, tool: Tool, case: Case) -> float:
    """What one call more costs: start and finish cancel out."""
    return (executed(bench, tool, case, MANY) - executed(bench, tool, case, FEW)) / (MANY - FEW)


def count(bench: Bench, cases: Sequence[Case], tools: Sequence[Tool]) -> list[dict]:
    """A row for each loop and level of weir."""
    rows = []
    for case in cases:
        bare = per_call(bench, next(t for t in tools if t.name == BARE), case)
        for tool in tools:
            if tool.is_weir and not tool.in_memory:
                rows.append({"loop": case.name, "title": case.title, "tool": tool.name,
                    "bare": bare, "added": per_call(bench, tool, case) - bare})
    return rows
