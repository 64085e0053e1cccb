# SPDX-License-Identifier: Apache-2.0
"""How files of a step are accessed: a pass over the records of all its trace files in
native/reader/step_accesses.cc, which joins them as they are read, so that memory grows with the
files and not with the files of each rank or node."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.step import StepData, lost_in, name_numbers
from weir.analysis.sums import spread_numbers
from weir.report.mpi_io.compute import alignment_of
from weir.report.patterns.spread import OfRanks, handed_out
from weir.trace import TraceFile
from weir.trace._abi import (
    ACCESSES_COMMON, ACCESSES_LOST, ACCESSES_ROW, ALIGNMENT, SPREAD_FILE, SPREAD_ROW,
    AccessesChoice, AccessesFile, accesses_functions, pointer_to
)  # fmt: skip
from weir.trace.file import threads_for

BLOCK_BYTES = 4096  # where the trace does not have the block size of the file
SUMMED = (
    "calls bytes sequential consecutive first adjacent strided backward random unknown off_block "
    "off_stripe ns again"
).split()
# As long as there are few different sizes and strides in all, counts are exact. Of more, the most
# common ones of each file, direction and kind are kept; the table shows four.
MOST_VALUES = 1 << 19
KEPT = (16, 4)
_FOLDED_AT_ONCE = 1 << 18
_SHORT = ("name", "rank")  # columns of 32 bits


@dataclass(frozen=True)
class Accesses:
    """Columns of one length: transfers of one direction (way) on one file by one rank of one node,
    or by all ranks, by name and way then. commons: rows of (index of a row here, kind, value,
    count); kind 1: strides, those below 0 backward. ranks: what differs between ranks then."""

    columns: dict[str, np.ndarray]
    commons: np.ndarray
    ranks: OfRanks = field(default_factory=OfRanks)

    def __len__(self) -> int:
        return len(self.columns["name"])


def no_accesses() -> Accesses:
    return Accesses(_columns(np.zeros(0, ACCESSES_ROW)), np.zeros((0, 4), np.int64))


def read_accesses(
    data: StepData, names: NameTable, members: np.ndarray, all_names: bool, by_rank: bool,
    apart: np.ndarray, spared: int = 0,
) -> Accesses:  # fmt: skip
    """Of the chosen members. by_rank: rows stay apart; apart: names whose files have other names,
    too, so that their ranks are not known before; spared: processors for others. cost: a pass over
    all records; two where names are lost."""
    threads = threads_for(sum(file.header.file_bytes for file in data.files))
    asked = _Asked(data, names, members, all_names, by_rank, apart, max(1, threads - spared))
    found = asked.read()
    if found is None:
        asked.lost = [_lost_of(file, numbers, names)
            for file, numbers in zip(data.files, data.name_numbers)]
        found = asked.read()
    if found is None:
        raise RuntimeError(f"{data.step.path}: names that no table has")
    for file in data.files:
        file.leave()
    return found


def _lost_of(file: TraceFile, numbers: np.ndarray, names: NameTable) -> np.ndarray:
    """Names that records of the file have and its table has not (ACCESSES_LOST)."""
    rows = file.rows_of(0, len(file.processes))
    rows = np.unique(rows[lost_in(file, rows)][["process", "file"]])
    lost = np.zeros(len(rows), ACCESSES_LOST)
    lost["process"], lost["file"] = rows["process"], rows["file"]
    lost["name"] = name_numbers(file, lost, names, numbers)
    return lost


class _Asked:
    """What native/reader is asked for, and keeps in memory what it points to."""

    def __init__(
        self, data: StepData, names: NameTable, members: np.ndarray, all_names: bool,
        by_rank: bool, apart: np.ndarray, threads: int,
    ):  # fmt: skip
        self._data, self._names, self._by_rank = data, names, by_rank
        self._chosen = np.ascontiguousarray(members, np.uint8)
        self._ranks = np.fromiter((one.number for one in data.members), np.int32, len(data.members))
        self._alignments = _alignments(data, names)
        self._loose = np.sort(spread_numbers(data.members)).astype(np.int32)
        self._apart = np.zeros(int(apart.max()) + 1 if len(apart) else 0, np.uint8)
        self._apart[apart[apart >= 0]] = 1
        self.lost = [np.zeros(0, ACCESSES_LOST)] * len(data.files)
        self._choice = AccessesChoice(
            pointer_to(self._apart), len(self._apart), pointer_to(self._loose), len(self._loose),
            MOST_VALUES, _FOLDED_AT_ONCE, KEPT, all_names, by_rank, threads,
        )  # fmt: skip

    def read(self) -> Accesses | None:
        """None: names are lost, and `lost` has no numbers of them."""
        functions, has_lost, count = accesses_functions(), c.c_uint32(), len(self._data.files)
        files = (AccessesFile * count)(*map(self._file, range(count)))
        handle = c.c_void_p(functions["create"](files, count, c.byref(self._choice),
            c.byref(has_lost)))
        if not handle:
            raise MemoryError("not enough memory or threads for the accesses of files")
        try:
            return None if has_lost.value else self._found(handle)
        finally:
            functions["destroy"](c.byref(handle))

    def _file(self, index: int) -> AccessesFile:
        data, lost = self._data, self.lost[index]
        first = data.first_member(index)
        return AccessesFile(
            data.files[index].handle, data.lines[index].native(),
            pointer_to(self._alignments[index]), pointer_to(data.name_numbers[index]),
            pointer_to(self._ranks[first:]), pointer_to(self._chosen[first:]), pointer_to(lost),
            len(lost),
        )  # fmt: skip

    def _found(self, handle: c.c_void_p) -> Accesses:
        get = accesses_functions()
        rows = handed_out(get["rows"], handle, ACCESSES_ROW)
        common = handed_out(get["commons"], handle, ACCESSES_COMMON)
        common = common.view(np.int64).reshape(-1, 4).copy()
        if self._by_rank:
            return Accesses(_columns(rows), common)
        columns = _columns(rows, np.lexsort((rows["way"], rows["name"])))
        key = columns["name"].astype(np.int64) << 1 | columns["way"]
        common[:, 0] = np.searchsorted(key, common[:, 0])
        spread = handed_out(get["spread"], handle, SPREAD_FILE)
        kept = handed_out(get["kept"], handle, SPREAD_ROW).copy()
        return Accesses(columns, common,
            OfRanks(spread[np.lexsort((spread["way"], spread["name"]))], kept))


def _alignments(data: StepData, names: NameTable) -> list[np.ndarray]:
    """Of each trace file by text (ALIGNMENT)."""
    known = {path: (block or BLOCK_BYTES, stripe or 0)
        for path, (block, stripe) in alignment_of(data).items()}
    made, usual = [], (BLOCK_BYTES, 0)
    for numbers in data.name_numbers:
        one = np.full(len(numbers), np.array(usual, ALIGNMENT))
        if known:
            one[:] = [known.get(names[number], usual) for number in numbers.tolist()]
        made.append(one)
    return made


def _columns(rows: np.ndarray, order: Any = slice(None)) -> dict[str, np.ndarray]:
    """Copies of rows (ACCESSES_ROW)."""
    return {
        key: rows[key][order].astype(np.int32 if key in _SHORT else np.int64)
        for key in rows.dtype.names or ()
    }
