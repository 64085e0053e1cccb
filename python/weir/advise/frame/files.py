# SPDX-License-Identifier: Apache-2.0
"""The files of a run: each with its reads, writes and other calls, and all of them side by side,
where a finding looks for the few that it is about."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from weir.analysis.names import NO_NAME, NameTable
from weir.report.files.compute import FileOp, FileTable, FileTotals
from weir.report.patterns.compute import WAYS, Rows
from weir.trace.ops import POSIX, STDIO, ops

_SUMMED = ("calls", "bytes", "ns", "adjacent", "first", "strided", "backward", "random", "unknown",
    "again", "switches", "off_block", "off_stripe", "interleaved")  # fmt: skip
_OTHERS = ("ranks", "begin", "end", "stripe", "slowest_ns", "longest_ns")
NAMES = (*_SUMMED, *_OTHERS, "users", "steps")
_WIDTH = len(NAMES)
_LARGEST = ("ranks", "end", "stripe", "longest_ns")
_NO_FIGURES = array("q", [2**62 if name == "begin" else 0 for name in NAMES])
_SEEKS = ("lseek", "fseek", "rewind")


class Way:
    """Reads or writes of a file, all ranks and steps together; figures as in the table
    `access_patterns`. ranks: the most in a step; users: of all steps; begin, end: the range of
    bytes that moved; longest_ns: of one call. Figures lie side by side: many files have as many."""

    __slots__ = ("figures",)

    def __init__(self, figures: Any = _NO_FIGURES) -> None:
        self.figures = figures

    (
        calls, bytes, ns, adjacent, first, strided, backward, random, unknown, again, switches,
        off_block, off_stripe, interleaved, ranks, begin, end, stripe, slowest_ns, longest_ns,
        users, steps,
    ) = (property(lambda self, at=at: self.figures[at]) for at in range(len(NAMES)))  # fmt: skip

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    @property
    def span(self) -> int:
        """Bytes of the file between the first and the last one that moved."""
        return max(0, self.end - self.begin)

    @property
    def mean_bytes(self) -> float:
        return self.bytes / self.calls if self.calls else 0.0

    @property
    def call_s(self) -> float:
        return self.ns / 1e9 / self.calls if self.calls else 0.0

    @property
    def ordered(self) -> Any:
        """Calls that go on in order or at a distance that comes again; those that go back where
        they move bytes of the calls before again, as when the mark of the end is overwritten."""
        overlapping = self.backward * (self.again >= self.backward)
        return self.adjacent + self.first + self.strided + overlapping

    @property
    def outlier_s(self) -> float:
        """Of the longest call what is more than the mean."""
        return max(0.0, self.longest_ns / 1e9 - self.call_s)

    def is_slow(self, bytes_per_s: Any) -> Any:
        """Whether calls move no more than that."""
        return self.ns > 0 and self.bytes * 1e9 / self.ns <= bytes_per_s


@dataclass(slots=True)
class File:
    """One file under its last name. ops: calls, bytes, ns by operation; critical_ns: what of its
    I/O delays the run, None where that is not known."""

    path: str
    read: Way = field(default_factory=Way)
    write: Way = field(default_factory=Way)
    totals: FileTotals | None = None
    critical_ns: float | None = None
    _ops: tuple[FileOp, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def ops(self) -> tuple[FileOp, ...]:
        if self._ops is None:
            self._ops = tuple(self.totals.ops) if self.totals is not None else ()
        return self._ops

    @property
    def ns(self) -> int:
        return self.totals.ns if self.totals is not None else self.read.ns + self.write.ns

    @property
    def written(self) -> int:
        """Bytes written, also at level detail, which has no order of calls."""
        if self.write.calls or self.totals is None:
            return self.write.bytes
        return self.totals.bytes_written

    def of(self, names: Sequence[str]) -> tuple[int, int]:
        """Calls and ns of operations."""
        chosen = [one for one in self.ops if one.op in names]
        return sum(one.calls for one in chosen), sum(one.ns for one in chosen)

    def own(self, names: Sequence[str]) -> tuple[int, int]:
        """The same of the application's own calls: what a library or the language's runtime makes
        of these is a part of them."""
        chosen = [one for one in self.ops if one.op in names]
        return (sum(one.calls - one.below for one in chosen),
            sum(one.ns * (one.calls - one.below) // max(1, one.calls) for one in chosen))

    def in_order(self, way: Way) -> float:
        """Share of calls that go on where the rank's last one ended, or at a distance that comes
        again: what read-ahead finds. Calls at offsets that are not known are in order where hardly
        any call moves the position."""
        if not way.calls:
            return 0.0
        is_stream = 2 * self.of(_SEEKS)[0] <= way.calls
        return (way.ordered + way.unknown * is_stream) / way.calls

    def of_class(self, letters: str) -> tuple[int, int]:
        """Calls and ns of the classes of operations, calls of the application's alone."""
        chosen = [one for one in self.ops if _OPS[one.op].op_class in letters]
        return sum(one.calls - one.below for one in chosen), sum(one.ns for one in chosen)

    def requests(self, letter: str) -> int:
        """Reads (R) or writes (W) that reach the system without layers: its calls, also those that
        Fortran and libraries make, whose own are left out; of streams as many as their buffers
        make."""
        streams = self._moving(letter, STDIO)
        buffered = min(sum(one.calls for one in streams),
            math.ceil(sum(one.bytes for one in streams) / STREAM_BYTES))
        return self.of_posix(letter) + buffered

    def of_posix(self, letters: str) -> int:
        """Such calls of the system."""
        return sum(one.calls for letter in letters for one in self._moving(letter, POSIX))

    def on_streams(self, letter: str) -> int:
        """Such calls on streams of the C library."""
        return sum(one.calls for one in self._moving(letter, STDIO))

    def _moving(self, letter: str, api: int) -> list[FileOp]:
        return [one for one in self.ops
            if (_OPS[one.op].op_class, _OPS[one.op].layer) == (letter, api)]


