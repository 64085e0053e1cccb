# SPDX-License-Identifier: Apache-2.0
"""Runs of a benchmark that has an end: a limit in time, and a file of the runs that are done, with
which the same command goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from weir._errors import InputError
from weir.bench._process import RunFailed

T = TypeVar("T")


class TimeOver(RunFailed):
    """A run that was not begun."""


class Journal:
    """path: a line of JSON for each run, the first one for what all have in common; None: no file.
    minutes: for which runs begin; None: no limit."""

    def __init__(self, common: dict[str, Any], path: Path | None = None,
            minutes: float | None = None, now: Callable[[], float] = time.monotonic):
        self._now, self._begun_s, self._minutes, self._part = now, now(), minutes, 1.0
        self._path, self._done = path, {}
        if path is None:
            return
        if path.exists() and path.stat().st_size > 0:
            self._read(path, json.loads(json.dumps(common)))
        else:
            self._append(common)

    def _read(self, path: Path, common: dict[str, Any]) -> None:
        lines = path.read_text().splitlines(keepends=True)
        try:
            found = json.loads(lines[0])
            # A last line that was not finished is a run that was not.
            whole = [json.loads(line) for line in lines[1:] if line.endswith("\n")]
            self._done = {one["run"]: one["result"] for one in whole}
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is no file of --resume ({error}); give another "
                             f"name") from None
        if found != common:
            differ = sorted(key for key in {*found, *common} if found.get(key) != common.get(key))
            raise InputError(f"{path} has runs with other options ({', '.join(differ)}); repeat the "
                             f"command that began it, or give another name")
        if not lines[-1].endswith("\n"):
            path.write_text("".join(lines[:-1]))

    def _append(self, line: dict[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def until(self, part: float) -> None:
        """Runs begin within this part of the time."""
        self._part = part

    def once(self, name: str, run: Callable[[], T]) -> T:
        """The result of a run, which JSON can hold: from the file, or the run's. Raises TimeOver
        where it would begin too late, and what the run raises."""
        if name in self._done:
            return self._done[name]
        if self._minutes is not None:
            if self._now() - self._begun_s > 60 * self._minutes * self._part:
                raise TimeOver(f"not run: the limit of {self._minutes:g} minutes was reached; the same "
                               f"command with --resume FILE continues")
        result = self._done[name] = run()
        self._append({"run": name, "result": result})
        return result
