# SPDX-License-Identifier: Apache-2.0
"""The table of events as a stream of Arrow batches: what lies in the mapped files is turned into
columns a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.names import NameTable
from weir.analysis.step import StepData, name_numbers
from weir.query._arrow import arrow_schema, chosen_schema, pyarrow
from weir.query.schema import CLASSES, EVENTS
from weir.report.frame.build import Report
from weir.trace.events import Events, read_events
from weir.trace.file import LOST
from weir.trace.ops import (
    BELOW, ERROR, FORTRAN, HDF5, LAYER_NAMES, NESTED, NOTES, OF_OUTPUT, PNETCDF, SHORT,
    layer_kinds, mpi_routines, op_named, ops, sizes_hold,
)  # fmt: skip
from weir.trace.ops import EVENTS as EVENT_LAYERS

if TYPE_CHECKING:
    import pyarrow as pa

Makers = dict[str, "Callable[[], pa.Array]"]  # by column: who makes it
_CLASS_NAMES = list(CLASSES.values())
_UNKNOWN = -1  # offset, unit


def layer_names() -> list[str]:
    """By value of a record's layer."""
    names = [f"layer{value}" for value in range(64)]
    names[: len(LAYER_NAMES)] = LAYER_NAMES
    names[EVENT_LAYERS:NOTES] = [f"event{position}" for position in range(NOTES - EVENT_LAYERS)]
    kinds = layer_kinds()
    names[NOTES:] = [f"note:{kinds[kind].name if kind in kinds else kind}"
        for kind in range(64 - NOTES)]
    return names


def op_names() -> list[str]:
    """By value of a record's operation."""
    return [ops()[value].name if value in ops() else f"op{value}" for value in range(256)]


def class_indices() -> np.ndarray:
    """By value of a record's operation: index of its class among those of CLASSES."""
    codes = class_codes()
    return np.array([list(CLASSES).index(chr(code)) if code else len(CLASSES) - 1
        for code in codes.tolist()], np.int32)


def routine_names() -> list[str]:
    """By number of a routine of MPI."""
    names = mpi_routines()
    return [names.get(value, f"routine{value}") for value in range(256)]


# Records of MPI's synchronisation and messages; docs/formats/trace.md says what their offset and
# size hold.
_COLLECTIVE, _START_COLLECTIVE, _RECEIVE, _AWAITED = 142, 143, 145, 148
_AWAITED_COLLECTIVE = 2


def of_mpi(op: np.ndarray) -> np.ndarray:
    """Mask of these operations: their size is more than a number of bytes."""
    return (op >= _COLLECTIVE) & (op <= _AWAITED)


def is_mpi_open(op: np.ndarray) -> np.ndarray:
    """Mask of MPI_File_open, whose offset is a mode."""
    return op == op_named("MPI_File_open").value


def names_function(events: Events) -> np.ndarray:
    """Mask of records of PnetCDF, netCDF-C and HDF5: their offset is the number of a function."""
    return (events["layer"] >= PNETCDF) & (events["layer"] <= HDF5)


# Columns of what the size of a record holds, each for operations of one meaning (Op.size).
SIZE_COLUMNS = {
    "length_bytes": "length", "filetype_bytes": "filetype", "statistic": "statistic"
}  # fmt: skip


def size_columns(op: np.ndarray, size: np.ndarray, is_failed: np.ndarray) -> dict[str, pa.Array]:
    """One array for each of SIZE_COLUMNS; null in rows of other operations, and of failed calls."""
    return {
        name: pyarrow().array(size, mask=~sizes_hold(meaning)[op] | is_failed)
        for name, meaning in SIZE_COLUMNS.items()
    }


class _MpiFields:
    """What the offset and the two halves of the size of MPI's records hold, for a batch; nothing
    for other records."""

    def __init__(self, events: Events):
        op, high = events["op"], events["bytes"] >> 32
        self.is_any = of_mpi(op)
        self.routine = np.where(self.is_any & (op != _AWAITED), high & 0xFF, 0).astype(np.int32)
        is_awaited_collective = (op == _AWAITED) & (high == _AWAITED_COLLECTIVE)
        self.has_sequence = (op == _COLLECTIVE) | (op == _START_COLLECTIVE) | is_awaited_collective
        self.has_peer = self.is_any & (op >= _RECEIVE) & ~is_awaited_collective
        self.bytes = events["bytes"] & 0xFFFFFFFF


