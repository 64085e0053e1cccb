# SPDX-License-Identifier: Apache-2.0
"""Trace lines in the layout of the reference: one for each record, streamed chunk by chunk, never
all in memory."""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.names import fold, matches, shown
from weir.analysis.step import Member, StepData
from weir.report.frame.build import Choice, Report, build
from weir.trace.ops import ERROR, EVENTS, FORTRAN, HDF5, LONG, MPI, MPI_IO, OUTPUT, op_named, ops

_NAMELESS = -1
_UNKNOWN_OFFSET = 2**48 - 1


def trace_lines(
    run: str | os.PathLike[str] | Report,
    step: str | None = None,
    rank: int | str | None = None,
    file: str | None = None,
    op: str | None = None,
    t_from: float | None = None,
    t_to: float | None = None,
    all: bool = False,
) -> Iterator[str]:
    """Lines by step, rank and process; within a process in the order in which calls returned, all
    threads together.

    file: a pattern as in weir.analysis.names.matches. op: a name of the table of operations
    (KeyError when there is none). t_from, t_to: seconds since the start of the step; records that
    lie in the window at any time. stamp: ns since 1970 when the call began, on the aligned clock;
    time: ns that it took.
    """
    wanted = None if op is None else op_named(op).value
    report = run if isinstance(run, Report) else build(run, step=step, rank=rank, all=all)
    choice = Choice(rank, all) if isinstance(rank, int) else replace(report.choice, everything=all)
    return _lines(report, choice, step, file, wanted, t_from, t_to)


def _lines(
    report: Report, choice: Choice, step: str | None, pattern: str | None, op: int | None,
    t_from: float | None, t_to: float | None
) -> Iterator[str]:
    for one in report.steps:
        if step is not None and one.name != step:
            continue
        start = one.started_ns
        window = (
            None if t_from is None else start + round(t_from * 1e9),
            None if t_to is None else start + round(t_to * 1e9),
        )
        members = sorted(
            (m for m in one.data.members if choice.takes(m) and m.process.events),
            key=lambda m: (m.rank < 0, m.rank, m.file, m.process.start_ticks, m.process.index),
        )
        for member in members:
            lines = _ProcessLines(one.data, member, choice.everything, pattern, op, window).lines()
            for number, line in enumerate(lines):
                if number == 0:
                    rank = f"rank {member.rank}" if member.rank >= 0 else "no rank"
                    node = one.data.files[member.file].node
                    yield (
                        f"# step {one.name}, {rank}, node {node}, pid {member.process.pid}: "
                        f"{member.process.command_line}"
                    )
                yield line


class _ProcessLines:
    """The lines of one process."""

    def __init__(
        self, data: StepData, member: Member, everything: bool, pattern: str | None, op: int | None,
        window: tuple[int | None, int | None],
    ):  # fmt: skip
        self.file, self.line, self.member = data.files[member.file], data.lines[member.file], member
        self.everything, self.op, self.window = everything, op, window
        table = self.file.names_of(member.process.index)
        texts, is_file = self.file.texts, self.file.array("texts")["is_file"]
        self.names = {int(one["id"]): shown(fold(texts[one["text"]]), data.cwd) for one in table}
        hidden = [int(one["id"]) for one in table if not is_file[one["text"]]]
        self.hidden = np.array([] if everything else hidden, np.uint32)
        self.shown = None
        if pattern is not None:
            kept = [int(one["id"]) for one in table if matches(fold(texts[one["text"]]), pattern)]
            self.shown = np.array(kept, np.uint32)

    def lines(self) -> Iterator[str]:
        """Logs are merged by the end of calls; in one log the writer's order is kept."""
        chunks = self.file.event_chunks()
        chunks = chunks[chunks["process"] == self.member.process.index]
        chunks = chunks[np.lexsort((chunks["sequence"], chunks["log"]))]
        logs = [self._log(list(group))
            for _, group in groupby(chunks, key=lambda chunk: int(chunk["log"]))]
        for _, line in logs[0] if len(logs) == 1 else heapq.merge(*logs, key=lambda item: item[0]):
            yield line

    def _log(self, chunks: list[np.void]) -> Iterator[tuple[int, str]]:
        for chunk in chunks:
            if chunk["first_ticks"] > chunk["last_ticks"] or not self._in_window(
                self.line.timestamp(int(chunk["first_ticks"])),
                self.line.timestamp(int(chunk["last_ticks"]))
            ):
                continue
            records = self.file.records(chunk)
            yield from self._format(records[self._kept(records)])

    def _in_window(self, first, last):  # type: ignore[no-untyped-def]
        begin, end = self.window
        return (begin is None or last >= begin) & (end is None or first < end)

    def _kept(self, records: np.ndarray) -> np.ndarray:
        codes = class_codes()[records["op"]]
        of_library = (records["layer"] >= OUTPUT) & (records["layer"] <= HDF5) & (codes == ord("X"))
        kept = (codes != 0) & (codes != ord("X")) & (records["layer"] <= MPI) | of_library
        if self.op is not None:
            kept &= records["op"] == self.op
        if len(self.hidden):
            kept &= ~np.isin(records["file"], self.hidden) | of_library
        if self.shown is not None:
            kept &= np.isin(records["file"], self.shown)
        return kept

    def _format(self, records: np.ndarray) -> Iterator[tuple[int, str]]:
        long = (records["flags"] & LONG) != 0
        ticks = records["duration"].astype(np.uint64) << np.where(long, 12, 0).astype(np.uint64)
        starts, ends = self.line.timestamps(records["start"]), self.line.timestamps(
            records["start"] + ticks)
        inside = np.broadcast_to(np.asarray(self._in_window(starts, ends)), starts.shape)
        records, starts, ends = records[inside], starts[inside], ends[inside]
        lengths = self.line.lengths(ticks[inside])
        offsets = records["offset_size"] & np.uint64(_UNKNOWN_OFFSET)
        sizes = (records["offset_size"] >> np.uint64(48) << np.uint64(32)) | records["size_low"]
        failed = (records["flags"] & ERROR) != 0  # above 40 bits of the size stands a checksum then
        sizes = np.where(failed, sizes & np.uint64((1 << 40) - 1), sizes)
        errors = np.where(failed, records["error"], 0)
        columns = (records["op"], records["file"], sizes, offsets, records["layer"],
            errors, starts, lengths, ends)
        for op, file, size, offset, layer, error, start, length, end in zip(*(column.tolist()
                for column in columns)):
            yield end, self._one(ops()[op], file, size, offset, layer, error, start, length)

    def _one(self, op, file, size, offset, layer, error, start,
            length) -> str:  # type: ignore[no-untyped-def]
        head = f"{op.name + ':':<6} file={file}"
        tail = f"time={length:>8}nsec stamp={start}"
        if layer == FORTRAN:
            unit = offset - (1 << 48) if offset >> 47 else offset
            head += f" unit={unit}"
        elif offset != _UNKNOWN_OFFSET and op.op_class in "RW":
            tail += f" offset={offset}"
        if OUTPUT <= layer < EVENTS:
            failed = f" failed={error}" if error else ""
            if layer == MPI_IO and offset != _UNKNOWN_OFFSET:
                tail += f" offset={offset}"
            return f"{head} bytes={size:>7} {tail}{failed} {self.names.get(file, '(no name)')}"
        if error:
            tail += " error=" + errno.errorcode.get(error, str(error))
        if op.op_class == "O":
            return f"{head:<28} {tail}\n{self.names.get(file, '(no name)')}"
        if op.op_class in "RW":
            return f"{head} bytes={size:>7} {tail}"
        return f"{head:<28} {tail}"
