# SPDX-License-Identifier: Apache-2.0
"""A run as a trace of Perfetto: a track for each thread, a slice for each record, with file,
offset, bytes, length and error.

Source of the format: Perfetto's protos/perfetto/trace/trace_packet.proto and track_event/*.proto.
Packets are made in columns, a batch of records at a time, as rows of bytes in which the parts that
a record lacks are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from weir.export._protobuf import message, number, same, text, varints
from weir.export._slices import marker_order, nested
from weir.query.events import EventSource, event_sources
from weir.report.frame.build import Report

if TYPE_CHECKING:
    import pyarrow as pa

# Numbers of fields.
PACKET = 1
TIMESTAMP, SEQUENCE, EVENT, INTERNED, FLAGS, DESCRIPTOR = 8, 10, 11, 12, 13, 60
CATEGORY_IIDS, ANNOTATIONS, TYPE, NAME_IID, TRACK_UUID = 3, 4, 9, 10, 11
ANNOTATION_NAME_IID, INT_VALUE, STRING_IID = 1, 4, 17
UUID, TRACK_NAME, PROCESS, THREAD, PARENT = 1, 2, 3, 4, 5
PID, PROCESS_NAME, THREAD_PID, TID = 1, 6, 1, 2
CATEGORIES, EVENT_NAMES, ANNOTATION_NAMES, STRINGS = 1, 2, 3, 29
IID, INTERNED_TEXT = 1, 2
BEGIN, END = 1, 2
# sequence flags: the names begin anew; the packet needs those that were given
CLEARED, NEEDED = 1, 2

SEQUENCE_ID = 1
DETAILS = ("file", "offset", "bytes", "error", "length")
# Linux has no pid from here on: for processes of another node or step whose pid was there before
FREE_PIDS = 1 << 22
# long calls are recorded in units of 4096 ticks: so much may an inner one end behind its outer one
CUT_NS = 10_000

Progress = Callable[[int], None]


def export_perfetto(report: Report, stream: BinaryIO, progress: Progress = lambda _: None) -> None:
    """Times are ns since 1970. memory: one batch of records."""
    writer = _Writer(stream)
    for source in event_sources(report):
        writer.begin(source)
        for batch in source.batches():
            writer.batch(batch)
            progress(len(batch))


def _field(field: int, kind: int) -> bytes:
    """The key of a field with a number below 16: kind 0 a number, 2 a message."""
    return bytes([field << 3 | kind])


class _Writer:
    """One sequence of packets."""

    def __init__(self, stream: BinaryIO):
        self.stream = stream
        self.is_new = True
        self.next_uuid, self.next_text, self.next_pid = 1, 1, FREE_PIDS
        self.first_text = 1
        self.pids: set[int] = set()
        self.processes: dict[int, int] = {}  # of the trace file at hand: pid -> pid in Perfetto
        # pid, thread, second track of it -> uuid
        self.tracks: dict[tuple[int, int, bool], int] = {}
        self.source: EventSource | None = None

    def packet(self, body: bytes) -> None:
        self.stream.write(message(PACKET, number(SEQUENCE, SEQUENCE_ID) + body))

    def begin(self, source: EventSource) -> None:
        """Another trace file: its processes are others, and its names have numbers of their own."""
        self.source, self.processes, self.tracks = source, {}, {}
        interned = b""
        if self.is_new:
            interned += _interned(EVENT_NAMES, source.dictionaries["op"].to_pylist())
            interned += _interned(CATEGORIES, source.dictionaries["layer"].to_pylist())
            interned += _interned(ANNOTATION_NAMES, DETAILS)
        names = source.names.to_pylist()
        self.first_text, self.next_text = self.next_text, self.next_text + len(names)
        interned += _interned(STRINGS, names, self.first_text)
        self.packet(number(FLAGS, CLEARED | NEEDED if self.is_new else NEEDED) + message(INTERNED,
            interned))
        self.is_new = False

    def batch(self, batch: pa.RecordBatch) -> None:
        columns = _Columns(batch)
        thread = columns.pid << 32 | columns.thread
        slices = nested(thread, columns.start, columns.start + columns.duration, CUT_NS)
        keys, at = np.unique(thread << 1 | slices.crosses, return_inverse=True)
        uuids = np.array([self._track(key >> 33, key >> 1 & 0xFFFFFFFF, bool(key & 1))
            for key in keys.tolist()], np.int64)
        track = uuids[at.reshape(-1)]
        end = np.where(slices.crosses, columns.start + columns.duration, slices.end)
        order = marker_order(track, columns.start, end)
        (begins, kept), (ends, _) = _begins(columns, track, self.first_text), _ends(track, end)
        count, width = ends.shape
        rows = np.empty((2 * count, begins.shape[1]), np.uint8)
        is_kept = np.zeros(rows.shape, bool)
        rows[:count], rows[count:, :width] = begins, ends
        is_kept[:count], is_kept[count:, :width] = kept, True
        self.stream.write(rows[order][is_kept[order]].tobytes())

    def _track(self, pid: int, thread: int, is_second: bool) -> int:
        """The uuid of a track, written when it is new."""
        key = (pid, thread, is_second)
        if key not in self.tracks:
            process = self._process(pid)
            uuid = self.tracks[key] = self._next_uuid()
            if is_second:
                name = text(TRACK_NAME, f"thread {thread}, beside its other calls") + number(PARENT,
                    self._track(pid, thread, False))
            else:
                tid = process if thread == pid else thread
                name = message(THREAD, number(THREAD_PID, process) + number(TID, tid))
            self.packet(message(DESCRIPTOR, number(UUID, uuid) + name))
        return self.tracks[key]

    def _process(self, pid: int) -> int:
        if pid not in self.processes:
            assert self.source is not None
            made = pid
            if made in self.pids or made == 0:
                made, self.next_pid = self.next_pid, self.next_pid + 1
            self.pids.add(made)
            self.processes[pid] = made
            process = number(PID, made) + text(PROCESS_NAME, self.source.process_name(pid))
            self.packet(message(DESCRIPTOR, number(UUID, self._next_uuid()) + message(PROCESS,
                process)))
        return self.processes[pid]

    def _next_uuid(self) -> int:
        self.next_uuid += 1
        return self.next_uuid


def _interned(field: int, texts: Iterable[str], first: int = 1) -> bytes:
    return b"".join(message(field, number(IID, first + i) + text(INTERNED_TEXT, one))
        for i, one in enumerate(texts))


class _Columns:
    """What slices need of a batch, as numpy arrays; *_known: which are not null."""

    def __init__(self, batch: pa.RecordBatch):
        def whole(name: str) -> np.ndarray:
            return batch.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)

        def known(name: str) -> np.ndarray:
            return batch.column(name).is_valid().to_numpy(zero_copy_only=False)

        def index(name: str) -> np.ndarray:
            return batch.column(name).indices.fill_null(0).to_numpy(zero_copy_only=False).astype(
                np.int64)

        self.pid, self.thread = whole("pid"), whole("thread")
        self.start, self.duration = whole("start_ns"), whole("duration_ns")
        self.op, self.layer, self.file, self.file_known = index("op"), index("layer"), index(
            "file"), known("file")
        self.offset, self.offset_known = whole("offset_bytes"), known("offset_bytes")
        self.bytes, self.error, self.error_known = whole("bytes"), whole("error"), known("error")
        self.length, self.length_known = whole("length_bytes"), known("length_bytes")


def _detail(name: str, value: bytes, values: np.ndarray, length: int) -> np.ndarray:
    """Rows of an annotation: its name and a number of so many bytes behind the key `value`."""
    body = _field(ANNOTATION_NAME_IID, 0) + bytes([1 + DETAILS.index(name)]) + value
    head = _field(ANNOTATIONS, 2) + bytes([len(body) + length]) + body
    return np.concatenate([same(head, len(values)), varints(values, length)], axis=1)


def _begins(columns: _Columns, track: np.ndarray, first_text: int) -> tuple[np.ndarray, np.ndarray]:
    """A row of bytes for each slice's begin, and which of the bytes are there."""
    count = len(track)
    int_value, string_iid = _field(INT_VALUE, 0), bytes([STRING_IID << 3 & 0x7F | 0x80,
        STRING_IID >> 4])
    everyone = np.ones(count, bool)
    parts = [
        (np.concatenate([same(_field(TYPE, 0) + bytes([BEGIN]) + _field(TRACK_UUID, 0), count),
            varints(track, 5)], axis=1), everyone),
        (np.concatenate([same(_field(NAME_IID, 0), count), varints(columns.op + 1, 2)], axis=1),
            everyone),
        (np.concatenate([same(_field(CATEGORY_IIDS, 0), count), varints(columns.layer + 1, 1)],
            axis=1), everyone),
        (_detail("file", string_iid, columns.file + first_text, 5), columns.file_known),
        (_detail("offset", int_value, columns.offset, 7), columns.offset_known),
        (_detail("bytes", int_value, columns.bytes, 7), everyone),
        (_detail("error", int_value, columns.error, 2), columns.error_known),
        (_detail("length", int_value, columns.length, 7),
            columns.length_known & (columns.length != 0)),
    ]
    return _packets(parts, columns.start)


