# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format, as far as a writer of traces needs it: single fields, and columns of
numbers of a fixed length.

Source: "Encoding", the Protocol Buffers documentation. A varint may be longer than its value needs.
"""

from __future__ import annotations

import numpy as np


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer field that is not negative."""
    return varint(field << 3) + varint(value)


def message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    return message(field, value.encode("utf-8", "backslashreplace"))


def varints(values: np.ndarray, length: int) -> np.ndarray:
    """A row of `length` bytes for each value, which must be below 2 ** (7 * length)."""
    values = values.astype(np.uint64)
    out = np.empty((length, len(values)), np.uint8)
    for place in range(length):
        np.right_shift(values, np.uint64(7 * place), out=out[place], casting="unsafe")
    out[:-1] |= 0x80
    out[-1] &= 0x7F
    return out.T


def same(part: bytes, count: int) -> np.ndarray:
    """The same bytes in each of `count` rows."""
    return np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))
