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


def distinct(keys: np.ndarray) -> np.ndarray:
    """The different keys, rising: as numpy's unique, which looks each of them up in a hash table.
    """
    if _are_small(keys):
        return np.flatnonzero(_seen(keys)).astype(keys.dtype)
    made = np.sort(keys)
    return made[starts(made)] if len(made) else made


def numbered(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different keys, rising, and the place of each key among them (int32): as numpy's unique,
    but without sorting where keys are small numbers."""
    if _are_small(keys):
        is_there = _seen(keys)
        place = np.cumsum(is_there, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(is_there).astype(keys.dtype), place[keys]
    found, at = np.unique(keys, return_inverse=True)
    return found, at.astype(np.int32)


def _are_small(keys: np.ndarray) -> bool:
    return len(keys) > 0 and keys.min() >= 0 and keys.max() < max(len(keys), 1 << 16)


def _seen(keys: np.ndarray) -> np.ndarray:
    """Mask by number: whether it is one of the keys, which are small."""
    is_there = np.zeros(int(keys.max()) + 1, bool)
    is_there[keys] = True
    return is_there


def order_of(*keys: np.ndarray) -> np.ndarray:
    """The order of rows by these keys (whole numbers), the first one first; equal rows stay in
    their order. As numpy's lexsort, which takes ten times as long."""
    return _in_order(keys)[0] if len(keys[0]) else np.empty(0, np.int64)


def grouped(*keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of rows by these keys, and where each combination of them begins in it; before: at
    least one row. Rows of one combination stay in their order."""
    order, ordered = _in_order(keys)
    return order, starts(*ordered)


def _in_order(keys: tuple[np.ndarray, ...]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The order of rows, and keys in this order that differ where these do."""
    lows = [int(key.min()) for key in keys]
    widths = [(int(key.max()) - low).bit_length() for key, low in zip(keys, lows)]
    if sum(widths) > 63:
        order = np.lexsort(keys[::-1])
        return order, tuple(key[order] for key in keys)
    packed = np.zeros(len(keys[0]), np.int64)  # one sort of one column
    for key, low, width in zip(keys, lows, widths):
        packed <<= width
        packed |= key.astype(np.int64) - low
    bits = (len(packed) - 1).bit_length()
    if sum(widths) + bits <= 63:
        order = _sorted_places(packed, bits)
        packed >>= bits
        return order, (packed,)
    order = np.argsort(packed)  # of equal rows any comes first
    packed = packed[order]
    is_new = packed[1:] != packed[:-1]
    if not is_new.all():
        order = _sorted_places(np.cumsum(np.r_[False, is_new]), bits, order)
    return order, (packed,)


def _sorted_places(keys: np.ndarray, bits: int, places: np.ndarray | None = None) -> np.ndarray:
    """The places of rows (numbers of so many bits) by keys, then by themselves. keys: get their
    places behind them, and are sorted: numpy sorts numbers many times faster than it finds their
    order."""
    keys <<= bits
    keys |= np.arange(len(keys)) if places is None else places
    keys.sort()
    return keys & (1 << bits) - 1


def merged(columns: Columns, *keys: str) -> Columns:
    """Rows added up over everything but `keys`; the other columns hold the value of one of the
    rows."""
    if not len(columns):
        return columns
    order, begins = grouped(*(getattr(columns, key) for key in keys))
    if len(begins) == len(order):
        return columns.where(order)

    def reduced(how: np.ufunc, name: str) -> np.ndarray:
        return how.reduceat(getattr(columns, name)[order], begins)

    return replace(
        columns.where(order[begins]),
        **{name: reduced(np.add, name) for name in INTEGERS},
        first_ns=reduced(np.minimum, "first_ns"), last_ns=reduced(np.maximum, "last_ns"),
    )  # fmt: skip


def sums_by_member(columns: Columns, part: np.ndarray, members: int) -> np.ndarray:
    """A part of each row, added up for each of so many members."""
    sums = np.zeros(members, np.int64)
    np.add.at(sums, columns.member, part)
    return sums


def file_keys(columns: Columns) -> np.ndarray:
    """One number for a name in a member."""
    return columns.member.astype(np.int64) << 32 | columns.name.astype(np.int64) & 0xFFFFFFFF
