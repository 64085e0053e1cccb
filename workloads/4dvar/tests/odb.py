# SPDX-License-Identifier: Apache-2.0
"""Reads the workload's data bases, written from the description in its README alone."""

from __future__ import annotations

import struct
from pathlib import Path

UPDATE_COLUMNS = ("seqno", "fg_depar", "an_depar", "status")


def sections(path: Path):
    """(pool, rows) of a table file; a row is a tuple of its columns."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        pool, rows, columns = struct.unpack_from("<iii", data, at)
        at += 12
        values = struct.unpack_from(f"<{rows * columns}d", data, at)
        at += 8 * len(values)
        yield pool, [values[i : i + columns] for i in range(0, len(values), columns)]


def updates(work: Path) -> dict[tuple[str, int, int], dict[str, float]]:
    """The rows of all update tables of ECMA, by type, pool and number."""
    return {
        (path.parent.parent.name, pool, number): dict(zip(UPDATE_COLUMNS, row, strict=True))
        for path in sorted(work.glob("ECMA.*/*/update"))
        for pool, rows in sections(path)
        for number, row in enumerate(rows)
    }
