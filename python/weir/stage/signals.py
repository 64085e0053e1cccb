# SPDX-License-Identifier: Apache-2.0
"""Signals by which batch systems and terminals end a job, from the first statement of a command to
its last: they are noted or handed on, and end weir nowhere. Some send each twice: to the command,
and to its process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(Exception):
    """A signal came before the script was run."""

    def __init__(self, number: int) -> None:
        super().__init__(name_of(number))
        self.status = 128 + number


class Signals:
    """A block in which the signals of STOPS end nothing; one that is ignored (nohup) stays so.

    `start` runs a program that gets each of them, also those that came since the last `check`;
    `say`, once set, gives the line to write for one that comes when no program runs.
    """

    def __init__(self) -> None:
        self.noted: list[int] = []
        self.say: Callable[[str], str] | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        for number in STOPS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
            where: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if self._child is not None:
            self._child.send_signal(number)
            return
        self.noted.append(number)
        if self.say is not None:
            # Not by sys.stderr, in which the signal may have interrupted this thread.
            with suppress(OSError):
                os.write(2, f"weir: {self.say(name_of(number))}\n".encode())

    def check(self) -> None:
        """Raises Stopped when one came."""
        if self.noted:
            raise Stopped(self.noted[0])

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> int:
        """The exit status of a program, which gets the signals while it runs."""
        child = start()
        self._child = child
        try:
            for number in self.noted:
                child.send_signal(number)
            return child.wait()
        finally:
            self._child = None


def name_of(number: int) -> str:
    return signal.Signals(number).name


def show(line: str) -> None:
    """A line of progress. Whoever reads it may be gone, as a terminal that has sent SIGHUP: that
    is no reason to end the work."""
    with suppress(OSError):
        print(f"weir: {line}", file=sys.stderr, flush=True)
