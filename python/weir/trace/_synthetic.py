# SPDX-License-Identifier: Apache-2.0
"""Writes trace files from Python, for tests and benches alone: what native/trace writes, without a
program to measure."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from weir.trace._abi import BINS, COUNTER, HISTOGRAM, RECORD
from weir.trace.ops import BELOW, LONG, NESTED, op_named, ops
from weir.trace.process import CHUNK

PAGE = 4096
MAX_CHUNK = 1 << 20
UNKNOWN_OFFSET = 2**48 - 1
# a counter and a histogram of its own
COUNTED = np.dtype([("histogram", HISTOGRAM), ("counter", COUNTER)])
_PACKED = struct.Struct("<QIIQI4B")  # the fields of RECORD
assert _PACKED.size == RECORD.itemsize


def records(
    op: Any, start: Any, duration: Any, *, file: Any = 0, size: Any = 0,
    offset: Any = UNKNOWN_OFFSET, flags: Any = 0,
    error: Any = 0, layer: Any = None,
) -> np.ndarray:  # fmt: skip
    """Events; each argument a number or an array. Operations by value; durations beyond 32 bits get
    the flag LONG."""
    if all(isinstance(x, int) for x in (op, start, duration, file, size, offset, flags, error)):
        return _record(op, start, duration, file, size, offset, flags, error, layer)
    op, start, duration, file, size, offset, flags, error = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(x)) for x in (op, start, duration, file, size, offset, flags,
            error))
    )
    out = np.zeros(op.shape, RECORD)
    is_long = duration.astype(np.uint64) >= 2**32
    out["start"], out["file"], out["op"], out["error"] = start, file, op, error
    out["duration"] = np.where(is_long, duration.astype(np.uint64) >> np.uint64(12), duration)
    size, offset = size.astype(np.uint64), offset.astype(np.int64).astype(np.uint64) & np.uint64(
        UNKNOWN_OFFSET)
    out["offset_size"] = offset | (size >> np.uint64(32)) << np.uint64(48)
    out["size_low"] = size & np.uint64(0xFFFFFFFF)
    out["flags"] = flags | np.where(is_long, LONG, 0).astype(flags.dtype)
    out["layer"] = _layers()[op] if layer is None else layer
    return out


@cache
def _layers() -> np.ndarray:
    layers = np.zeros(256, np.uint8)
    for value, known in ops().items():
        layers[value] = known.layer
    return layers


def _record(op: int, start: int, duration: int, file: int, size: int, offset: int, flags: int,
        error: int, layer: int | None) -> np.ndarray:
    """One event: tests make tens of thousands, of which numpy would take most of their time."""
    if duration >= 2**32:
        flags, duration = flags | LONG, duration >> 12
    place = offset & UNKNOWN_OFFSET | size >> 32 << 48
    kind = int(_layers()[op]) if layer is None else layer
    return np.frombuffer(bytearray(_PACKED.pack(start, duration, file, place, size & 0xFFFFFFFF,
        op, kind, flags, error)), RECORD)


def event(name: str, start: int, duration: int, **fields: Any) -> np.ndarray:
    """One event by the name of its operation; below=True and nested=True set flags."""
    flags = fields.pop("flags", 0) | (BELOW if fields.pop("below", False) else 0)
    flags |= NESTED if fields.pop("nested", False) else 0
    return records(_value(name), start, duration, flags=flags, **fields)


@cache
def _value(name: str) -> int:
    return op_named(name).value


def sync(ticks: int, index: int, ranks: int) -> np.ndarray:
    """The marker of a barrier left."""
    return records(251, ticks, 0, file=index, size=ranks, offset=0, layer=0)


def mpi(name: str, start: Any, duration: Any, routine: Any, *, size: Any = 0,
        **fields: Any) -> np.ndarray:
    """A record of MPI: what a collective, wait or message is stands with its bytes in one field
    (docs/formats/trace.md 3.7)."""
    if not (isinstance(routine, int) and isinstance(size, int)):
        routine, size = np.asarray(routine), np.asarray(size)
    return event(name, start, duration, size=routine << 32 | size, **fields)


def mark(begins: bool, at: int, file: int) -> np.ndarray:
    """The program says that a phase begins or ends; file: id of the name `phase:NAME`."""
    return event("phase_begin" if begins else "phase_end", at, 0, file=file)


def counter(
    name: str, calls: int, size: int, ticks: int, first: int, last: int, *, file: int = 0,
    flags: int = 0
) -> np.ndarray:
    """A counter of `calls` calls of `size` bytes and `ticks` ticks each."""
    out = np.zeros(1, COUNTED)
    op = op_named(name)
    kind = (op.value, op.layer, flags)
    out["histogram"][0] = (0, *kind, 1, 0) + (np.zeros(BINS, np.uint64),) * 2
    out["counter"][0] = (file, *kind, 0, calls, calls * size, calls * ticks, 0, first, last, 0)
    out["histogram"]["by_size"][0, min(size.bit_length(), BINS - 1)] = calls
    out["histogram"]["by_duration"][0, min(ticks.bit_length(), BINS - 1)] = calls
    return out


def _names_a_file(text: str) -> bool:
    text = "/" + text.lstrip("/") if text.startswith("//") else text
    if text.startswith("/dev/shm/"):
        # as far as tests use them
        return not text.startswith(("/dev/shm/ucx_shm_posix_", "/dev/shm/vader_segment."))
    return text.startswith("/") and not text.startswith(("/dev/", "/proc/", "/sys/"))


@dataclass
class ProcessWriter:
    """One process of a file; fields of the process chunk may be set until the file is closed."""

    writer: TraceWriter
    page: int
    fields: dict[str, Any]
    ids: dict[str, int] = field(default_factory=dict)
    sequence: dict[int, int] = field(default_factory=dict)

    def name(self, text: str) -> int:
        """The id of a file name, new ones in order from 1."""
        return self.ids.setdefault(text, len(self.ids) + 1)

    def events(self, what: np.ndarray | Sequence[np.ndarray], thread: int = 1,
            chunk_bytes: int = MAX_CHUNK) -> None:
        """Append records as they are to the log of a thread, in chunks of `chunk_bytes`."""
        joined = what if isinstance(what, np.ndarray) else np.concatenate([np.empty(0, RECORD),
            *what])
        room = (chunk_bytes - 64) // RECORD.itemsize
        for begin in range(0, len(joined), room):
            piece = joined[begin : begin + room]
            size = -(-(64 + piece.nbytes) // PAGE) * PAGE
            number = self.sequence[thread] = self.sequence.get(thread, -1) + 1
            taken = int(piece["start"][0]) if len(piece) else 0
            self.writer.chunk(3, size, self.page, thread, 32, len(piece), taken, thread, number,
                piece.tobytes())

    def counters(self, *what: np.ndarray, thread: int = 1) -> None:
        """Append what `counter` made, as a chunk of the log of a thread."""
        if self.writer.version == 1:  # its bins behind each counter
            body = b"".join(one["counter"].tobytes() + one["histogram"]
                .tobytes()[COUNTER.itemsize :] for one in what)
            entry_bytes = HISTOGRAM.itemsize
        else:
            names = {number: text for text, number in self.ids.items()}
            for one in what:
                one["histogram"]["of_others"] = not _names_a_file(names
                    .get(int(one["counter"]["file"][0]), "/"))
            body, entry_bytes = b"".join(one.tobytes() for one in what), COUNTER.itemsize
        size = -(-(64 + len(body)) // PAGE) * PAGE
        self.writer.chunk(4, size, self.page, thread, entry_bytes, len(body) // entry_bytes, 0,
            thread, 0, body)

    def _write_names(self) -> None:
        entries = []
        for text, number in self.ids.items():
            raw = os.fsencode(text)
            entries.append((struct.pack("<IHH", number, len(raw), 1) + raw)
                .ljust(8 + -(-len(raw) // 8) * 8, b"\0"))
        body, limit = b"", MAX_CHUNK - 64
        for entry in [*entries, None]:
            if body and (entry is None or len(body) + len(entry) > limit):
                size = -(-(64 + len(body)) // PAGE) * PAGE
                self.writer.chunk(2, size, self.page, 0, 0, len(body), 0, 1, 0, body)
                body = b""
            body += entry or b""


class TraceWriter:
    """A trace file in the making; a context manager. One tick is `ns_per_tick` ns; time starts at
    created_ticks."""

    def __init__(
        self, path: str | os.PathLike[str], node: str = "node0", *, level: int = 3, clock: int = 1,
        ns_per_tick: float = 1.0,
        created_ticks: int = 1 << 40, created_mono_ns: int = 10**12,
        created_realtime_ns: int = 1_700_000_000 * 10**9,
        version: int = 2,
    ):  # fmt: skip
        self.stream = open(path, "wb")
        self.ns_per_tick, self.created_ticks = ns_per_tick, created_ticks
        self.created_mono_ns, self.created_realtime_ns = created_mono_ns, created_realtime_ns
        self.node, self.level, self.clock, self.version = node, level, clock, version
        self.end = PAGE
        self.processes: list[ProcessWriter] = []

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def mono_ns(self, ticks: int) -> int:
        return self.created_mono_ns + round((ticks - self.created_ticks) * self.ns_per_tick)

    def process(self, pid: int = 100, rank: int = -1, ranks: int = 0,
            **fields: Any) -> ProcessWriter:
        """A new process: any field of the process chunk, command as a list; ended in order unless
        said otherwise."""
        start = fields.setdefault("start_ticks", self.created_ticks)
        last = fields.setdefault("last_ticks", start + round(1e9 / self.ns_per_tick))
        made = {
            "pid": pid, "ppid": 1, "rank": rank, "ranks": ranks, "level_now": self.level,
            "end_kind": 1, "io_known": 1,
            "start_mono_ns": self.mono_ns(start), "last_mono_ns": self.mono_ns(last),
            "end_ticks": last,
            "start_realtime_ns": self.created_realtime_ns + self.mono_ns(start)
            - self.created_mono_ns,
            "exe": "/bin/model", "cwd": "/scratch/an", "command": ["./model"],
        }  # fmt: skip
        process = ProcessWriter(self, self.end // PAGE, made | fields)
        self.processes.append(process)
        self.chunk(1, PAGE, process.page, 0, 0, 1, start, 0, 0, b"")
        return process

    def chunk(
        self, kind: int, size: int, page: int, thread: int, entry: int, used: int, taken: int,
        log: int, sequence: int,
        body: bytes,
    ) -> None:  # fmt: skip
        """A chunk with exactly these fields, true or not."""
        head = struct.pack("<IIQIIIIQQQQ", 0x4B484357, kind, size, page, thread, entry, 0, used,
            taken, log, sequence)
        self.stream.seek(self.end)
        self.stream.write(head)
        self.stream.write(body)
        self.end += size
        self.stream.truncate(self.end)

    def close(self) -> None:
        for process in self.processes:
            process._write_names()
            self.stream.seek(process.page * PAGE + 64)
            self.stream.write(_process_bytes(process.fields)[64:])
        header = struct.pack(
            "<8sIIIIQQQQQdII64s", b"WEIRTRC1", self.version, PAGE, 32, self.clock, 4 << 30,
            self.end, self.created_realtime_ns,
            self.created_mono_ns, self.created_ticks, self.ns_per_tick, self.level, 0,
            self.node.encode(),
        )  # fmt: skip
        self.stream.seek(0)
        self.stream.write(header.ljust(PAGE, b"\0"))
        self.stream.truncate(max(self.end, PAGE))
        self.stream.close()


def _process_bytes(fields: dict[str, Any]) -> bytes:
    one = np.zeros(1, CHUNK)
    for key, value in fields.items():
        if key == "command":
            value = b"\0".join(os.fsencode(word) for word in value) + b"\0\0"
        elif isinstance(value, str):
            value = os.fsencode(value)
        one[key] = np.void(value.ljust(CHUNK[key].itemsize, b"\0")) if isinstance(value,
            bytes) else value
    return one.tobytes()
