# SPDX-License-Identifier: Apache-2.0
"""Which files and variables of files a step writes, and what each rank's calls on them cost:
native/reader/output_cost.cc over the records of a trace file."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import distinct
from weir.analysis.names import NO_NAME, NameTable, fold
from weir.analysis.step import StepData
from weir.report.files.naming import Files
from weir.report.output_cost.waiting import Growing
from weir.report.waits.instances import PREFIX
from weir.trace import _abi
from weir.trace.file import threads_for
from weir.trace.ops import HDF5, MPI, NETCDF, OUTPUT, PNETCDF

LIBRARIES = (PNETCDF, NETCDF, HDF5, OUTPUT)
NO_LABEL = -1


@dataclass(frozen=True)
class Cuts:
    """Names that stand for one file after the other: by number of the name the timestamps (ns)
    behind which it is of another label, rising, and these labels."""

    of_name: dict[int, tuple[list[int], list[int]]]

    def by_text(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For texts that are names: where the cuts of each begin, and behind the last one;
        timestamps; labels."""
        nothing: tuple[list[int], list[int]] = ([], [])
        of_text = [self.of_name.get(one, nothing) for one in numbers.tolist()] if self.of_name \
            else [nothing] * len(numbers)
        first = np.cumsum([0, *(len(timestamps) for timestamps, _ in of_text)])
        at = [at for timestamps, _ in of_text for at in timestamps]
        label = [label for _, labels in of_text for label in labels]
        return first.astype(np.uint64), np.array(at, np.int64), np.array(label, np.int64)


@dataclass(frozen=True)
class Labels:
    """Files that somebody writes, and variables of them. of_name, members: by number of a name, its
    label (NO_LABEL: of no output), and the members of the communicator that it is. By label: the
    label of its file, and its text: path of the file, or name of the variable."""

    of_name: np.ndarray
    members: np.ndarray
    cuts: Cuts
    file: np.ndarray
    texts: tuple[str, ...]

    def used_by(self, numbers: np.ndarray) -> LabelsOfTexts:
        """numbers: of the names of a trace file."""
        of_text, (first, at, cuts) = self.of_name[numbers], self.cuts.by_text(numbers)
        some = distinct(np.r_[of_text, cuts])
        some = some[some != NO_LABEL]
        every = distinct(np.r_[some, self.file[some].astype(np.int64)])

        def places(labels: np.ndarray) -> np.ndarray:
            found = np.searchsorted(every, labels)
            return np.where(labels == NO_LABEL, _abi.NO_ROW, found).astype(np.uint32)

        arrays = (places(of_text), np.ascontiguousarray(self.members[numbers]),
            places(self.file[every].astype(np.int64)), first, at, places(cuts))  # fmt: skip
        return LabelsOfTexts(every, arrays)


@dataclass(frozen=True)
class LabelsOfTexts:
    """Those that the names of one trace file have: each of its ranks has a table of them. every:
    their numbers, rising; arrays: as weir_reader_output has them, by their places among these."""

    every: np.ndarray
    arrays: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Callers:
    """Arrays by member of the step. rank: its place among the ranks (-1: none); thread: whose calls
    count, 0: of all threads; is_plain: whether its rank calls POSIX and stdio alone."""

    rank: np.ndarray
    thread: np.ndarray
    is_plain: np.ndarray


def labels_of(data: StepData, names: NameTable, behind: Files) -> Labels:
    """Files by the name that they had last, what has them in its name (variables), and streams of
    libweir."""
    columns, made = data.sums.by_file, _Made(names, behind)
    written = columns.where((columns.moved > 0) & columns.by_code("W") & columns.is_file)
    every = distinct(columns.name[columns.is_file & (columns.name != NO_NAME)])
    made.add_files(distinct(written.name[written.name != NO_NAME]), every)
    of_engine = set(distinct(columns.name[columns.layer == OUTPUT]).tolist())
    used = distinct(columns.name[np.isin(columns.layer, LIBRARIES) & (columns.name != NO_NAME)])
    for number in used.tolist():
        if number in of_engine:
            made.add_stream(number)
        else:
            made.add_variable(number)
    members = np.zeros(len(names.names) + 1, np.uint32)
    for number in distinct(columns.name[columns.layer == MPI]).tolist():
        size = names[number].rpartition(":")[2] if number != NO_NAME else ""
        if size.isdigit() and names[number].startswith(PREFIX):
            members[number] = min(int(size), 2**31)
    of_name = np.full(len(names.names) + 1, NO_LABEL, np.int64)
    of_name[list(made.of_name)] = list(made.of_name.values())
    return Labels(of_name, members, Cuts(made.cuts), np.array(made.file, np.uint32),
        tuple(made.texts))


