# SPDX-License-Identifier: Apache-2.0
"""Runs one program to its end, or kills all of it when its time is over."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from weir._errors import Error

_POLITE_S, _KILLED_S = 5.0, 10.0
_starting, _put_off = False, 0  # a program; the signal that came meanwhile


class RunFailed(Error, RuntimeError):
    """A program that was to be measured did not succeed; the message is the last that it said."""


def run(command: Sequence[str], environment: Mapping[str, str], directory: Path,
        timeout_s: float) -> str:
    """Its standard output. Raises RunFailed."""
    with _start(command, environment, directory) as process:
        try:
            _end_put_off()
            output, complaint = process.communicate(timeout=timeout_s)
        except BaseException as error:
            end(process)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise RunFailed(f"ran longer than {timeout_s:.0f} s and was killed: "
                                f"{_short(command)}") from error
            raise
    if process.returncode != 0:
        said = [line for line in complaint.strip().splitlines() + output.strip().splitlines()
            if line.strip()]
        why = next((line for line in said if line.startswith("error: ")), said[-1] if said
            else "it said nothing")
        raise RunFailed(f"status {process.returncode}: {why.strip()} ({_short(command)})")
    return output


def put_off(number: int) -> bool:
    """For handlers of signals that raise: between a program's start and the place from where it is
    ended they must not. Whether this one came then; it is raised again after it."""
    global _put_off
    if _starting:
        _put_off = number
    return _starting


def _end_put_off() -> None:
    global _starting, _put_off
    _starting, number, _put_off = False, _put_off, 0
    if number:
        signal.raise_signal(number)


def _start(command: Sequence[str], environment: Mapping[str, str],
        directory: Path) -> subprocess.Popen[str]:
    """Signals are put off when it returns."""
    global _starting
    _starting = True
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
        )
    except BaseException:
        _end_put_off()
        raise


def end(process: subprocess.Popen[str]) -> None:
    """The program and all that it started: politely first, as launchers have ranks to end and
    directories to remove, then for sure. Returns when none of them is left, which could still
    write."""
    handles = _hold(_family(process.pid))
    process.terminate()
    _ended(handles.values(), _POLITE_S)
    handles |= _hold(_family(process.pid) - handles.keys())
    for handle in handles.values():
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    _ended(handles.values(), _KILLED_S)
    for handle in handles.values():
        os.close(handle)


def _family(leader: int) -> set[int]:
    """It, all below it (MPICH's and Open MPI's launchers give ranks groups and sessions of their
    own), and the rest of its session (the daemons of a layer have left their parents)."""
    parents, sessions = {}, {}
    for directory in os.listdir("/proc"):
        if not directory.isdigit():
            continue
        with suppress(OSError), open(f"/proc/{directory}/stat") as file:
            words = file.read().rpartition(")")[2].split()
            parents[int(directory)], sessions[int(directory)] = int(words[1]), int(words[3])
    found = {pid for pid, session in sessions.items() if session == leader} | {leader}
    while below := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= below
    return found


def _hold(pids: set[int]) -> dict[int, int]:
    """Handles, which mean the same processes for ever."""
    handles = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            handles[pid] = os.pidfd_open(pid)
    return handles


def _ended(handles: Iterable[int], wait_s: float) -> None:
    """Wait until all have ended, not longer."""
    deadline = time.monotonic() + wait_s
    for handle in handles:
        select.select([handle], [], [], max(0.0, deadline - time.monotonic()))


def _short(command: Sequence[str]) -> str:
    text = shlex.join(command)
    return text if len(text) < 400 else text[:400] + " ..."


def numbers(text: str, name: str) -> dict[str, float]:
    """The program's line of results, ``NAME: key=number ...``. Raises RunFailed when there is none.
    """
    for line in text.splitlines():
        if line.startswith(f"{name}: ") and "=" in line:
            return {k: float(v)
                for k, v in (word.split("=", 1) for word in line[len(name) + 2 :].split())}
    raise RunFailed(f"{name} printed no line of results")
