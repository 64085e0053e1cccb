# SPDX-License-Identifier: Apache-2.0
"""One trace file while it is written: what was added since the last look, as the columns of
weir.analysis.

A look maps the file anew, walks its chunks and reads what is behind the places where the last look
stopped; it reads nothing twice, so a look costs what was added, not what is there. A record that
was reserved and not yet written when a later one of its thread was seen is left out: a signal
handler's, at most.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from weir.analysis.clock import Line, node_line
from weir.analysis.columns import Columns, merged
from weir.analysis.exclusion import Exclusion
from weir.analysis.names import NO_NAME, NameTable, fold
from weir.analysis.step import members_of
from weir.analysis.worlds import worlds_of
from weir.trace import TraceFile
from weir.trace._abi import COUNTER, Cursor
from weir.trace.counters import counters_in
from weir.trace.events import Events, next_events
from weir.trace.file import COUNTERS, EVENTS, LOST
from weir.trace.ops import ERROR
from weir.trace.ops import EVENTS as EVENT_LAYERS
from weir.trace.process import text_of

_KEYS = ("name", "rank", "op", "layer", "flags")  # what a look tells apart
LEAST_ROWS = 100_000
_KEY_FLAGS = 8 | 16 | 32  # what counters are kept by: BELOW, NESTED, OUTPUT


@dataclass
class _Place:
    """Where the last look stopped in an events chunk."""

    record: int = 0
    thread: int = 0


@dataclass(frozen=True)
class Added:
    """What was added. ranks, alive: ranks and processes of the file; is_over: there was a process,
    and all have ended."""

    columns: Columns
    ranks: frozenset[int]
    processes: int
    alive: int


@dataclass
class Follower:
    """Follows one trace file; `names` is shared by all files of the run."""

    path: str
    names: NameTable
    exclusion: Exclusion
    places: dict[int, _Place] = field(default_factory=dict)  # by offset of the chunk
    counted: dict[int, np.ndarray] = field(default_factory=dict)

    def look(self) -> Added:
        """What was added since the last look. Raises DamagedFile."""
        file = TraceFile(self.path)
        line, _ = node_line(file)
        members = members_of([file], worlds_of([file]), self.names.ranks, is_growing=True)
        ranks = np.array([one.number for one in members], np.int32)
        is_launcher = np.array([one.is_launcher for one in members], bool)
        every = chain((self._columns(file, batch, ranks) for batch in self._events(file, line)),
            self._counters(file, line, ranks))
        columns = _joined(_summed(part, is_launcher) for part in every)
        working = [one for one in members if not one.is_launcher]
        alive = sum(is_alive(one.process.pid, one.process.end_kind, file.node) for one in members)
        return Added(columns, frozenset(one.number for one in working), len(members), alive)

    def _events(self, file: TraceFile, line: Line) -> Iterator[Events]:
        chunks = file.array("chunks")
        for number in np.flatnonzero(chunks["kind"] == EVENTS).tolist():
            place = self.places.setdefault(int(chunks[number]["offset"]), _Place())
            room = (int(chunks[number]["size_bytes"]) - 64) // 32
            if place.record >= room:
                continue
            cursor = Cursor(number, place.record, number + 1, place.thread)
            batch = next_events(file, line.native(), cursor, room - place.record + 1)
            self.places[int(chunks[number]["offset"])] = _Place(cursor.record, cursor.thread)
            if len(batch["op"]):
                yield batch

    def _columns(self, file: TraceFile, events: Events, ranks: np.ndarray) -> Columns:
        """One row for each record."""
        known, at = np.unique(events["text"], return_inverse=True)
        is_failed, ones = (events["flags"] & ERROR) != 0, np.ones(len(events["op"]), np.int64)
        numbers, are_files = self._texts(file, known)
        at = at.reshape(-1)
        return Columns(
            member=events["process"].astype(np.int32), rank=ranks[events["process"]],
            name=numbers[at], op=events["op"],
            layer=events["layer"], flags=events["flags"] & _KEY_FLAGS, is_file=are_files[at],
            calls=ones,
            bytes=np.where(is_failed, 0, events["bytes"]), ns=events["duration_ns"],
            errors=is_failed.astype(np.int64),
            first_ns=events["start_ns"], last_ns=events["start_ns"] + events["duration_ns"],
        )  # fmt: skip

    def _texts(self, file: TraceFile, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of each text in the table of names, and whether it is that of a file; what is lost
        or none counts as one."""
        table = file.array("texts")
        numbers, are_files = np.full(len(known), NO_NAME, np.int32), np.ones(len(known), bool)
        for i, text in enumerate(known.tolist()):
            if text != LOST:
                begin, length = int(table[text]["offset"]), int(table[text]["length"])
                name = fold(text_of(file.raw[begin : begin + length].tobytes()))
                numbers[i] = self.names.number(name)
                are_files[i] = table[text]["is_file"] and not self.exclusion.leaves_out(name)
        return numbers, are_files

    def _counters(self, file: TraceFile, line: Line, ranks: np.ndarray) -> list[Columns]:
        """What counters grew by; they only ever grow."""
        chunks, parts = file.array("chunks"), []
        for chunk in chunks[chunks["kind"] == COUNTERS]:
            offset, now = int(chunk["offset"]), counters_in(file.raw, chunk)
            before = self.counted.get(offset, np.zeros(0, COUNTER))
            grown = {}
            for key in ("calls", "bytes", "ticks", "errors"):
                grown[key] = now[key].astype(np.int64)
                grown[key][: len(before)] -= before[key].astype(np.int64)
            self.counted[offset] = now
            moved = (now["op"] != 0) & (grown["calls"] > 0)
            if moved.any():
                grown = {key: values[moved] for key, values in grown.items()}
                parts.append(self._counter_columns(file, line, ranks, int(chunk["process"]),
                    now[moved], grown))
        return parts

    def _counter_columns(
        self, file: TraceFile, line: Line, ranks: np.ndarray, process: int, now: np.ndarray,
        grown: dict[str, np.ndarray]
    ) -> Columns:
        texts = np.where(now["file"] == 0, LOST,
            file.texts_of(np.full(len(now), process, np.uint32), now["file"]))
        known, at = np.unique(texts, return_inverse=True)
        numbers, are_files = self._texts(file, known)
        at = at.reshape(-1)
        return Columns(
            member=np.full(len(now), process, np.int32), rank=np.full(len(now), ranks[process],
                np.int32), name=numbers[at],
            op=now["op"], layer=now["layer"], flags=now["flags"], is_file=are_files[at],
            calls=grown["calls"], bytes=grown["bytes"],
            ns=line.lengths(np.maximum(grown["ticks"], 0)), errors=grown["errors"],
            first_ns=line.timestamps(now["first"]),
            last_ns=line.timestamps(now["last"]),
        )  # fmt: skip


def _summed(columns: Columns, is_launcher: np.ndarray) -> Columns:
    """I/O of ranks, added up as far as a look tells things apart: what was done before a watch
    began may be much."""
    columns = columns.where(~is_launcher[columns.member] & (columns.layer < EVENT_LAYERS) & columns
        .by_code("RWOCM"))
    return merged(columns, *_KEYS)


def _joined(parts: Iterable[Columns]) -> Columns:
    """All parts as one, added up whenever their rows have become twice as many as the last time."""
    kept: list[Columns] = []
    rows, limit = 0, LEAST_ROWS
    for part in parts:
        kept.append(part)
        rows += len(part)
        if rows > limit:
            kept = [merged(Columns.joined(kept), *_KEYS)]
            rows = len(kept[0])
            limit = max(LEAST_ROWS, 2 * rows)
    return Columns.joined(kept)


def is_alive(pid: int, end_kind: int, node: str) -> bool:
    """Whether the process goes on; of one on another node without an end it cannot be known, and is
    taken to."""
    if end_kind:
        return False
    return node != os.uname().nodename or os.path.exists(f"/proc/{pid}")
