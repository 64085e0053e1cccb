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
from weakref import WeakKeyDictionary

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.step import StepData
from weir.report.frame.build import Report, figure
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
        for text in texts:
            if text.startswith(_HEAD) and (mount := _parsed(text.removeprefix(_HEAD))) is not None:
                self._at[mount.point] = mount

    def __bool__(self) -> bool:
        return bool(self._at)

    @property
    def key(self) -> frozenset:
        """What is equal in equal tables."""
        return frozenset(self._at.values())

    def of(self, path: str) -> Mount:
        """The mount that a path lies on; UNKNOWN for what is no path, and where no mounts were
        recorded."""
        if not path.startswith("/"):
            return UNKNOWN
        while path:
            if path in self._at:
                return self._at[path]
            path = path.rpartition("/")[0]
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
        _known[file] = Mounts(file.texts)
    return _known[file]


def mount_of(data: StepData, path: str) -> Mount:
    """Of a path on the first node of the step that knows it."""
    return next((found for file in data.files if (found := _mounts_of(file).of(path)) != UNKNOWN),
        UNKNOWN)


def file_system_totals(parts: Iterable[tuple[StepData, Columns]],
        names: NameTable) -> list[FileSystemTotals]:
    """Totals by mount over steps, the busiest first; columns: the chosen I/O of each step. Empty
    where no mounts were recorded."""
    sums: dict[Mount, list[int]] = {}
    files: dict[Mount, set[int]] = {}
    nodes: dict[Mount, set[str]] = {}
    for data, columns in parts:
        node_of = np.array([member.file for member in data.members], np.int32)[columns.member]
        for index, file in enumerate(data.files):
            mounts = _mounts_of(file)
            own = columns.where((node_of == index) & (columns.name != NO_NAME) & columns.is_file)
            if not mounts or not len(own):
                continue
            read = np.where(own.by_code("R"), own.moved, 0)
            numbers, at = np.unique(own.name, return_inverse=True)
            figures = np.zeros((len(numbers), 4), np.int64)
            np.add.at(figures, at,
                np.column_stack((own.app_calls, read, own.moved - read, own.own_ns)))
            is_touched = np.zeros(len(numbers), bool)
            np.logical_or.at(is_touched, at, own.by_code("ORW"))
            for name, row, touched in zip(numbers.tolist(), figures.tolist(), is_touched.tolist()):
                mount = mounts.of(names[name])
                cell = sums.setdefault(mount, [0, 0, 0, 0])
                cell[:] = (before + more for before, more in zip(cell, row))
                files.setdefault(mount, set()).update((name,) if touched else ())
                nodes.setdefault(mount, set()).add(file.node)
    made = [FileSystemTotals(mount, len(nodes[mount]), len(files[mount]), *cell)
        for mount, cell in sums.items()]
    return sorted(made, key=lambda one: (-one.ns, one.mount))


@figure
def file_systems_of(report: Report) -> list[FileSystemTotals]:
    """Of the chosen members, all steps together."""
    return file_system_totals(((step.data, step.columns) for step in report.steps), report.names)


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
