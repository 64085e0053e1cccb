# SPDX-License-Identifier: Apache-2.0
"""Records of a container as bytes (docs/formats/pack.md); the native form is
native/layers/pack/zip.cc."""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import dataclass, replace

LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
LIVE, DEAD, OWNER = 0, 1, 2
OWNER_NAME = b"weir-container"
_TIME, _OWN, _ZIP64 = 0x5455, 0x6577, 0x0001
_LOCAL = struct.Struct("<4sHHHIIIIHH")
_CENTRAL = struct.Struct("<4sHHHHIIIIHHHHHII")
_FIELD = struct.Struct("<HHBBHIIIqQI")  # weir's own, with its header
_CHECK = struct.Struct("<IQQQHIIqI")
_STAMP = struct.Struct("<HHBi")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4sHHHHIIH")
EXTRA_BYTES = _STAMP.size + _FIELD.size
TAIL_BYTES = _END64.size + _LOCATOR.size + _END.size
_ALL32 = 0xFFFFFFFF


@dataclass(frozen=True)
class Record:
    """A file in a container, or what says that it is no more. Times are ns since 1970."""

    name: str
    size_bytes: int
    crc: int
    offset: int  # of the local header
    sequence: int
    mtime_ns: int
    mode: int
    user: int
    group: int
    state: int = LIVE

    @property
    def raw_name(self) -> bytes:
        return self.name.encode(errors="surrogateescape")

    @property
    def header_bytes(self) -> int:
        return _LOCAL.size + len(self.raw_name) + EXTRA_BYTES

    @property
    def data_offset(self) -> int:
        return self.offset + self.header_bytes

    @property
    def end(self) -> int:
        return self.data_offset + self.size_bytes

    def at(self, offset: int, sequence: int) -> Record:
        return replace(self, offset=offset, sequence=sequence)


def _check(r: Record) -> int:
    seconds, rest = divmod(r.mtime_ns, 10**9)
    return zlib.crc32(
        _CHECK.pack(r.crc, r.size_bytes, r.offset, r.sequence, r.mode, r.user, r.group, seconds,
            rest) + r.raw_name
    )


def _extra(r: Record) -> bytes:
    seconds, rest = divmod(r.mtime_ns, 10**9)
    short = seconds & _ALL32
    return _STAMP.pack(_TIME, 5, 1, short - (1 << 32) if short >> 31 else short) + _FIELD.pack(
        _OWN, _FIELD.size - 4, 1, r.state, r.mode, r.user, r.group, rest, seconds, r.sequence,
        _check(r))


def _dos_time(ns: int) -> int:
    t = time.gmtime(max(ns // 10**9, 315532800))
    return (
        (min(t.tm_year, 2107) - 1980) << 25 | t.tm_mon << 21 | t.tm_mday << 16
        | t.tm_hour << 11 | t.tm_min << 5 | min(t.tm_sec, 59) // 2
    )


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else 0x0800


def local(r: Record) -> bytes:
    """The header, which the file's bytes follow."""
    name, size = r.raw_name, min(r.size_bytes, _ALL32)
    return _LOCAL.pack(LOCAL, 20, _flags(name), 0, _dos_time(r.mtime_ns), r.crc, size, size,
        len(name), EXTRA_BYTES) + name + _extra(r)


def central(r: Record) -> bytes:
    """The file in the archive's directory."""
    name, size, far = r.raw_name, min(r.size_bytes, _ALL32), r.offset >= _ALL32
    extra = (struct.pack("<HHQ", _ZIP64, 8, r.offset) if far else b"") + _extra(r)
    return _CENTRAL.pack(CENTRAL, 3 << 8 | 45, 45 if far else 20, _flags(name), 0,
        _dos_time(r.mtime_ns), r.crc, size, size, len(name), len(extra), 0, 0, 0,
        (0o100000 | r.mode) << 16, min(r.offset, _ALL32)) + name + extra


def tail(count: int, size: int, at: int) -> bytes:
    """The end of an archive whose directory of `size` bytes begins at `at`."""
    short = min(count, 0xFFFF)
    return (
        _END64.pack(b"PK\x06\x06", _END64.size - 12, 3 << 8 | 45, 45, 0, 0, count, count, size, at)
        + _LOCATOR.pack(b"PK\x06\x07", 0, at + size, 1)
        + _END.pack(b"PK\x05\x06", 0, 0, short, short, min(size, _ALL32), min(at, _ALL32), 0)
    )


def parse_tail(data: bytes, file_bytes: int) -> tuple[int, int, int] | None:
    """Number of files, bytes and place of the directory; None: no end as weir writes it."""
    if len(data) != TAIL_BYTES or data[:4] != b"PK\x06\x06" or data[-22:-18] != b"PK\x05\x06":
        return None
    *_, count, size, at = _END64.unpack_from(data)
    return (count, size, at) if at + size == file_bytes - TAIL_BYTES else None


def _record(name: bytes, size: int, crc: int, offset: int, extra: bytes) -> Record | None:
    """What the extra fields say; None: weir's is not there, or its check is wrong."""
    place, own = 0, None
    while place + 4 <= len(extra):
        kind, n = struct.unpack_from("<HH", extra, place)
        if kind == _ZIP64 and n >= 8 and offset == _ALL32:
            (offset,) = struct.unpack_from("<Q", extra, place + 4)
        if kind == _OWN and n == _FIELD.size - 4 and place + _FIELD.size <= len(extra):
            own = _FIELD.unpack_from(extra, place)
        place += 4 + n
    if own is None or own[2] != 1:
        return None
    _, _, _, state, mode, user, group, rest, seconds, sequence, check = own
    r = Record(name.decode(errors="surrogateescape"), size, crc, offset, sequence,
        seconds * 10**9 + rest, mode, user, group, state)
    return r if _check(r) == check else None


def parse_local(data: bytes, place: int, offset: int) -> Record | None:
    """The record whose header lies at `place` of `data` and at `offset` of the file."""
    if len(data) < place + _LOCAL.size:
        return None
    _, _, _, _, _, crc, _, size, n, extra = _LOCAL.unpack_from(data, place)
    begin = place + _LOCAL.size
    end = begin + n + extra
    if extra != EXTRA_BYTES or not 0 < n <= 255 or len(data) < end:
        return None
    return _record(data[begin : begin + n], size, crc, offset, data[begin + n : end])


def parse_central(data: bytes, place: int) -> tuple[Record | None, int]:
    """The record and the place behind it; no record: it is not weir's."""
    if data[place : place + 4] != CENTRAL or len(data) < place + _CENTRAL.size:
        return None, place
    (_, _, _, _, _, _, crc, _, size, n, extra, comment, _, _, _,
        offset) = _CENTRAL.unpack_from(data, place)
    begin = place + _CENTRAL.size
    record = _record(data[begin : begin + n], size, crc, offset,
        data[begin + n : begin + n + extra])
    return record, begin + n + extra + comment
