# SPDX-License-Identifier: Apache-2.0
"""Raw records of a trace file as columns, a bounded number of rows at a time: what fits no memory
is read all the same."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

import numpy as np

from weir.trace._abi import EVENT_COLUMNS, Clock, Cursor, EventColumns, events_function
from weir.trace.file import TraceFile

ROWS = 1 << 16

# Column -> array of one length; docs/formats/trace.md 3.3 says what is in them,
# native/reader/weir_reader.h in which unit.
Events = dict[str, np.ndarray]


def read_events(file: TraceFile, clock: Clock, rows: int = ROWS) -> Iterator[Events]:
    """All records of the file in arrays of at most `rows` rows, each batch in arrays of its own.
    cost: one pass, and one batch of memory."""
    cursor = Cursor(end_chunk=len(file.array("chunks")))
    while True:
        batch = next_events(file, clock, cursor, rows)
        if len(batch["op"]):
            yield batch
        if len(batch["op"]) < rows:
            return


def next_events(file: TraceFile, clock: Clock, cursor: Cursor, rows: int = ROWS,
        wanted: np.ndarray | bytearray | None = None) -> Events:
    """The next records behind the cursor, which moves on. Fewer than `rows`: the cursor is at its
    end. wanted: mask of the operations (256); None: all."""
    batch = {name: np.empty(rows, EVENT_COLUMNS[name]) for name in EVENT_COLUMNS.names or ()}
    pointers = EventColumns(*(column.ctypes.data for column in batch.values()))
    ops = None if wanted is None else np.array(wanted, np.uint8)
    count = events_function()(file.handle, c.byref(clock), c.byref(cursor), rows,
        None if ops is None else ops.ctypes.data, c.byref(pointers))
    return batch if count == rows else {name: column[:count] for name, column in batch.items()}