class _Made:
    """Labels in the making."""

    def __init__(self, names: NameTable, behind: Files):
        self._names, self._behind = names, behind
        self._of_text: dict[tuple[int, str], int] = {}  # label of the file (-1: it is one), text
        self.texts: list[str] = []
        self.file: list[int] = []
        self.of_name: dict[int, int] = {}
        self.cuts: dict[int, tuple[list[int], list[int]]] = {}

    def _label(self, text: str, file: int = NO_LABEL) -> int:
        label = self._of_text.setdefault((file, text), len(self.texts))
        if label == len(self.texts):
            self.texts.append(text)
            self.file.append(label if file == NO_LABEL else file)
        return label

    def _pieces(self, path: str) -> tuple[list[int], list[str]]:
        """Timestamps at which a path began to stand for another file, and the last names of all
        that it stood for: one more."""
        behind = self._behind
        if behind.is_plain(path):
            return [], [path]
        cuts = behind.timestamps(path)
        moments = [*cuts, cuts[-1] + 1] if cuts else [0]
        return cuts, [behind.last_name(behind.at(path, at)[0]) for at in moments]

    def add_files(self, written: np.ndarray, used: np.ndarray) -> None:
        """Numbers of names that somebody writes, and of all names of files."""
        for path in map(self._names.__getitem__, written.tolist()):
            for last in (path,) if self._behind.is_plain(path) else self._pieces(path)[1]:
                self._label(last)
        of_text = self._of_text
        for number, path in zip(used.tolist(), map(self._names.__getitem__, used.tolist())):
            if not self._behind.is_plain(path):
                self._add(number, *self._pieces(path))
            elif (label := of_text.get((NO_LABEL, path))) is not None:
                self.of_name[number] = label

    def _add(self, number: int, cuts: list[int], files: list[str], variable: str = "") -> bool:
        """Whether one of the files is written."""
        found = [self._of_text.get((NO_LABEL, one), NO_LABEL) for one in files]
        if variable:
            found = [one if one == NO_LABEL else self._label(variable, one) for one in found]
        if all(one == NO_LABEL for one in found):
            return False
        self.of_name[number] = found[0]
        if cuts:
            self.cuts[number] = cuts, found[1:]
        return True

    def add_stream(self, number: int) -> None:
        stream = self._names[number].rpartition(":")[0].rstrip(":")
        self.of_name[number] = self._label(stream if ":" in stream else "output:(all streams)")

    def add_variable(self, number: int) -> None:
        """API, path of the file and variable; either may have colons."""
        path, _, variable = self._names[number].partition(":")[2].rpartition(":")
        while path and number not in self.of_name:
            if self._add(number, *self._pieces(fold(path)), variable):
                return
            path, _, more = path.rpartition(":")
            variable = f"{more}:{variable}"


def costs_in(data: StepData, names: NameTable, file: int, labels: Labels, ranks: Callers,
        growing: tuple[Growing, Growing, Growing]) -> np.ndarray:
    """Rows (OUTPUT_COST) of the ranks in one trace file; rank: its place among those of `ranks`.
    growing: waited, waiting and arriving of weir_reader_output.
    cost: a pass over the records of the file. Raises MemoryError."""
    trace, numbers = data.files[file], data.name_numbers[file]
    first = data.first_member(file)
    mine = slice(first, first + len(trace.processes))
    places = ranks.rank[mine]
    here = distinct(places[places >= 0])
    local = np.where(places >= 0, np.searchsorted(here, places), _abi.NO_ROW).astype(np.uint32)
    mine_of = (np.ascontiguousarray(one[mine], np.uint32)
        for one in (ranks.thread, ranks.is_plain))  # fmt: skip
    used = labels.used_by(numbers)
    arrays = (local, *mine_of, *used.arrays)
    sums = [one.of(here) for one in growing]
    asked = _abi.OutputAsked(
        len(here), len(used.every), threads_for(trace.header.file_bytes), 0,
        *(one.ctypes.data for one in arrays), *(one.native() for one in sums),
    )  # fmt: skip
    clock, count = data.lines[file].native(), c.c_uint64(2 * data.sums.rows[file] + len(here))
    rows = np.empty(0, _abi.OUTPUT_COST)
    while len(rows) < count.value:  # names that stand for many files have more than one row each
        rows = np.empty(count.value, _abi.OUTPUT_COST)
        failed = _abi.output_costs_function()(trace.handle, c.byref(clock), c.byref(asked),
            rows.ctypes.data, len(rows), c.byref(count))
        if failed:
            raise MemoryError("no memory for the cost of output")
    trace.leave()
    rows = rows[: count.value].copy()
    rows["rank"] = here[rows["rank"]]
    if len(used.every):
        rows["label"] = used.every[rows["label"]]
    return rows
