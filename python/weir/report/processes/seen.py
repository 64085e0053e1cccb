# SPDX-License-Identifier: Apache-2.0
"""What the records of each process of a step have that bears on the kernel's figures of it."""

from __future__ import annotations

import numpy as np

from weir.analysis.columns import file_keys, merged, sums_by_member
from weir.analysis.step import StepData
from weir.trace.ops import EVENTS, NOTES, op_named

_IN_MEMORY = ("/dev/shm/", "/memfd:")  # file systems without storage
_UNCOUNTED = ("splice", "splice_in", "async_read", "async_write")  # by rchar and wchar


def seen(data: StepData) -> tuple[np.ndarray, ...]:
    """Application calls, own ns, bytes read and written of each member, exactly."""
    columns, count = data.sums.by_member, len(data.members)
    moved = (np.where(columns.by_code(code), columns.moved, 0) for code in "RW")
    parts = (columns.app_calls, columns.own_ns, *moved)
    calls, ns, read, written = (sums_by_member(columns, part, count) for part in parts)
    return calls, ns, read + _more_below(data, "R", count), written + _more_below(data, "W", count)


def _more_below(data: StepData, code: str, count: int) -> np.ndarray:
    """Bytes that the layers of each member moved more than its program asked for, file by file."""
    sums = np.zeros(count, np.int64)
    layered = data.layered.where((data.layered.layer < NOTES) & data.layered.by_code(code))
    if not len(layered):
        return sums
    by_layer = merged(layered, "member", "name", "layer")
    is_last = np.r_[(np.diff(by_layer.member) != 0) | (np.diff(by_layer.name) != 0), True]
    lowest = by_layer.where(is_last & (by_layer.layer > EVENTS))
    program = data.where(lambda some: some.by_code(code) & np.isin(some.name, lowest.name))
    files, at = np.unique(np.r_[file_keys(lowest), file_keys(program)], return_inverse=True)
    more = np.zeros(len(files), np.int64)
    np.add.at(more, at, np.r_[lowest.bytes, -program.moved])
    below = at[: len(lowest)]
    np.add.at(sums, lowest.member, np.maximum(more[below], 0))
    return sums


def uncounted(data: StepData) -> list[np.ndarray]:
    """Bytes that each member read and wrote by calls that rchar and wchar leave out."""
    columns = data.sums.by_member
    is_uncounted = np.isin(columns.op, [op_named(name).value for name in _UNCOUNTED])
    parts = (np.where(columns.by_code(code) & is_uncounted, columns.moved, 0) for code in "RW")
    return [sums_by_member(columns, part, len(data.members)) for part in parts]


def evidence(data: StepData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each member: bytes of files with storage that it mapped, bytes of what is no file
    (segments of MPI libraries are none, native/wire/paths.h), and rings whose requests no hook
    saw."""
    rings_made, entered, mmap = (op_named(name).value
        for name in ("io_uring_setup", "io_uring_enter", "mmap"))
    columns = data.as_storage(data.where(
        lambda some: np.isin(some.op, (rings_made, entered, mmap))))
    count, is_mmap = len(data.members), columns.op == mmap
    is_mapping = is_mmap & columns.is_file
    is_mapping &= ~np.isin(columns.name, _in_memory(data, np.unique(columns.name[is_mapping])))
    is_ring, enters = columns.op == rings_made, columns.op == entered
    mapped, shared, rings = (
        sums_by_member(columns, np.where(mask, part, 0), count)
        for mask, part in (
            (is_mapping, columns.bytes), (is_mmap & ~columns.is_file, columns.bytes),
            (is_ring, columns.calls - columns.errors),
        )
    )  # fmt: skip
    rings[np.unique(columns.member[enters])] = 0
    return mapped, shared, rings


def _in_memory(data: StepData, mapped: np.ndarray) -> list[int]:
    """Those of some names that have no storage."""
    found = set()
    for file, numbers in zip(data.files, data.name_numbers):
        for at in np.flatnonzero(np.isin(numbers, mapped)).tolist():
            if file.texts[at].startswith(_IN_MEMORY):
                found.add(int(numbers[at]))
    return sorted(found)
