# SPDX-License-Identifier: Apache-2.0
"""Which file system each file lies on, and totals of each: by the mounts that the first traced
process of each node saw.

Source: lines of /proc/self/mountinfo (man proc_pid_mountinfo), kept in the trace
(docs/formats/trace.md, section 3.8). The last mount over a path is the one in force. A name behind
a symbolic link counts for where the link is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.names import NO_NAME
from weir.analysis.step import StepData
from weir.report.frame.build import Report, StepReport, figure
from weir.trace import TraceFile

_HEAD = "mount\n"
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, order=True)
class Mount:
    """Where, which kind of file system, and what is mounted there (a device, server:/path)."""

    point: str
    kind: str
    source: str


UNKNOWN = Mount("?", "?", "?")


@dataclass(frozen=True)
class FileSystemTotals:
    """I/O of the application on the files of one mount; ns: of all ranks. files: names opened, read
    or written."""

    mount: Mount
    nodes: int
    files: int
    calls: int
    bytes_read: int
    bytes_written: int
    ns: int


class Mounts:
    """The mounts of one node."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._at: dict[str, Mount] = {}
        self._of_directories: dict[str, Mount] = {}
        for text in texts:
            if text.startswith(_HEAD) and (mount := _parsed(text.removeprefix(_HEAD))) is not None:
                self._at[mount.point] = mount

    def __bool__(self) -> bool:
        return bool(self._at)

    @cached_property
    def key(self) -> frozenset:
        """What is equal in equal tables."""
        return frozenset(self._at.values())

    def of(self, path: str) -> Mount:
        """The mount that a path lies on; UNKNOWN for what is no path, and where no mounts were
        recorded."""
        if not path.startswith("/"):
            return UNKNOWN
        if path in self._at:
            return self._at[path]
        directory = path.rpartition("/")[0]
        found = self._of_directories.get(directory)
        if found is None:
            found = self._of_directories[directory] = self._above(directory)
        return found

    def _above(self, directory: str) -> Mount:
        while directory:
            if directory in self._at:
                return self._at[directory]
            directory = directory.rpartition("/")[0]
        return self._at.get("/", UNKNOWN)


def _parsed(line: str) -> Mount | None:
    """Point, kind and source of a line: id parent device root POINT options [fields] - KIND SOURCE
    options."""
    before, found, behind = line.partition(" - ")
    fields, rest = before.split(" "), behind.split(" ")
    if not found or len(fields) < 6 or len(rest) < 2:
        return None
    return Mount(_unescaped(fields[4]), rest[0], _unescaped(rest[1]))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


_known: WeakKeyDictionary[TraceFile, Mounts] = WeakKeyDictionary()


def _mounts_of(file: TraceFile) -> Mounts:
    if file not in _known:
        _known[file] = Mounts(file.notes.values())
    return _known[file]


def mounts_of_step(data: StepData) -> list[Mounts]:
    """The different tables of the step's nodes, in their order."""
    return list({mounts.key: mounts for file in reversed(data.files)
        if (mounts := _mounts_of(file))}.values())[::-1]


def file_system_totals(steps: Iterable[StepReport]) -> list[FileSystemTotals]:
    """Totals by mount over steps, the busiest first, of the chosen I/O of each step. Empty where no
    mounts were recorded."""
    sums: dict[Mount, list[int]] = {}
    files: dict[Mount, set[int]] = {}
    nodes: dict[Mount, set[str]] = {}
    for step in steps:
        if not any(map(_mounts_of, step.data.files)):
            continue
        of_name: dict[tuple[frozenset, int], Mount] = {}  # by table of mounts, and name
        for file, columns in zip(step.data.files, step.data.by_node()):
            mounts = _mounts_of(file)
            own = columns.where(step.choice.rows(step.data, columns) & columns.is_file
                & (columns.name != NO_NAME))
            if not mounts or not len(own):
                continue
            numbers, figures, is_touched = _by_name(own)
            for name, row, touched in zip(numbers.tolist(), figures.tolist(), is_touched.tolist()):
                key = mounts.key, name
                if key not in of_name:
                    of_name[key] = mounts.of(step.names[name])
                mount = of_name[key]
                cell = sums.setdefault(mount, [0, 0, 0, 0])
                cell[:] = (before + more for before, more in zip(cell, row))
                files.setdefault(mount, set()).update((name,) if touched else ())
                nodes.setdefault(mount, set()).add(file.node)
    made = [FileSystemTotals(mount, len(nodes[mount]), len(files[mount]), *cell)
        for mount, cell in sums.items()]
    return sorted(made, key=lambda one: (-one.ns, one.mount))


def _by_name(own: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of names; calls, bytes read, bytes written and time of each; whether it was opened,
    read or written."""
    read = np.where(own.by_code("R"), own.moved, 0)
    numbers, at = np.unique(own.name, return_inverse=True)
    figures = np.zeros((len(numbers), 4), np.int64)
    np.add.at(figures, at, np.column_stack((own.app_calls, read, own.moved - read, own.own_ns)))
    is_touched = np.zeros(len(numbers), bool)
    np.logical_or.at(is_touched, at, own.by_code("ORW"))
    return numbers, figures, is_touched


@figure
def file_systems_of(report: Report) -> list[FileSystemTotals]:
    """Of the chosen members, all steps together."""
    return file_system_totals(report.steps)


@figure
def _every_mounts(report: Report) -> list[Mounts]:
    """The different tables of mounts of the run's nodes, in the order of steps and nodes."""
    found: dict[frozenset, Mounts] = {}
    for step in report.steps:
        for file in step.data.files:
            if mounts := _mounts_of(file):
                found.setdefault(mounts.key, mounts)
    return list(found.values())


def mount_in(report: Report, path: str) -> Mount:
    """Where a file lies, as the first node that knows it saw it."""
    every = (mounts.of(path) for mounts in _every_mounts(report))
    return next((found for found in every if found != UNKNOWN), UNKNOWN)
