# SPDX-License-Identifier: Apache-2.0
"""Programs of a step that run still when its command has ended: nobody waited for them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

_GRACE_S, _LOOKS = 0.05, 4
_EXEC_S, _LOOKS_AT_EXEC = 0.001, 50
_MOST_NAMES = 3


def in_background(directory: str) -> list[tuple[int, str]]:
    """Number and command of the user's processes on this node that write a trace into the
    directory.

    One that is about to end is given a moment.
    """
    found = _tracing_into(directory)
    for _ in range(_LOOKS):
        if not found:
            break
        time.sleep(_GRACE_S)
        found = _tracing_into(directory)
    return found


def background_note(found: Sequence[tuple[int, str]]) -> str:
    names = [f"{command[:60]} (pid {pid})" for pid, command in found[:_MOST_NAMES]]
    if len(found) > _MOST_NAMES:
        names.append(f"{len(found) - _MOST_NAMES} more")
    subject = "1 process runs" if len(found) == 1 else f"{len(found)} processes run"
    return (
        f"{subject} still in the background: {'; '.join(names)}; the trace is incomplete until the "
        f"end of all"
    )


def _tracing_into(directory: str) -> list[tuple[int, str]]:
    wanted = b"WEIR_TRACE_DIR=" + os.fsencode(directory)
    found = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdecimal():
                continue
            try:
                if entry.stat().st_uid != os.geteuid():
                    continue
                if wanted not in _environment(entry.name).split(b"\0"):
                    continue
                words = _read(entry.name, "cmdline").rstrip(b"\0").split(b"\0")
            except OSError:  # it has ended, or may not be looked at
                continue
            found.append((int(entry.name), os.fsdecode(b" ".join(words))))
    return sorted(found)


def _environment(pid: str) -> bytes:
    """A process that is about to become another program (exec) shows no arguments and no
    environment for a moment."""
    for _ in range(_LOOKS_AT_EXEC):
        found = _read(pid, "environ")
        if found or _read(pid, "cmdline"):
            break
        if not os.path.lexists(f"/proc/{pid}/exe"):  # it has ended, or is a thread of the kernel
            break
        time.sleep(_EXEC_S)
    return found


def _read(pid: str, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as stream:
        return stream.read()
