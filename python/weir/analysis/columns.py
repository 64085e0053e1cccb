# SPDX-License-Identifier: Apache-2.0
"""The columns that every table is computed from: one row for each process, file name, operation,
layer and flags."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from weir.trace.ops import BELOW, NESTED, POSIX, STDIO, has_own_time, ops

INTEGERS = ("calls", "bytes", "ns", "errors")


@cache
def class_codes() -> np.ndarray:
    """Class of each operation by value, as the code of its letter; 0 where there is none."""
    codes = np.zeros(256, np.uint8)
    for value, op in ops().items():
        codes[value] = ord(op.op_class)
    return codes


@cache
def has_class(classes: str) -> np.ndarray:
    """Mask by operation: whether it is of one of these classes."""
    return np.isin(class_codes(), np.frombuffer(classes.encode(), np.uint8))


def has_name(names: Collection[str], *layers: int) -> np.ndarray:
    """Mask by operation: whether it is one of these, of these layers; of any layer where none are
    given."""
    mask = np.zeros(256, bool)
    mask[[value for value, one in ops().items()
        if one.name in names and (not layers or one.layer in layers)]] = True
    return mask


@dataclass(frozen=True)
class Columns:
    """Arrays of one length. member: index of the process in its step; name: number of the file
    name, -1 none."""

    member: np.ndarray
    rank: np.ndarray
    name: np.ndarray
    op: np.ndarray
    layer: np.ndarray
    flags: np.ndarray
    is_file: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray
    ns: np.ndarray
    errors: np.ndarray
    first_ns: np.ndarray
    last_ns: np.ndarray

    def __len__(self) -> int:
        return len(self.member)

    def where(self, mask: np.ndarray | slice) -> Columns:
        """The rows that a mask, order or slice chooses; these columns themselves when a mask
        chooses all."""
        if isinstance(mask, np.ndarray) and mask.dtype == bool and mask.all():
            return self
        return Columns(*(getattr(self, field.name)[mask] for field in fields(self)))

    @staticmethod
    def joined(parts: list[Columns]) -> Columns:
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else Columns.empty()
        return Columns(*(np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Columns)))

    @staticmethod
    def empty() -> Columns:
        kinds = dict(op=np.uint8, layer=np.uint8, flags=np.uint8, is_file=bool, member=np.int32,
            rank=np.int32, name=np.int32)
        return Columns(*(np.empty(0, kinds.get(field.name, np.int64)) for field in fields(Columns)))

    def by_code(self, classes: str) -> np.ndarray:
        """Mask of the rows whose operation is of one of these classes."""
        return has_class(classes)[self.op]

    @property
    def is_below(self) -> np.ndarray:
        return (self.flags & BELOW) != 0

    @property
    def is_nested(self) -> np.ndarray:
        return (self.flags & NESTED) != 0

    @property
    def app_calls(self) -> np.ndarray:
        """Calls that the application made itself."""
        return np.where(~self.is_below, self.calls, 0)

    @property
    def own_ns(self) -> np.ndarray:
        """Time in I/O that no other record of the thread has."""
        return np.where(has_own_time(self.op, self.layer, self.flags), self.ns, 0)

    @property
    def moved(self) -> np.ndarray:
        """Bytes moved at the lowest level seen."""
        lowest = (self.layer == POSIX) | (self.layer == STDIO)
        return np.where(lowest & self.by_code("RW"), self.bytes, 0)


class Row(NamedTuple):
    """One row of columns, for tables that are small once merged."""

    rank: int
    name: int
    op: int
    layer: int
    flags: int
    calls: int
    bytes: int
    ns: int
    errors: int


def rows(columns: Columns) -> Iterator[Row]:
    """Plain integers, row by row."""
    return map(Row._make, zip(*(getattr(columns, field).tolist() for field in Row._fields)))


def starts(*sorted_keys: np.ndarray) -> np.ndarray:
    """Where a new combination of the keys begins; before: at least one row, sorted by these keys.
    """
    is_new = np.zeros(len(sorted_keys[0]), bool)
    is_new[0] = True
    for key in sorted_keys:
        is_new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(is_new)


def numbered(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different keys, rising, and the place of each key among them (int32): as numpy's unique,
    but without sorting where keys are small numbers."""
    if len(keys) and keys.min() >= 0 and keys.max() < max(len(keys), 1 << 16):
        is_there = np.zeros(int(keys.max()) + 1, bool)
        is_there[keys] = True
        place = np.cumsum(is_there, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(is_there).astype(keys.dtype), place[keys]
    found, at = np.unique(keys, return_inverse=True)
    return found, at.astype(np.int32)


def grouped(*keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of rows by these keys, and where each combination of them begins in it; before: at
    least one row. Rows of one combination stay in their order."""
    lows = [int(key.min()) for key in keys]
    widths = [(int(key.max()) - low).bit_length() for key, low in zip(keys, lows)]
    if sum(widths) > 63:
        order = np.lexsort(keys[::-1])
        return order, starts(*(key[order] for key in keys))
    packed = np.zeros(len(keys[0]), np.int64)  # one sort of one column
    for key, low, width in zip(keys, lows, widths):
        packed <<= width
        packed |= key.astype(np.int64) - low
    order = np.argsort(packed, kind="stable")
    return order, starts(packed[order])


def merged(columns: Columns, *keys: str) -> Columns:
    """Rows added up over everything but `keys`; the other columns hold the value of one of the
    rows."""
    if not len(columns):
        return columns
    order, begins = grouped(*(getattr(columns, key) for key in keys))
    ordered = columns.where(order)
    return replace(
        ordered.where(begins),
        **{name: np.add.reduceat(getattr(ordered, name), begins) for name in INTEGERS},
        first_ns=np.minimum.reduceat(ordered.first_ns, begins),
        last_ns=np.maximum.reduceat(ordered.last_ns, begins),
    )


def sums_by_member(columns: Columns, part: np.ndarray, members: int) -> np.ndarray:
    """A part of each row, added up for each of so many members."""
    sums = np.zeros(members, np.int64)
    np.add.at(sums, columns.member, part)
    return sums


def file_keys(columns: Columns) -> np.ndarray:
    """One number for a name in a member."""
    return columns.member.astype(np.int64) << 32 | columns.name.astype(np.int64) & 0xFFFFFFFF
