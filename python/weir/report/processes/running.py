# SPDX-License-Identifier: Apache-2.0
"""Whether a process that a trace names runs still, on the machine that asks."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

_LATER_S = 2.0  # a program's first record is younger than its process; clocks of /proc have 10 ms


def is_running(pid: int, exe: str, command: Sequence[str], start_realtime_ns: int) -> bool:
    """Whether the process with this number is that one: its program, and no younger than the record
    of its start.

    A zombie does not run. False also where /proc does not tell. The caller has checked that the
    trace is of this machine.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
        state, threads, start_ticks = fields[0], int(fields[17]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return False
    if state in (b"Z", b"X") and threads <= 1:
        return False
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")
    if time.time() - age_s > start_realtime_ns / 1e9 + _LATER_S:
        return False
    return _is_program(pid, exe, command)


def _is_program(pid: int, exe: str, command: Sequence[str]) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe") == exe
    except OSError:  # another user's
        pass
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")[:-1]
    except OSError:
        return False
    return bool(words) and [os.fsdecode(word) for word in words] == list(command)


def ancestors() -> frozenset[int]:
    """The processes that started this one: they end after it does."""
    found = []
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.append(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as stream:
                pid = int(stream.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return frozenset(found)
