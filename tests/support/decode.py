# SPDX-License-Identifier: Apache-2.0
"""A second, plain decoder of trace files for tests, written from docs/formats/trace.md alone.

``read_trace(path)`` takes a trace file or a step's directory that holds exactly one. It believes
the writer: damage raises.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ERROR, SHORT, LONG, BELOW, NESTED, OF_OUTPUT, ROOT = 1, 2, 4, 8, 16, 32, 64
UNKNOWN_OFFSET = (1 << 48) - 1
PAGE = 4096
LAYERS = {0: "marker", 1: "posix", 2: "stdio", 3: "fortran", 4: "mpi", 6: "output", 7: "mpi_io",
    8: "pnetcdf", 9: "netcdf", 10: "hdf5"}
LAYERS |= {16 + position: f"event{position}" for position in range(16)} | {32 + kind: f"note{kind}"
    for kind in range(32)}
OPS_DEF = Path(__file__).resolve().parents[2] / "native" / "wire" / "ops.def"
OPS = {
    int(value): name for value, name in re.findall(r'^WEIR_OP\((\d+), \w+, "(\w+)"',
        OPS_DEF.read_text(), re.MULTILINE)
}


@dataclass(frozen=True)
class Process:
    number: int
    pid: int
    ppid: int
    rank: int
    ranks: int
    rank_source: int
    mpi: int
    level_now: int
    end_kind: int
    start_ticks: int
    end_ticks: int
    lost_events: int
    failures: int
    parent: int
    exe: str
    cwd: str
    command: list[str]


class Record(NamedTuple):
    process: int
    thread: int
    start: int
    end: int
    op: str
    layer: str
    file: str  # its name; "" for none
    file_id: int
    offset: int | None  # a signed unit number for layer fortran
    size: int
    flags: int
    error: int

    @property
    def failed(self) -> bool:
        return bool(self.flags & ERROR)

    @property
    def short(self) -> bool:
        return bool(self.flags & SHORT)

    @property
    def below(self) -> bool:
        return bool(self.flags & BELOW)

    @property
    def nested(self) -> bool:
        return bool(self.flags & NESTED)


class Counter(NamedTuple):
    process: int
    op: str
    layer: str
    file: str
    flags: int
    calls: int
    bytes: int
    ticks: int
    errors: int


class Histogram(NamedTuple):
    process: int
    op: str
    layer: str
    flags: int
    of_others: bool
    by_size: tuple[int, ...]
    by_duration: tuple[int, ...]


@dataclass
class Trace:
    """processes by number, names by (process, id), records in the order of each log, counters,
    histograms."""

    node: str
    level: int
    ns_per_tick: float
    processes: dict[int, Process] = field(default_factory=dict)
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)

    def of(self, op: str | None = None, layer: str | None = None,
            file: object = None) -> list[Record]:
        """The records of an operation, a layer, a file (its path, or the last part of it); by
        start."""
        chosen = (
            r
            for r in self.records
            if (op is None or r.op == op)
            and (layer is None or r.layer == layer)
            and (file is None or r.file == str(file) or r.file.endswith("/" + str(file)))
        )
        return sorted(chosen, key=lambda r: r.start)

    def name(self, process: int, number: int) -> str:
        """The text of a file id, found in the process or in those it was forked from."""
        while number:
            if (process, number) in self.names:
                return self.names[process, number]
            if process not in self.processes or not self.processes[process].parent:
                return f"<id {number} without a name>"
            process = self.processes[process].parent
        return ""


class _Chunk(NamedTuple):
    kind: int
    process: int
    thread: int
    used: int
    log: int
    sequence: int
    data: memoryview  # behind the header


def read_trace(path: str | Path) -> Trace:
    path = Path(path)
    if path.is_dir():
        (path,) = path.glob("*.weir")
    data = memoryview(path.read_bytes())
    magic, version, header_bytes, record_bytes = struct.unpack_from("<8sIII", data)
    assert (magic, header_bytes, record_bytes) == (b"WEIRTRC1", PAGE, 32) and version in (2,
        3), f"{path} is no trace"
    (ns_per_tick, level) = struct.unpack_from("<dI", data, 64)
    trace = Trace(_text(data[80:144]), level, ns_per_tick)
    chunks = list(_chunks(data))
    for chunk in chunks:
        if chunk.kind == 1:
            trace.processes[chunk.process] = _process(chunk)
        elif chunk.kind == 2:
            _read_names(chunk, trace.names)
    for chunk in chunks:
        if chunk.kind == 4:
            _read_counters(chunk, trace)
    _read_events([chunk for chunk in chunks if chunk.kind == 3], trace, has_sums=version > 2)
    return trace


def _chunks(data: memoryview):
    at = PAGE
    while at + 64 <= len(data):
        magic, kind, size, process, thread, _, _, used, _, log, sequence = struct.unpack_from(
            "<IIQIIIIQQQQ", data, at)
        if magic != 0x4B484357:
            at += PAGE
            continue
        assert size % PAGE == 0 and at + size <= len(data), f"chunk at {at}: {size} bytes"
        yield _Chunk(kind, process, thread, used, log, sequence, data[at + 64 : at + size])
        at += size


def _text(raw) -> str:
    return bytes(raw).split(b"\0")[0].decode(errors="replace")


def _process(chunk: _Chunk) -> Process:
    head = struct.unpack_from("<IIiiIIII", chunk.data)
    start, end, lost, failures = (struct.unpack_from("<Q", chunk.data, at)[0]
        for at in (32, 72, 80, 88))
    (parent,) = struct.unpack_from("<I", chunk.data, 160)
    command = bytes(chunk.data[1728:3904]).split(b"\0\0")[0]
    return Process(
        chunk.process, *head, start, end, lost, failures, parent, _text(chunk.data[192:704]),
        _text(chunk.data[704:1728]),
        [part.decode(errors="replace") for part in command.split(b"\0")] if command else [],
    )  # fmt: skip


def _read_names(chunk: _Chunk, names: dict[tuple[int, int], str]) -> None:
    at = 0
    while at + 8 <= min(chunk.used, len(chunk.data)):
        number, length, _ = struct.unpack_from("<IHH", chunk.data, at)
        if number:
            names[chunk.process, number] = bytes(chunk.data[at + 8 : at + 8 + length]).decode(
                errors="replace")
        at += (8 + length + 7) & ~7 if number or length else 8


def _read_counters(chunk: _Chunk, trace: Trace) -> None:
    at, end = 0, 64 * min(chunk.used, len(chunk.data) // 64)
    while at < end:
        file, op, layer, flags, form, calls, size, ticks, errors = struct.unpack_from("<IBBBBQQQQ",
            chunk.data, at)
        if op:
            key = (chunk.process, OPS[op], LAYERS[layer])
            if form:
                bins = struct.unpack_from("<72Q", chunk.data, at + 64)
                trace.histograms.append(Histogram(*key, flags, bool(file), bins[:36], bins[36:]))
            else:
                trace.counters.append(Counter(*key, trace.name(chunk.process, file), flags, calls,
                    size, ticks, errors))
        at += 640 if form else 64


def _check_sum(words: tuple[int, int, int, int]) -> None:
    """Of the bytes of the words' exclusive or, without it: in word 2 of a failed call, else in
    word 3."""
    mixed = words[0] ^ words[1] ^ words[2] ^ words[3]
    found = words[2 if words[3] >> 48 & ERROR else 3] >> 56
    mixed ^= found << 56
    expected = mixed * 0x0101010101010101 >> 56 & 0xFF
    assert found == expected, f"checksum {found} of a record, expected {expected}"


def _read_events(chunks: list[_Chunk], trace: Trace, has_sums: bool) -> None:
    for chunk in sorted(chunks, key=lambda c: (c.process, c.log, c.sequence)):
        thread = chunk.thread
        for i in range(min(chunk.used, len(chunk.data) // 32)):
            start, duration, file, w2, size, op, layer, flags, error = struct.unpack_from(
                "<QIIQIBBBB", chunk.data, 32 * i)
            if op == 0:
                continue
            if has_sums:
                _check_sum(struct.unpack_from("<4Q", chunk.data, 32 * i))
                if flags & ERROR:
                    w2 &= (1 << 56) - 1
                else:
                    error = 0
            if op == 250:
                thread = size
            offset = w2 & UNKNOWN_OFFSET
            if offset == UNKNOWN_OFFSET:
                offset = None
            elif layer == 3 and offset >> 47:
                offset -= 1 << 48
            name = "" if op == 251 else trace.name(chunk.process, file)
            end = start + (duration << 12 if flags & LONG else duration)
            size |= (w2 >> 48) << 32
            trace.records.append(
                Record(chunk.process, thread, start, end, OPS[op], LAYERS[layer], name, file,
                    offset, size, flags, error)
            )
