# SPDX-License-Identifier: Apache-2.0
"""What steps wait for, by the names that files had last: as in the table of files. What is due to a
name that stood for several files, one after the other, is shared out by the time of I/O on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from weir.analysis.names import NO_NAME
from weir.report.files.last_names import Named, last_names_of
from weir.report.frame.build import Report, figure
from weir.report.waits.summary import FileWaits, OpWaits, StepWaits, synchronisation_of

_COSTS = ("waited_ns", "path_ns", "critical_ns")
Shares = dict[str, list[tuple[str, float]]]  # by a name, of each file that it stood for


@figure
def waits_of(report: Report) -> list[StepWaits | None]:
    """Of each step; None where it did not record MPI."""
    found = [synchronisation_of(step).waits for step in report.steps]
    if not any(one is not None and one.files for one in found):
        return found
    named = [_shares(report, one) for one in last_names_of(report)]
    return [one if one is None or not shares else replace(one, files=_by_last(one.files, shares))
        for one, shares in zip(found, named)]


def _shares(report: Report, named: Named) -> Shares:
    """Names whose file had another one last."""
    columns, last = named.columns, named.last
    is_renamed = np.isin(columns.name, columns.name[columns.name != last])
    is_renamed &= columns.by_code("RWOCM") & (columns.name != NO_NAME)
    ns: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for of in zip(columns.name[is_renamed].tolist(), last[is_renamed].tolist(),
            columns.own_ns[is_renamed].tolist()):
        ns[report.names[of[0]]][report.names[of[1]]] += of[2]
    return {name: [(file, its / max(sum(files.values()), 1)) for file, its in files.items()]
        for name, files in ns.items()}


def _by_last(files: Sequence[FileWaits], shares: Shares) -> tuple[FileWaits, ...]:
    """The file that costs the forecast most comes first."""
    made: dict[str, FileWaits] = {}
    for one in files:
        for piece in _pieces(one, shares.get(one.file) or [(one.file, 1.0)]):
            other = made.get(piece.file)
            made[piece.file] = piece if other is None else _joined(other, piece)
    return tuple(sorted(made.values(),
        key=lambda one: (-one.critical_ns, -one.waited_ns, one.file)))


def _pieces(one: FileWaits, shares: list[tuple[str, float]]) -> Iterator[FileWaits]:
    """Sums stay what they are: each piece has what lies between two rounded parts."""
    begin = 0.0
    for number, (file, share) in enumerate(shares):
        end = 1.0 if number == len(shares) - 1 else begin + share

        def part(ns: int, begin: float = begin, end: float = end) -> int:
            return round(ns * end) - round(ns * begin)

        ops = tuple(replace(op, **{key: part(getattr(op, key)) for key in _COSTS})
            for op in one.ops)
        recorded = None if file == one.file else one.file if len(shares) == 1 else ""
        yield replace(one, file=file, ops=ops, recorded=recorded,
            **{key: part(getattr(one, key)) for key in ("io_ns", *_COSTS)})
        begin = end


def _joined(one: FileWaits, other: FileWaits) -> FileWaits:
    by_op = {op.op: op for op in one.ops}
    for op in other.ops:
        by_op[op.op] = _sum(by_op[op.op], op, *_COSTS) if op.op in by_op else op
    ops = sorted(by_op.values(), key=lambda op: (-op.critical_ns - op.waited_ns, op.op))
    first, second = sorted((one, other), key=lambda of: -of.critical_ns - of.waited_ns)
    ranks = tuple(dict.fromkeys(first.ranks + second.ranks))
    whole = _sum(one, other, "io_ns", *_COSTS)
    return replace(whole, ops=tuple(ops), ranks=ranks, recorded="")


def _sum(one: FileWaits | OpWaits, other: FileWaits | OpWaits, *keys: str) -> FileWaits | OpWaits:
    return replace(one, **{key: getattr(one, key) + getattr(other, key) for key in keys})
