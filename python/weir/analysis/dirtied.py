# SPDX-License-Identifier: Apache-2.0
"""How many pages each process may have made dirty beside the bytes that it wrote: by small calls, and in blocks of metadata."""

from __future__ import annotations

from functools import cache

import numpy as np

from weir.analysis.columns import Columns, file_keys, merged, sums_by_member
from weir.analysis.names import NO_NAME
from weir.trace.ops import POSIX, STDIO, ops

_PAGE_BYTES = 4 << 10
_DIRTIED_BYTES = 16 << 10  # by such a call: the pages at both its ends, blocks of metadata
_CHANGES = (
    "mkdir rename link symlink unlink rmdir mknod creat mkstemp tmpfile truncate ftruncate fallocate posix_fallocate chmod chown utime setxattr "
    "removexattr fsync fdatasync syncfs sync sync_file_range msync aio_fsync lio_listio"
).split()
_OPENS = "open openat fopen freopen".split()


@cache
def _is(*names: str) -> np.ndarray:
    """Mask by operation: whether it has one of these names."""
    mask = np.zeros(256, bool)
    for value, op in ops().items():
        mask[value] = op.layer in (POSIX, STDIO) and op.name in names
    return mask


def dirtied_bytes(columns: Columns, members: int) -> np.ndarray:
    """Of each member, at most: calls that cannot make a page dirty (stat, lseek, readdir, a file opened to be read) add nothing."""
    chosen = columns.where(columns.is_file & np.isin(columns.layer, (POSIX, STDIO)))
    done = np.maximum(chosen.calls - chosen.errors, 0)
    changes = _is(*_CHANGES)[chosen.op] | (chosen.by_code("W") & (chosen.layer == POSIX))
    calls = sums_by_member(chosen, np.where(changes, done, 0), members)
    calls += _opened(chosen, members) + _stream_writes(chosen, done, members)
    return calls * _DIRTIED_BYTES


def _opened(columns: Columns, members: int) -> np.ndarray:
    """Files that were opened and not read, which may have been created; where no names are known each call."""
    opens, reads = columns.where(_is(*_OPENS)[columns.op]), columns.where(columns.by_code("R"))
    files = merged(opens, "member", "name")
    is_read = np.isin(file_keys(files), file_keys(reads))
    done = np.maximum(files.calls - files.errors, 0)
    return sums_by_member(files, np.where(files.name == NO_NAME, done, np.where(is_read, 0, np.minimum(done, 1))), members)


def _stream_writes(columns: Columns, done: np.ndarray, members: int) -> np.ndarray:
    """Writes that streams made at most: one when the buffer is full, one for each seek, flush and close; each call's where a program
    set the buffer."""
    is_stream, is_write = columns.layer == STDIO, columns.by_code("W")
    calls, size, others, buffers = (
        sums_by_member(columns, np.where(is_stream & mask, part, 0), members)
        for mask, part in (
            (is_write, done), (is_write, columns.bytes), (columns.by_code("MCO"), columns.calls), (_is("setvbuf")[columns.op], columns.calls),
        )
    )  # fmt: skip
    return np.where(buffers > 0, calls, np.minimum(calls, size // _PAGE_BYTES + others))