_OPS = {one.name: one for one in ops().values()}


def class_of(op: str) -> str:
    """Of an operation: O open, C close, R read, W write, M other metadata."""
    return _OPS[op].op_class


# A stream's buffer is st_blksize of its file: the least that there is, which testfs has as well.
STREAM_BYTES = 4096


class Ways(Way):
    """The same of all files: each figure is an array. made: a row for each file."""

    __slots__ = ("_rows",)

    def __init__(self, made: np.ndarray) -> None:
        super().__init__(made.T)
        self._rows = memoryview(made.reshape(-1))

    def of(self, at: int) -> Way:
        """Of one file."""
        return Way(self._rows[at * _WIDTH : (at + 1) * _WIDTH])

    @property
    def span(self) -> Any:
        return np.maximum(0, self.end - self.begin)

    @property
    def mean_bytes(self) -> Any:
        return over(self.bytes, self.calls)

    @property
    def call_s(self) -> Any:
        return over(self.ns / 1e9, self.calls)

    @property
    def outlier_s(self) -> Any:
        return np.maximum(0.0, self.longest_ns / 1e9 - self.call_s)

    def is_slow(self, bytes_per_s: Any) -> Any:
        return (self.ns > 0) & (over(self.bytes * 1e9, self.ns) <= bytes_per_s)


