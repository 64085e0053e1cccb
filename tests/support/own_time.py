# SPDX-License-Identifier: Apache-2.0
"""Whose time in I/O a record is, said once more than in the code that is tested
(docs/reference/tables.md)."""

from __future__ import annotations

from weir.trace.ops import BELOW, NESTED

_PARTS = {"sendfile_in", "copy_file_range_in", "splice_in", "lio_read", "lio_write", "aio_read",
    "aio_write"}


def is_own(op: str, flags: int) -> bool:
    """A statement of Fortran has none: the calls of the library below it have it."""
    if op.startswith("fortran_"):
        return False
    return not flags & NESTED or bool(flags & BELOW and op not in _PARTS)
