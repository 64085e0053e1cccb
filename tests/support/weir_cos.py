# SPDX-License-Identifier: Apache-2.0
"""A plain reader of COS blocking, from the table in native/layers/cos/README.md."""

from __future__ import annotations

BLOCK, WORD = 4096, 8


def unblocked(raw: bytes) -> bytes:
    """The data of a file of one record."""
    data, block, word = bytearray(), 0, 0
    while block * BLOCK + word * WORD < len(raw):
        control = int.from_bytes(raw[block * BLOCK + word * WORD :][:WORD], "big")
        mode, to_next = control >> 60, control & 0x1FF
        if mode == 0:
            assert control >> 9 & 0xFFFFFF == block
        if mode == 8:
            unused = (control >> 54 & 0x3F) // 8
            del data[len(data) - unused :]
        if mode == 15:
            return bytes(data)
        data += raw[block * BLOCK + (word + 1) * WORD : block * BLOCK + min(word + 1 + to_next,
            512) * WORD]
        word += to_next + 1
        if word >= 512:
            block, word = block + 1, 0
    raise AssertionError("no end of data")
