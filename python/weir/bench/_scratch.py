# SPDX-License-Identifier: Apache-2.0
"""Directories for the time of a bench. What lies in memory there is memory, so they go whatever
ends the bench, but for SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from weir._errors import StorageError
from weir.bench._process import put_off

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REMOVE_WAIT_S = 10.0
_unwinding = False  # an outer block does it


@contextmanager
def scratch(parent: str | None = None, *, in_memory: bool = True) -> Iterator[Path]:
    """A directory, in memory where that is to be had (so that no disk is measured), or where
    temporary files of some size go."""
    places = [parent, "/dev/shm"] if in_memory else [parent, os.environ.get("TMPDIR"), "/var/tmp"]
    where = next((place for place in places if place
        and (place == parent or os.access(place, os.W_OK))), None)
    with unwound():
        directory = Path(tempfile.mkdtemp(prefix="weir-bench-", dir=where))
        try:
            yield directory
        finally:
            remove(directory)


@contextmanager
def unwound() -> Iterator[None]:
    """SIGTERM, SIGHUP and SIGINT leave the block as exceptions do, once: timeout(1) sends its
    signal twice, and the second must not end what the first has begun to put away."""
    global _unwinding
    if _unwinding or threading.current_thread() is not threading.main_thread():
        yield
        return
    # One that is ignored stays so: nohup, and jobs in the background of a script.
    before = {each: signal.getsignal(each) for each in _ENDING}
    mine = [each for each, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    _unwinding = True
    for each in mine:
        signal.signal(each, _leave)
    try:
        yield
    finally:
        for each in mine:
            signal.signal(each, before[each])
        _unwinding = False


def _leave(number: int, frame: FrameType | None) -> None:
    if put_off(number):
        return
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def remove(directory: Path) -> None:
    """The directory and all in it, also while a program that was killed a moment ago still makes
    files there. Raises StorageError."""
    deadline = time.monotonic() + _REMOVE_WAIT_S
    while True:
        try:
            shutil.rmtree(directory)
            return
        except FileNotFoundError:
            if not directory.exists():
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise StorageError(
                    f"{directory}: the benchmark's files could not be removed: "
                    f"{error.strerror}") from error
        time.sleep(0.05)
