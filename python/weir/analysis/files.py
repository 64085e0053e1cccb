# SPDX-License-Identifier: Apache-2.0
"""Files: what was done to each, over tasks and steps; the slowest, the largest, the most called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from weir.analysis.columns import Columns, Row, merged, rows
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.routines import moved_bytes
from weir.trace.ops import BELOW, NESTED, ops

SORT_KEYS = ("msec", "mb", "rate", "calls", "file")


@dataclass(frozen=True)
class FileOp:
    """All records of one operation on a file; `below` of its calls were made by a language's library."""

    op: str
    calls: int
    bytes: int
    ns: int
    below: int


@dataclass(frozen=True)
class FileTotals:
    file: str
    calls: int
    bytes_read: int
    bytes_written: int
    ns: int
    ops: tuple[FileOp, ...]

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def rate_mb_s(self) -> float:
        """MB/s while in I/O on this file."""
        return self.bytes * 1e3 / self.ns if self.ns else 0.0


def file_totals(columns: Columns, names: NameTable) -> list[FileTotals]:
    """One entry for each name, by name."""
    table = merged(columns.where(columns.name != NO_NAME), "name", "op", "layer", "flags")
    made = [_totals(names[name], group) for name, group in groupby(rows(table), key=lambda row: row.name)]
    return sorted(made, key=lambda one: one.file)


def _totals(file: str, group: Iterable[Row]) -> FileTotals:
    calls = read = written = ns = 0
    by_op: dict[str, list[int]] = {}
    for row in group:
        op = ops()[row.op]
        is_below = bool(row.flags & BELOW)
        calls += 0 if is_below else row.calls
        ns += 0 if row.flags & NESTED else row.ns
        if op.op_class == "R":
            read += moved_bytes(row)
        else:
            written += moved_bytes(row)
        sums = by_op.setdefault(op.name, [0, 0, 0, 0])
        for i, figure in enumerate((row.calls, row.bytes if op.op_class in "RW" else 0, row.ns, row.calls * is_below)):
            sums[i] += figure
    return FileTotals(file, calls, read, written, ns, tuple(FileOp(op, *sums) for op, sums in by_op.items()))


def chosen(
    files: Sequence[FileTotals], *, by: str = "msec", top: int | None = None, threshold_ns: int = 0, pattern: str | None = None
) -> list[FileTotals]:
    """Files sorted by a key of SORT_KEYS (largest first, names rising), those under the threshold left out, then the first `top`."""
    if by not in SORT_KEYS:
        raise ValueError(f"files cannot be sorted by {by!r}; choose one of {', '.join(SORT_KEYS)}")
    keys = {
        "msec": lambda f: (-f.ns, f.file),
        "mb": lambda f: (-f.bytes, f.file),
        "rate": lambda f: (-f.rate_mb_s, f.file),
        "calls": lambda f: (-f.calls, f.file),
        "file": lambda f: f.file,
    }
    kept = [f for f in files if f.ns >= threshold_ns and (pattern is None or matches(f.file, pattern))]
    kept.sort(key=keys[by])
    return kept if top is None else kept[:top]


def matches(name: str, pattern: str) -> bool:
    """A shell pattern that fits the whole name or its end after a `/`; a plain word fits anywhere."""
    if not any(c in pattern for c in "*?["):
        return pattern in name
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")
