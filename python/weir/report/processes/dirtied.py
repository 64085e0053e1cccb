# SPDX-License-Identifier: Apache-2.0
"""How many bytes each process may have made dirty beside the bytes that it wrote: the rest of the
pages of small writes, blocks of metadata, and pages of the trace itself.

The kernel counts a page, whole, when a write finds it clean. Writes that follow one another in a
file touch one page more than their bytes fill, whatever their number: pages are shared by them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from weir.analysis.columns import Columns, file_keys, merged, sums_by_member
from weir.analysis.names import NO_NAME
from weir.analysis.step import StepData
from weir.report.processes.figures import of_processes
from weir.trace.ops import POSIX, STDIO, ops

_DIRTIED_BYTES = 16 << 10  # at one place: the pages at both its ends, blocks of metadata
_PAGE_BYTES = 4 << 10
_METADATA_PART = 64  # of the bytes of a file that grows: block maps of file systems without extents
_SYNCHRONOUS_NS = 20_000  # a write that takes so long waits for storage (O_SYNC): its page is clean
# The trace is a mapping. A record that is stored where the kernel has just cleaned the page makes
# the whole folio dirty, of up to 64 pages (ext4, Linux 6.18): measured 5 to 13 times a second where
# other processes keep the kernel busy with writing.
_FOLIO_BYTES = 64 * _PAGE_BYTES
_MOST_FOLIOS = 1 << 40  # whatever a damaged trace says
_CHANGES = (
    "mkdir rename link symlink unlink rmdir mknod creat mkstemp tmpfile truncate ftruncate "
    "fallocate posix_fallocate chmod chown utime setxattr removexattr fsync fdatasync syncfs sync "
    "sync_file_range msync aio_fsync lio_listio"
).split()
_OPENS = "open openat creat mkstemp tmpfile fopen freopen".split()
_SEEKS = "lseek fseek rewind".split()
_WITHOUT_OFFSET = "write writev dprintf sendfile splice".split()


@cache
def _is(*names: str) -> np.ndarray:
    """Mask by operation: whether it has one of these names."""
    mask = np.zeros(256, bool)
    for value, op in ops().items():
        mask[value] = op.layer in (POSIX, STDIO) and op.name in names
    return mask


def dirtied_bytes(data: StepData) -> np.ndarray:
    """Of each member, at most: calls that cannot make a page dirty (stat, lseek, readdir, a file
    opened to be read) add nothing."""
    of_names, members = _OfNames(_chosen(data, data.sums.by_file)), len(data.members)
    sums = np.zeros(members, np.int64)
    for part in data.by_node():
        chosen = _chosen(data, part)
        done = np.maximum(chosen.calls - chosen.errors, 0)
        is_write = chosen.by_code("W")
        is_in_order = is_write & ((chosen.layer == STDIO) | _is(*_WITHOUT_OFFSET)[chosen.op])
        is_place = _is(*_CHANGES)[chosen.op] | (is_write & ~is_in_order)
        places = sums_by_member(chosen, np.where(is_place, done, 0), members)
        places += _opened(chosen, members)
        sums += places * _DIRTIED_BYTES
        sums += _by_writes_in_order(chosen, done, is_in_order, members, of_names)
    return sums


def dirtied_by_trace(data: StepData) -> np.ndarray:
    """Of each member, at most: bytes of the trace that it made dirty again and again, beside
    own_written."""
    stores = of_processes(data, "events") + of_processes(data, "counted_calls")
    return np.minimum(stores, _MOST_FOLIOS) * _FOLIO_BYTES


def _chosen(data: StepData, columns: Columns) -> Columns:
    columns = data.as_storage(columns)
    return columns.where(columns.is_file & np.isin(columns.layer, (POSIX, STDIO)))


class _OfNames:
    """By name, of all members: how often the position of a descriptor was moved, and bytes that
    were read and written."""

    def __init__(self, columns: Columns):
        self._names, at = np.unique(columns.name, return_inverse=True)
        done = np.maximum(columns.calls - columns.errors, 0)
        is_transfer = columns.by_code("RW") & (columns.name != NO_NAME)
        parts = (np.where(_is(*_OPENS, *_SEEKS)[columns.op], done, 0),
            np.where(is_transfer, columns.bytes, 0))
        self._sums = np.zeros((2, len(self._names)), np.int64)
        for into, part in zip(self._sums, parts):
            np.add.at(into, at.reshape(-1), part)

    def of(self, names: np.ndarray) -> np.ndarray:
        """Both, of these names."""
        return self._sums[:, np.searchsorted(self._names, names)]


def _opened(columns: Columns, members: int) -> np.ndarray:
    """Files that were opened and not read, which may have been created; where no names are known
    each call."""
    is_open = _is("open", "openat", "fopen", "freopen")[columns.op]
    opens, reads = columns.where(is_open), columns.where(columns.by_code("R"))
    files = merged(opens, "member", "name")
    is_read = np.isin(file_keys(files), file_keys(reads))
    done = np.maximum(files.calls - files.errors, 0)
    created = np.where(is_read, 0, np.minimum(done, 1))
    return sums_by_member(files, np.where(files.name == NO_NAME, done, created), members)


def _by_writes_in_order(
    columns: Columns, done: np.ndarray, is_write: np.ndarray, members: int, of_names: _OfNames
) -> np.ndarray:
    """By writes at the position of their descriptor, file by file: no more places than calls, and
    than moves of the position: opens, seeks, and what others and reads moved it on."""
    sums = np.zeros(members, np.int64)
    if not is_write.any():
        return sums
    files, first, of_file = np.unique(file_keys(columns), return_index=True, return_inverse=True)

    def total(part: np.ndarray) -> np.ndarray:
        made = np.zeros(len(files), np.int64)
        np.add.at(made, of_file.reshape(-1), np.where(is_write, part, 0))
        return made

    calls, written, ns = map(total, (done, columns.bytes, columns.ns))
    span_s = total(columns.last_ns - columns.first_ns)
    span_s //= 10**9  # in each of which the kernel may have cleaned the page at the end
    moves, moved = of_names.of(columns.name[first])
    elsewhere = np.maximum(moved - written, 0)
    in_order = (moves + 1) * _DIRTIED_BYTES + elsewhere + span_s * _PAGE_BYTES
    in_order += written // _METADATA_PART
    each = calls * _DIRTIED_BYTES
    most = np.where(ns >= calls * _SYNCHRONOUS_NS, each, np.minimum(each, in_order))
    np.add.at(sums, files >> 32, most)
    return sums