def over(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    """0 where it is over nothing."""
    return np.divide(values, of, out=np.zeros(len(of)), where=of != 0)


class Files(Mapping[str, File]):
    """All files of a run by path: in the order of their names, then, of those without calls of the
    application, in that of the table of access patterns. A File is made when it is asked for; its
    figures of all files are arrays under the same names here."""

    def __init__(self, table: FileTable, patterns: Rows, names: NameTable,
            critical_ns: Mapping[str, float] | None):
        self._table = table
        self.made: dict[int, File] = {}  # by place, what somebody asked for
        numbers, self.read, self.write = _ways(table.number, patterns)
        others = numbers[len(table) :]
        self.paths = [*table.names, *(names[number] for number in others.tolist())]
        self._others = np.zeros(len(others), np.int64)
        self.critical_ns = None if critical_ns is None else np.array(
            [critical_ns.get(path, 0.0) for path in self.paths], np.float64)

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __getitem__(self, path: str) -> File:
        return self._file(self._places[path])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {path: at for at, path in enumerate(self.paths)}

    def chosen(self, mask: np.ndarray) -> list[File]:
        return list(map(self._file, np.flatnonzero(mask).tolist()))

    def paths_of(self, mask: np.ndarray) -> list[str]:
        return [self.paths[at] for at in np.flatnonzero(mask).tolist()]

    def places(self, paths: Iterable[str]) -> np.ndarray:
        """Of some files in the arrays."""
        return np.array([self._places[path] for path in paths], np.int64)

    def mask(self, paths: Iterable[str]) -> np.ndarray:
        """Of the files with these paths."""
        made = np.zeros(len(self), bool)
        made[[self._places[path] for path in paths if path in self._places]] = True
        return made

    def _file(self, at: int) -> File:
        if at not in self.made:
            totals = self._table.totals[at] if at < len(self._table) else None
            critical_ns = None if self.critical_ns is None else float(self.critical_ns[at])
            self.made[at] = File(self.paths[at], self.read.of(at), self.write.of(at), totals,
                critical_ns)
        return self.made[at]

    def critical_of(self, paths: Iterable[str]) -> float | None:
        """ns by which the I/O on some files delays the run; None where it is not known."""
        if self.critical_ns is None:
            return None
        return sum(self.critical_ns[self.places(paths)].tolist())

    @cached_property
    def ns(self) -> np.ndarray:
        ways = (self.read.ns + self.write.ns)[len(self._table) :]
        return np.concatenate([self._table.ns, ways])

    @cached_property
    def written(self) -> np.ndarray:
        made = self.write.bytes.copy()
        first = slice(len(self._table))
        is_unknown = self.write.calls[first] == 0
        made[first][is_unknown] = self._table.bytes_written[is_unknown]
        return made

    @cached_property
    def failed(self) -> np.ndarray:
        """Calls that returned an error."""
        return np.concatenate([self._table.failed, self._others])

    @cached_property
    def missing(self) -> set[str]:
        """Those that no call found: names that the program only asked for."""
        calls = self._table.calls
        at = np.flatnonzero((calls > 0) & (calls <= self._table.failed))
        return {self.paths[one] for one in at.tolist()}

    def of(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Calls and ns of operations."""
        values = [value for value, one in ops().items() if one.name in names]
        return self._of(values, self._table.op_calls), self._of(values, self._table.op_ns)

    def of_class(self, letters: str) -> tuple[np.ndarray, np.ndarray]:
        """Calls and ns of the classes of operations, calls of the application's alone."""
        table = self._table
        values = [value for value, one in ops().items() if one.op_class in letters]
        return self._of(values, table.op_calls - table.op_below), self._of(values, table.op_ns)

    def on_streams(self, letter: str) -> np.ndarray:
        """Reads (R) or writes (W) on streams of the C library."""
        values = [value for value, one in ops().items()
            if (one.op_class, one.layer) == (letter, STDIO)]
        return self._of(values, self._table.op_calls)

    def _of(self, values: Sequence[int], column: np.ndarray) -> np.ndarray:
        return np.concatenate([self._table.of_ops(values, column), self._others])

    def in_order(self, way: Ways) -> np.ndarray:
        """Share of calls: File.in_order()."""
        is_stream = 2 * self.of(_SEEKS)[0] <= way.calls
        return over(way.ordered + way.unknown * is_stream, way.calls)


def _ways(numbers: np.ndarray, patterns: Rows) -> tuple[np.ndarray, Ways, Ways]:
    """Numbers of the names of files: these, and others that the table of access patterns has; what
    all read, and write."""
    name, way = patterns.columns("name", "way")
    keys = [one - NO_NAME for one in (numbers, name)]  # from 0
    place = np.full(max((int(one.max(initial=0)) for one in keys)) + 1, -1)
    place[keys[0]] = np.arange(len(numbers))
    others, first = np.unique(keys[1][place[keys[1]] < 0], return_index=True)
    others = others[np.argsort(first)]
    place[others] = len(numbers) + np.arange(len(others))
    every = np.concatenate([numbers, others + NO_NAME])
    rows = [np.flatnonzero(way == number) for number in range(len(WAYS))]
    made = [np.zeros((len(every), len(NAMES)), np.int64) for _ in WAYS]
    for at, key in enumerate(NAMES):
        column = np.ones(len(name), np.int64) if key == "steps" else (
            patterns.columns("ranks" if key == "users" else key)[0])
        add = np.maximum if key in _LARGEST else np.minimum if key == "begin" else np.add
        for its, figures in zip(rows, made):
            figures[:, at] = _NO_FIGURES[at]
            add.at(figures[:, at], place[keys[1][its]], column[its])
    return every, *map(Ways, made)