def event_batches(
    report: Report, wanted: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """All records of the chosen ranks; wanted: some of their columns. cost: one pass; memory: a
    batch."""
    for source in event_sources(report):
        yield from source.batches(wanted)


def event_sources(report: Report) -> Iterator[EventSource]:
    """The trace files of all steps, one after the other."""
    for step in report.steps:
        for index in range(len(step.data.files)):
            yield EventSource(step.data, index, report.names, step.chosen_of(index))


class EventSource:
    """The records of one trace file, and what all their batches share."""

    def __init__(
        self, data: StepData, index: int, names: NameTable, chosen: np.ndarray | None = None
    ):
        """chosen: mask of the file's processes; None: all."""
        pa = pyarrow()
        self.step, self.node = data.step.name, data.files[index].node
        self.file, self.line = data.files[index], data.lines[index]
        first = data.first_member(index)
        self.members = members = data.members[first : first + len(self.file.processes)]
        self.chosen = chosen
        self.pid = np.array([one.process.pid for one in members], np.int32)
        self.rank = np.array([one.rank for one in members], np.int32)
        labels, self.label = names.ranks.labels(np.array([one.number for one in members], np.int64))
        self.ranks = names.ranks
        self.launcher = np.array([one.is_launcher for one in members], bool)
        numbers, self.lost = data.name_numbers[index], self._lost_names(names,
            data.name_numbers[index], data.sums.has_lost_names)
        known = np.unique(np.r_[numbers, np.fromiter(self.lost.values(), np.int32, len(self.lost))])
        # text -> index in the dictionary; here and below the last is for no name
        self.place = np.r_[np.searchsorted(known, numbers), 0].astype(np.int32)
        self.lost = {key: int(np.searchsorted(known, number)) for key, number in self.lost.items()}
        self.text_is_excluded = np.r_[np.isin(numbers, data.excluded), False]
        is_counted = np.r_[self.file.array("texts")["is_file"] != 0, True]
        self.text_is_file = is_counted | self.text_is_excluded
        self.names = pa.array([names[number] for number in known.tolist()], pa.string())
        self.constants = {name: pa.array([text], pa.string())
            for name, text in (("step", self.step), ("node", self.node))}
        coded = {"op": op_names(), "layer": layer_names(), "class": _CLASS_NAMES,
            "routine": routine_names()}
        coded["rank_label"] = labels
        self.dictionaries = {name: pa.array(texts, pa.string()) for name, texts in coded.items()}
        self.class_of = class_indices()

    def _lost_names(
        self, names: NameTable, numbers: np.ndarray, has_any: bool
    ) -> dict[tuple[int, int], int]:
        """Number of each name that is lost, by process and id."""
        if not has_any:
            return {}
        rows = self.file.rows_of(0, len(self.file.processes))
        lost = rows[(rows["file"] != 0) & (self.file.texts_of(rows["process"], rows["file"])
            == LOST)]
        found = name_numbers(self.file, lost, names, numbers).tolist()
        return dict(zip(zip(lost["process"].tolist(), lost["file"].tolist()), found))

    def process_name(self, pid: int) -> str:
        """What a process is called: step, rank, program, node."""
        member = next(one for one in self.members if one.process.pid == pid)
        name = self.ranks[member.number]
        rank = name.title if name.is_rank else "no rank"
        return f"{self.step}: {rank}, {member.process.program or 'unknown'} on {self.node}"

    def records(self, ops: np.ndarray | None = None) -> Iterator[Events]:
        """Those of the chosen ranks. ops: mask of the operations; None: all."""
        return read_events(self.file, self.line.native(), wanted=ops, chosen=self.chosen)

    def batches(self, wanted: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The records; wanted: some of the columns."""
        schema = chosen_schema(arrow_schema(EVENTS), wanted)
        for events in self.records():
            columns = self._columns(events, schema.names)
            yield pyarrow().record_batch([columns[name] for name in schema.names], schema)
        self.file.leave()

    def _columns(self, events: Events, wanted: Iterable[str]) -> dict[str, pa.Array]:
        """Those columns that are wanted: each costs as much as reading the records."""
        wanted = set(wanted)
        makers: Makers = {}
        for some in self._makers(events):
            makers |= some
        made = {name: make() for name, make in makers.items() if name in wanted}
        return made | self._file_columns(events, wanted)

    def _makers(self, events: Events) -> Iterable[Makers]:
        for make in (self._plain, self._of_process, self._of_flags, self._of_size, self._of_offset):
            yield make(events)

    def _coded(self, name: str, indices: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
        return pyarrow().DictionaryArray.from_arrays(pyarrow().array(indices, mask=mask),
            self.dictionaries[name])

    def _plain(self, events: Events) -> Makers:
        pa, zeros = pyarrow(), np.zeros(len(events["op"]), np.int32)
        return {
            **{name: partial(pa.DictionaryArray.from_arrays, zeros, one)
                for name, one in self.constants.items()},
            "thread": lambda: pa.array(events["thread"].view(np.int32)),
            "start_ns": lambda: pa.array(events["start_ns"]),
            "duration_ns": lambda: pa.array(events["duration_ns"]),
            "op": lambda: self._coded("op", events["op"].astype(np.int32)),
            "layer": lambda: self._coded("layer", events["layer"].astype(np.int32)),
            "class": lambda: self._coded("class", self.class_of[events["op"]]),
        }

    def _of_process(self, events: Events) -> Makers:
        pa, process = pyarrow(), events["process"]
        return {
            "pid": lambda: pa.array(self.pid[process]),
            "rank": lambda: pa.array(self.rank[process]),
            "rank_label": lambda: self._coded("rank_label", self.label[process]),
            "launcher": lambda: pa.array(self.launcher[process]),
        }

    def _of_flags(self, events: Events) -> Makers:
        pa, flags = pyarrow(), events["flags"]
        made: Makers = {
            name: lambda flag=flag: pa.array((flags & flag) != 0)
            for name, flag in (("short", SHORT), ("below", BELOW), ("nested", NESTED),
                ("of_output", OF_OUTPUT))
        }
        made["error"] = lambda: pa.array(events["error"].astype(np.int32),
            mask=(flags & ERROR) == 0)
        return made

    def _of_size(self, events: Events) -> Makers:
        op, size = events["op"], events["bytes"]

        def is_failed() -> np.ndarray:
            return (events["flags"] & ERROR) != 0

        def moved() -> np.ndarray:
            moves_none, mpi = is_failed() | ~sizes_hold("data")[op], _MpiFields(events)
            return np.where(moves_none, 0, np.where(mpi.is_any, mpi.bytes, size))

        return {"bytes": lambda: pyarrow().array(moved())} | {
            name: lambda name=name: size_columns(op, size, is_failed())[name]
            for name in SIZE_COLUMNS
        }

    def _of_offset(self, events: Events) -> Makers:
        pa, offset = pyarrow(), events["offset"]
        is_fortran, is_unknown = events["layer"] == FORTRAN, offset == _UNKNOWN

        def no_offset() -> np.ndarray:
            is_other = _MpiFields(events).is_any | is_mpi_open(events["op"])
            return is_unknown | is_fortran | is_other | names_function(events)

        def mpi(make: Callable[[_MpiFields], pa.Array]) -> Callable[[], pa.Array]:
            return lambda: make(_MpiFields(events))

        return {
            "offset_bytes": lambda: pa.array(offset, mask=no_offset()),
            "unit": lambda: pa.array(offset, mask=is_unknown | ~is_fortran),
            "routine": mpi(lambda of: self._coded("routine", of.routine, of.routine == 0)),
            "sequence": mpi(lambda of: pa.array(offset, mask=~of.has_sequence | is_unknown)),
            "peer": mpi(lambda of: pa.array(offset.astype(np.int32),
                mask=~of.has_peer | is_unknown)),
        }

    def _file_columns(self, events: Events, wanted: set[str]) -> dict[str, pa.Array]:
        if not wanted & {"file", "is_file", "excluded"}:
            return {}
        pa = pyarrow()
        text, is_nothing = events["text"], events["text"] == LOST
        at = np.where(is_nothing, np.uint32(len(self.place) - 1), text)  # the last is for nothing
        made = {}
        if "is_file" in wanted:
            made["is_file"] = pa.array(self.text_is_file[at])
        if "excluded" in wanted:
            made["excluded"] = pa.array(self.text_is_excluded[at])
        if "file" in wanted:
            index = self.place[at]
            for row in np.flatnonzero(is_nothing & (events["file"] != 0)).tolist():
                number = self.lost.get((int(events["process"][row]), int(events["file"][row])))
                if number is not None:  # None: written after the file was scanned
                    index[row], is_nothing[row] = number, False
            made["file"] = pa.DictionaryArray.from_arrays(pa.array(index, mask=is_nothing),
                self.names)
        return made
