# SPDX-License-Identifier: Apache-2.0
"""The table of calls of MPI-IO, PnetCDF, netCDF-C and HDF5 as a stream of Arrow batches: the
records of these libraries, with the function that the program called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weir.query._arrow import arrow_schema, chosen_schema, pyarrow
from weir.query.events import EventSource, names_function
from weir.query.schema import EVENTS, LIBRARY_CALLS
from weir.report.frame.build import Report
from weir.report.mpi_io.variables import path_and_variable
from weir.trace.events import Events
from weir.trace.ops import HDF5, LAYER_NAMES, MPI_IO, library_functions, mpi_io_functions

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER, _MANNER = 0xFFFF, 16  # of a function in an offset; what is above it
_INDEPENDENT, _COLLECTIVE = 1, 2
_VARIES = -1


class _Functions:
    """All functions: their names, and for a batch the index of each record's."""

    def __init__(self) -> None:
        numbered, of_op = library_functions(), mpi_io_functions()
        every = [*numbered.values(), *of_op.values()]
        self.names = pyarrow().array([one.name for one in every], pyarrow().string())
        self.collective = np.array([_VARIES if one.collective is None else int(one.collective)
            for one in every] + [_VARIES], np.int8)
        self.by_number = np.full(_NUMBER + 1, -1, np.int32)
        self.by_number[list(numbered)] = np.arange(len(numbered))
        self.by_op = np.full(256, -1, np.int32)
        self.by_op[list(of_op)] = len(numbered) + np.arange(len(of_op))

    def index(self, events: Events) -> np.ndarray:
        """-1: of a trace that does not name functions."""
        number = np.where(events["offset"] < 0, 0, events["offset"]) & _NUMBER
        return np.where(names_function(events), self.by_number[number], self.by_op[events["op"]])

    def is_collective(self, events: Events, index: np.ndarray) -> pa.Array:
        manner = np.where(events["offset"] < 0, 0, events["offset"]) >> _MANNER
        varies = self.collective[index] == _VARIES
        chosen = np.isin(manner, (_INDEPENDENT, _COLLECTIVE)) & names_function(events)
        values = np.where(varies, manner == _COLLECTIVE, self.collective[index] == 1)
        return pyarrow().array(values, mask=varies & ~chosen)


class LibraryCalls(EventSource):
    """The calls in one trace file."""

    def batches(self, wanted: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        schema, functions = chosen_schema(arrow_schema(LIBRARY_CALLS), wanted), _Functions()
        texts = self.names.to_pylist()
        paths = {text for text in texts if text.startswith("/")}
        # A data set's name, LIBRARY:PATH:VARIABLE, is no path.
        parts = [(text, None) if text.startswith("/") else path_and_variable(text, paths)
            for text in texts]
        for events in self.records():
            layer = events["layer"]
            own = np.flatnonzero((layer >= MPI_IO) & (layer <= HDF5))
            if len(own):
                columns = self._calls({name: one[own] for name, one in events.items()},
                    functions, parts)
                yield pyarrow().record_batch([columns[name] for name in schema.names], schema)

    def _calls(self, events: Events, functions: _Functions,
            parts: list[tuple[str, str | None]]) -> dict[str, pa.Array]:
        pa = pyarrow()
        columns = self._columns(events, arrow_schema(EVENTS).names)
        index, name = functions.index(events), columns["file"].indices
        at = name.fill_null(0).to_numpy()
        is_set = np.array([variable is not None for _, variable in parts] or [False])
        no_name = name.is_null().to_numpy(zero_copy_only=False)

        def named(place: int, mask: np.ndarray) -> pa.Array:
            dictionary = pa.array([one[place] or "" for one in parts], pa.string())
            return pa.DictionaryArray.from_arrays(pa.array(at, mask=mask), dictionary)

        return columns | {
            "library": pa.DictionaryArray.from_arrays(pa.array(events["layer"].astype(np.int32)),
                pa.array(LAYER_NAMES, pa.string())),
            "function": pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0),
                functions.names),
            "collective": functions.is_collective(events, index),
            "end_ns": pa.array(events["start_ns"] + events["duration_ns"]),
            "file": named(0, no_name),
            "variable": named(1, no_name | ~is_set[at]),
        }


def library_call_batches(
    report: Report, wanted: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The calls of all steps; wanted: some of their columns. cost: one pass; memory: a batch."""
    for step in report.steps:
        for index in range(len(step.data.files)):
            source = LibraryCalls(step.data, index, report.names, step.chosen_of(index))
            yield from source.batches(wanted)
