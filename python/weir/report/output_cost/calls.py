# SPDX-License-Identifier: Apache-2.0
"""Which file, and which variable of it, a rank is busy with: the calls on files that are written.

Calls that follow one another closely are one row, so that few rows stand for many calls.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weir.analysis.names import NO_NAME, NameTable, fold
from weir.analysis.step import StepData
from weir.report.wall.lines import (
    LIBRARIES, MPI_LAYERS, chunks_of, is_io, is_of, main_thread, read_chunk
)  # fmt: skip
from weir.trace.ops import MPI, OUTPUT

CLOSE_NS = 1_000_000  # calls on one file and variable that are so close are one row
NO_VARIABLE = -1


@dataclass(frozen=True)
class Labels:
    """By number of a name: the file that a call with that name is about (a number, -1: none that is
    written), and the variable (number of the whole name, -1: none). texts: of files."""

    file: np.ndarray
    variable: np.ndarray
    texts: dict[int, str]


@dataclass(frozen=True)
class Busy:
    """Arrays by row: begin, end, file, variable (as in Labels)."""

    begin_ns: np.ndarray
    end_ns: np.ndarray
    file: np.ndarray
    variable: np.ndarray

    def where(self, rows: np.ndarray) -> Busy:
        return Busy(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.file)


def labels_of(data: StepData, names: NameTable) -> Labels:
    """Files that somebody writes, and what has them in its name: variables, streams of libweir."""
    columns = data.columns
    is_library = np.isin(columns.layer, LIBRARIES)
    written = columns.where((columns.moved > 0) & columns.by_code("W") & columns.is_file)
    files = np.unique(written.name[written.name != NO_NAME])
    count = len(names.names)
    file, variable = np.full(count + 1, -1, np.int64), np.full(count + 1, NO_VARIABLE, np.int64)
    file[files] = files
    texts = {int(number): names[int(number)] for number in files}
    by_text = {text: number for number, text in texts.items()}
    used = np.unique(columns.name[is_library & (columns.name != NO_NAME)]).tolist()
    of_output = set(np.unique(columns.name[columns.layer == OUTPUT]).tolist())
    for number in used:
        text = names[number]
        if number in of_output:
            stream = text.rpartition(":")[0].rstrip(":")
            stream = stream if ":" in stream else "output:(all streams)"
            file[number] = by_text.setdefault(stream, number)
            texts[int(file[number])] = stream
            continue
        path = text.partition(":")[2]
        while path and fold(path) not in by_text:
            path = path.rpartition(":")[0]
        if path and number not in by_text.values():
            file[number], variable[number] = by_text[fold(path)], number
    return Labels(file, variable, texts)


def busy_of(data: StepData, names: NameTable, rank: tuple[int, tuple[int, ...]],
        labels: Labels) -> Busy:
    """Rows of a rank that do not overlap, by time. cost: a pass over its records."""
    speaker, members = rank
    thread = main_thread(data, speaker)
    parts = [Busy(*(np.empty(0, np.int64),) * 4)]
    for member in members:
        for at in chunks_of(data, member).tolist():
            batch = read_chunk(data, member, at)
            wanted = is_io(data, member, batch) | is_of(batch, *LIBRARIES, *MPI_LAYERS)
            wanted &= (batch["layer"] != MPI) & ((batch["thread"] == thread) | (member != speaker))
            numbers = data.name_numbers[data.members[member].file]
            number = np.r_[numbers, np.int32(NO_NAME)][np.minimum(batch["text"], len(numbers))]
            file = labels.file[number]
            rows = np.flatnonzero(wanted & (file >= 0))
            begin = batch["start_ns"][rows]
            end = begin + batch["duration_ns"][rows]
            found = Busy(begin, end, file[rows], labels.variable[number[rows]])
            parts.append(_close(found))
    joined = (np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Busy))
    return _outermost(_close(Busy(*joined)))


def _close(found: Busy) -> Busy:
    """Calls on one file and variable that are close to one another, as one."""
    if not len(found):
        return found
    order = np.lexsort((-found.end_ns, found.begin_ns, found.variable, found.file))
    found = found.where(order)
    key = np.flatnonzero((np.diff(found.file) != 0) | (np.diff(found.variable) != 0)) + 1
    begins = np.zeros(len(found), bool)
    begins[0], begins[key] = True, True
    reach = _reach(found.end_ns, begins)
    begins[1:] |= found.begin_ns[1:] - reach[:-1] > CLOSE_NS
    first = np.flatnonzero(begins)
    last = np.r_[first[1:] - 1, len(found) - 1]
    return Busy(found.begin_ns[first], reach[last], found.file[first], found.variable[first])


def _reach(end: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """The latest end so far, within each group."""
    group = np.cumsum(begins) - 1
    low = int(end.min())
    span = int(end.max()) - low + 1
    if span * (int(group[-1]) + 1) < 2**62:
        return np.maximum.accumulate(end - low + group * span) - group * span + low
    parts = np.split(end, np.flatnonzero(begins)[1:])
    return np.concatenate([np.maximum.accumulate(part) for part in parts])


def _outermost(found: Busy) -> Busy:
    """A moment of several calls belongs to the one that began first: the others lie within it."""
    if not len(found):
        return found
    found = found.where(np.lexsort((-found.end_ns, found.begin_ns)))
    reach = np.r_[found.begin_ns[0], np.maximum.accumulate(found.end_ns)[:-1]]
    begin = np.maximum(found.begin_ns, reach)
    kept = begin < found.end_ns
    return Busy(begin, found.end_ns, found.file, found.variable).where(kept)