def _ends(track: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    head = same(_field(TYPE, 0) + bytes([END]) + _field(TRACK_UUID, 0), len(track))
    return _packets([(np.concatenate([head, varints(track, 5)], axis=1),
        np.ones(len(track), bool))], end)


def _packets(parts: list[tuple[np.ndarray, np.ndarray]],
        time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Packets of track events made of parts, each with the rows that have it. All lengths are below
    128: one byte."""
    count = len(time)
    length = sum(rows.shape[1] * mask for rows, mask in parts)
    head = np.concatenate([same(_field(TIMESTAMP, 0), count), varints(time, 9)], axis=1)
    fixed = _field(SEQUENCE, 0) + bytes([SEQUENCE_ID]) + _field(FLAGS,
        0) + bytes([NEEDED]) + _field(EVENT, 2)
    around = head.shape[1] + len(fixed) + 1
    every = [
        same(_field(PACKET, 2), count), varints(length + around, 1), head, same(fixed, count),
        varints(length, 1),
        *(rows for rows, _ in parts),
    ]  # fmt: skip
    kept = [np.ones((count, 2 + around), bool), *(np.repeat(mask[:, None], rows.shape[1], axis=1)
        for rows, mask in parts)]
    return np.concatenate(every, axis=1), np.concatenate(kept, axis=1)
