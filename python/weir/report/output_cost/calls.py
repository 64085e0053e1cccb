# SPDX-License-Identifier: Apache-2.0
"""Which files and variables of files a step writes, and what each rank's calls on them cost:
native/reader/output_cost.cc over the records of a trace file."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass

import numpy as np

from weir.analysis.names import NO_NAME, NameTable, fold
from weir.analysis.step import StepData
from weir.report.output_cost.waiting import Growing
from weir.report.waits.instances import PREFIX
from weir.trace import _abi
from weir.trace.file import threads_for
from weir.trace.ops import HDF5, MPI, NETCDF, OUTPUT, PNETCDF

LIBRARIES = (PNETCDF, NETCDF, HDF5, OUTPUT)
NO_LABEL = -1


@dataclass(frozen=True)
class Labels:
    """Files that somebody writes, and variables of them. of_name, members: by number of a name, its
    label (NO_LABEL: of no output), and the members of the communicator that it is. By label: the
    label of its file, and its text: path of the file, or name of the variable."""

    of_name: np.ndarray
    members: np.ndarray
    file: np.ndarray
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Callers:
    """Arrays by member of the step. rank: its place among the ranks (-1: none); thread: whose calls
    count, 0: of all threads; is_plain: whether its rank calls POSIX and stdio alone."""

    rank: np.ndarray
    thread: np.ndarray
    is_plain: np.ndarray


def labels_of(data: StepData, names: NameTable) -> Labels:
    """Files, what has them in its name (variables), and streams of libweir."""
    columns = data.columns
    written = columns.where((columns.moved > 0) & columns.by_code("W") & columns.is_file)
    files = np.unique(written.name[written.name != NO_NAME]).tolist()
    of_name = np.full(len(names.names) + 1, NO_LABEL, np.int64)
    members = np.zeros(len(names.names) + 1, np.uint32)
    texts, file = [names[number] for number in files], list(range(len(files)))
    of_name[files] = file
    by_text = {text: label for label, text in enumerate(texts)}
    of_engine = set(np.unique(columns.name[columns.layer == OUTPUT]).tolist())
    used = np.unique(columns.name[np.isin(columns.layer, LIBRARIES) & (columns.name != NO_NAME)])
    for number in used.tolist():
        text = names[number]
        if number in of_engine:
            stream = text.rpartition(":")[0].rstrip(":")
            stream = stream if ":" in stream else "output:(all streams)"
            if stream not in by_text:
                by_text[stream] = len(texts)
                file.append(len(texts))
                texts.append(stream)
            of_name[number] = by_text[stream]
            continue
        path, _, variable = text.partition(":")[2].rpartition(":")
        while path and fold(path) not in by_text:
            path, _, more = path.rpartition(":")
            variable = f"{more}:{variable}"
        if path and of_name[number] == NO_LABEL:
            of_name[number] = len(texts)
            file.append(by_text[fold(path)])
            texts.append(variable)
    for number in np.unique(columns.name[columns.layer == MPI]).tolist():
        size = names[number].rpartition(":")[2] if number != NO_NAME else ""
        if size.isdigit() and names[number].startswith(PREFIX):
            members[number] = min(int(size), 2**31)
    return Labels(of_name, members, np.array(file, np.uint32), tuple(texts))


def costs_in(data: StepData, names: NameTable, file: int, labels: Labels, ranks: Callers,
        waited: Growing, waiting: Growing) -> np.ndarray:
    """Rows (OUTPUT_COST) of the ranks in one trace file; rank: its place among those of `ranks`.
    cost: a pass over the records of the file. Raises MemoryError."""
    trace, numbers = data.files[file], data.name_numbers[file]
    first = data.first_member(file)
    mine = slice(first, first + len(trace.processes))
    places = ranks.rank[mine]
    here = np.unique(places[places >= 0])
    room = len(trace.array("rows")) + 1
    rows, count = np.empty(room, _abi.OUTPUT_COST), c.c_uint64()
    local = np.where(places >= 0, np.searchsorted(here, places), _abi.NO_ROW).astype(np.uint32)
    label = labels.of_name[numbers]
    arrays = (
        local, *(np.ascontiguousarray(one[mine], np.uint32)
            for one in (ranks.thread, ranks.is_plain)),
        np.where(label == NO_LABEL, _abi.NO_ROW, label).astype(np.uint32),
        np.ascontiguousarray(labels.members[numbers]), np.ascontiguousarray(labels.file),
    )  # fmt: skip
    growing = [one.of(here) for one in (waited, waiting)]
    asked = _abi.OutputAsked(
        len(here), len(labels.texts), threads_for(trace.header.file_bytes), 0,
        *(one.ctypes.data for one in arrays), *(one.native() for one in growing),
    )  # fmt: skip
    clock = data.lines[file].native()
    failed = _abi.output_costs_function()(trace.handle, c.byref(clock), c.byref(asked),
        rows.ctypes.data, room, c.byref(count))
    if failed or count.value > room:
        raise MemoryError("no memory for the cost of output")
    rows = rows[: count.value].copy()
    rows["rank"] = here[rows["rank"]]
    return rows
