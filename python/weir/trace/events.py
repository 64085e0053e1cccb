# SPDX-License-Identifier: Apache-2.0
"""Raw records of a trace file as columns, a bounded number of rows at a time: what fits no memory
is read all the same."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

import numpy as np

from weir.trace._abi import (
    EVENT_COLUMNS, TRANSFER_COLUMNS, Clock, Cursor, EventColumns, TransferColumns, events_function,
    transfers_functions,
)  # fmt: skip
from weir.trace.file import TraceFile

ROWS = 1 << 16

# Column -> array of one length; docs/formats/trace.md 3.3 says what is in them,
# native/reader/weir_reader.h in which unit.
Events = dict[str, np.ndarray]


def read_events(
    file: TraceFile, clock: Clock, rows: int = ROWS, wanted: np.ndarray | None = None,
    chosen: np.ndarray | None = None,
) -> Iterator[Events]:
    """All records of the file in arrays of at most `rows` rows, each batch in arrays of its own.
    wanted: mask of the operations (256), chosen: of the file's processes; None: all. cost: one pass
    over the chunks of these processes, and one batch of memory."""
    cursor = Cursor(end_chunk=len(file.array("chunks")))
    while True:
        batch = next_events(file, clock, cursor, rows, wanted, chosen)
        if len(batch["op"]):
            yield batch
        if len(batch["op"]) < rows:
            return


def next_events(file: TraceFile, clock: Clock, cursor: Cursor, rows: int = ROWS,
        wanted: np.ndarray | bytearray | None = None, chosen: np.ndarray | None = None) -> Events:
    """The next records behind the cursor, which moves on. Fewer than `rows`: the cursor is at its
    end. wanted, chosen: as of read_events()."""
    batch = {name: np.empty(rows, EVENT_COLUMNS[name]) for name in EVENT_COLUMNS.names or ()}
    pointers = EventColumns(*(column.ctypes.data for column in batch.values()))
    masks = [None if one is None else np.array(one, np.uint8) for one in (wanted, chosen)]
    count = events_function()(file.handle, c.byref(clock), c.byref(cursor), rows,
        *(None if one is None else one.ctypes.data for one in masks), c.byref(pointers))
    return batch if count == rows else {name: column[:count] for name, column in batch.items()}


def read_transfers(file: TraceFile, clock: Clock, wanted: np.ndarray, chosen: np.ndarray,
        rows: int = ROWS) -> Iterator[Events]:
    """Reads and writes at the lowest level seen, process by process in the order in which they
    ended, with the offsets of C streams' transfers where they follow from opens and seeks
    (native/reader/weir_transfers.h). wanted, chosen: masks of texts and of processes. before: the
    file was scanned. Raises MemoryError."""
    create, following, destroy = transfers_functions()
    masks = [np.ascontiguousarray(one, np.uint8) for one in (wanted, chosen)]
    made = c.c_void_p(create(file.handle, c.byref(clock), *(one.ctypes.data for one in masks)))
    try:
        count = c.c_uint64(rows)
        while count.value == rows:
            batch = {name: np.empty(rows, TRANSFER_COLUMNS[name])
                for name in TRANSFER_COLUMNS.names or ()}
            out = TransferColumns(*(column.ctypes.data for column in batch.values()))
            if not made or following(made, rows, c.byref(out), c.byref(count)):
                raise MemoryError(f"{file.path}: not enough memory for the transfers of its files")
            if count.value:
                yield {name: column[: count.value] for name, column in batch.items()}
    finally:
        if made:
            destroy(c.byref(made))
