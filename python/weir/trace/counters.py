# SPDX-License-Identifier: Apache-2.0
"""Counters of a trace file as they lie in it (docs/formats/trace.md 3.4)."""

from __future__ import annotations

import numpy as np

from weir.trace._abi import COUNTER, HISTOGRAM

_VERSION_OFFSET, _CHUNK_BYTES = 8, 64
_HISTOGRAM = 1  # the form of an entry


def counters_in(raw: np.ndarray, chunk: np.void) -> np.ndarray:
    """A copy of the counters of a chunk, by their place in it: what is no counter is a row of
    zeros.

    raw: all bytes of the file; chunk: a row of the reader's table of chunks.
    """
    is_wide = int(raw[_VERSION_OFFSET]) == 1
    entries, begin = int(chunk["entries"]), int(chunk["offset"]) + _CHUNK_BYTES
    entry_bytes = HISTOGRAM.itemsize if is_wide else COUNTER.itemsize
    body = raw[begin : begin + entries * entry_bytes].reshape(entries, entry_bytes)
    counters = body[:, : COUNTER.itemsize].copy().view(COUNTER).reshape(entries)
    if is_wide:
        return counters
    room = HISTOGRAM.itemsize // COUNTER.itemsize
    end = 0
    for place in np.flatnonzero(counters["form"] == _HISTOGRAM).tolist():
        if place >= end:  # else a bin of the one before it
            end = place + room
            counters[place:end] = np.zeros((), COUNTER)
    return counters
