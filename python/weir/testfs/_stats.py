# SPDX-License-Identifier: Apache-2.0
"""The counters of a mount."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

_AFTERWARDS = ("release", "releasedir")


@dataclass(frozen=True)
class Transfers:
    """The read or the write requests of a mount. ``sizes``: requests by the size asked for, rounded
    up to a power of two. ``offsets_4k``: those whose offset is a multiple of 4 KiB; ``aligned_4k``:
    offset and size. ``_1m``: of 1 MiB."""

    sizes: dict[int, int] = field(default_factory=dict)
    offsets_4k: int = 0
    offsets_1m: int = 0
    aligned_4k: int = 0
    aligned_1m: int = 0


@dataclass(frozen=True)
class FileStats:
    """The requests to one file, under the name it had then. ``opens`` counts those that created it
    too."""

    requests: dict[str, int] = field(default_factory=dict)
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def reads(self) -> int:
        return self.requests.get("read", 0)

    @property
    def writes(self) -> int:
        return self.requests.get("write", 0)

    @property
    def opens(self) -> int:
        return self.requests.get("open", 0) + self.requests.get("create", 0)


@dataclass(frozen=True)
class Stats:
    """The counters since the mount or the last reset. ``requests`` has every kind; ``files`` the
    files that were used, by their path below the mount, "." for the mount itself.
    ``max_data_in_flight``: reads, writes and fsyncs at one time."""

    requests: dict[str, int]
    errors: dict[str, int]
    injected: int
    bytes_read: int
    bytes_written: int
    in_flight: int
    max_in_flight: int
    max_data_in_flight: int
    reads: Transfers
    writes: Transfers
    files: dict[str, FileStats]
    files_lost: int
    options: dict[str, Any]
    running: bool

    @property
    def total(self) -> int:
        """All requests that a program waited for: releases, which arrive some time after a close,
        are not among them."""
        return sum(count for kind, count in self.requests.items() if kind not in _AFTERWARDS)

    @property
    def data_requests(self) -> int:
        """Reads and writes."""
        return self.requests["read"] + self.requests["write"]

    @property
    def opens(self) -> int:
        return self.requests["open"] + self.requests["create"]

    def file(self, name: str) -> FileStats:
        """The counters of one file; all zero when no request was made to it."""
        return self.files.get(name, FileStats())

    @classmethod
    def from_json(cls, text: str) -> Stats:
        data = json.loads(text)
        for name in ("mount", "backing", "pid"):
            del data[name]
        for name in ("reads", "writes"):
            sizes = {int(size): count for size, count in data[name].pop("sizes").items()}
            data[name] = Transfers(sizes=sizes, **data[name])
        data["files"] = {name: FileStats(**values) for name, values in data["files"].items()}
        return cls(**data)
