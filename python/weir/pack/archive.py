# SPDX-License-Identifier: Apache-2.0
"""A container as a file: the files that count, by its directory or, after a crash, by its
records."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from weir._errors import InputError, NotThere
from weir.pack.records import (
    LIVE,
    LOCAL,
    OWNER,
    TAIL_BYTES,
    Record,
    parse_central,
    parse_local,
    parse_tail,
)

_WINDOW, _HEADER = 4 << 20, 512


class Container:
    """An open container. Raises InputError for a file that is none."""

    def __init__(self, path: str | os.PathLike[str], mode: str = "rb"):
        self.path = Path(path)
        try:
            self.file: BinaryIO = open(path, mode, buffering=0)  # noqa: SIM115
        except FileNotFoundError as error:
            raise NotThere(f"{path}: {error.strerror}; name a container, such as plots.zip") \
                from None
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror}") from None
        self.size_bytes = os.fstat(self.file.fileno()).st_size
        self.records_end = 0
        first = parse_local(self.read_at(0, _HEADER), 0, 0)
        if first is None or first.state != OWNER:
            self.file.close()
            raise InputError(
                f"{path} is not an archive of layer pack; "
                f"weir pack reads what the layer has written, unzip reads other archives"
            )

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def read_at(self, offset: int, size: int) -> bytes:
        parts = []
        while size > 0:
            part = os.pread(self.file.fileno(), min(size, 1 << 30), offset)
            if not part:
                break
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    def directory(self) -> dict[str, Record] | None:
        """The files of the archive's directory; None: it is missing or damaged."""
        end = self.read_at(max(self.size_bytes - TAIL_BYTES, 0), TAIL_BYTES)
        found = parse_tail(end, self.size_bytes)
        if found is None:
            return None
        count, size, at = found
        data, place, files = self.read_at(at, size), 0, {}
        for _ in range(count):
            record, place = parse_central(data, place)
            if record is None:
                return None
            files[record.name] = record
        return files

    def records(self) -> Iterator[Record]:
        """All records from the beginning; what lies between them is passed over. `records_end` is
        the end of the last one so far."""
        begin = self.records_end = 0
        while begin < self.size_bytes:
            data = self.read_at(begin, _WINDOW)
            place = data.find(LOCAL)
            if place < 0:
                begin += max(len(data) - 3, 1)
                continue
            if place > _WINDOW - _HEADER and begin + len(data) < self.size_bytes:
                begin += place
                continue
            end = place + 1
            while place >= 0:
                record = parse_local(data, place, begin + place)
                end = place + 1
                if record is not None:
                    yield record
                    whole = self.crc(record) == record.crc
                    end = (record.end if whole else record.data_offset) - begin
                    self.records_end = begin + end
                if end > len(data) - _HEADER:
                    break
                place = data.find(LOCAL, end)
            begin += end if end > 0 else 1

    def scan(self) -> dict[str, Record]:
        """The files that the records say: of each name the last one that is whole."""
        last: dict[str, Record] = {}
        for record in self.records():
            before = last.get(record.name)
            if record.state == OWNER or (before and before.sequence > record.sequence):
                continue
            if self.crc(record) == record.crc or record.state != LIVE:
                last[record.name] = record
        return {name: record for name, record in last.items() if record.state == LIVE}

    def files(self) -> dict[str, Record]:
        """By the directory where there is one, else by the records."""
        found = self.directory()
        return self.scan() if found is None else found

    def read(self, record: Record) -> bytes:
        return self.read_at(record.data_offset, record.size_bytes)

    def crc(self, record: Record) -> int:
        crc, offset = 0, record.data_offset
        while offset < record.end:
            part = self.read_at(offset, min(_WINDOW, record.end - offset))
            if not part:
                return -1
            crc = zlib.crc32(part, crc)
            offset += len(part)
        return crc
