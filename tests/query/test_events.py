# SPDX-License-Identifier: Apache-2.0
"""Columns of raw records against the plain decoder of the tests, for any trace and any size of
batches."""

from __future__ import annotations

import tempfile
from pathlib import Path

import decode
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.clock import Line
from weir.trace import TraceFile
from weir.trace._abi import Cursor
from weir.trace._synthetic import RECORD, TraceWriter, records
from weir.trace.events import next_events, read_events
from weir.trace.file import LOST
from weir.trace.ops import op_named

SETTINGS = settings(max_examples=60)
NAMES = ("", "/scratch/a", "pipe:[1]", "/scratch/b/ü", "LOST")
OPS = ("read", "pwrite", "fread", "fortran_write", "open", "MPI_Init", "output_put")

one_record = st.tuples(
    st.sampled_from(OPS), st.integers(0, 10**6), st.integers(0, 2**34),
    st.sampled_from(range(len(NAMES))), st.integers(-20, 2**47 - 1),
    st.integers(0, 2**40 - 1), st.sampled_from([0, 1, 2, 8, 16, 8 | 16, 32]), st.integers(0, 255),
)  # fmt: skip
marks = st.sampled_from(["hole", "thread", "sync"])
threads = st.lists(st.one_of(one_record, marks), max_size=30)
traces = st.tuples(st.lists(st.lists(threads, max_size=3), min_size=1, max_size=3),
    st.sampled_from([4096, 1 << 20]), st.integers(1, 40))


def raw(process, writer, made) -> np.ndarray:
    """One record, or a marker."""
    if made == "hole":
        return np.zeros(1, RECORD)
    if made == "thread":
        return records(250, writer.created_ticks, 0, size=4711, offset=0, layer=0)
    if made == "sync":
        return records(251, writer.created_ticks, 0, file=1, size=2, offset=0, layer=0)
    op, start, duration, name, offset, size, flags, error = made
    file = 0 if name == 0 else 10**6 if NAMES[name] == "LOST" else process.name(NAMES[name])
    if op != "fortran_write":
        offset = abs(offset)
    return records(
        op_named(op).value, writer.created_ticks + start, duration, file=file, size=size,
        offset=offset, flags=flags,
        error=error if flags & 1 else 0,
    )  # fmt: skip


def write(path: Path, processes, chunk_bytes: int) -> None:
    with TraceWriter(path) as writer:
        for number, its_threads in enumerate(processes):
            process = writer.process(100 + number)
            process.ids["/later"] = 2 * 10**6
            for thread, made in enumerate(its_threads):
                if made:
                    process.events([raw(process, writer, one) for one in made], thread + 1,
                        chunk_bytes)


def rows_of(file: TraceFile, rows: int) -> list[tuple]:
    line = Line(file.header.created_ticks, 0, 1 << 48)
    found = []
    for batch in read_events(file, line.native(), rows):
        assert all(len(column) == len(batch["op"]) <= rows for column in batch.values())
        found += zip(*(column.tolist() for column in batch.values()))
    return found


@SETTINGS
@given(traces)
def test_columns_are_what_the_plain_decoder_reads(drawn):
    processes, chunk_bytes, rows = drawn
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "n.weir"
        write(path, processes, chunk_bytes)
        file, plain = TraceFile(path), decode.read_trace(path)
        made, texts = rows_of(file, rows), file.texts
        created = file.header.created_ticks
        pages = {one.page: one.index for one in file.processes}
        # Of one log after the other, as the decoder has them; logs of a process lie in the file in
        # the order of their threads.
        expected = [
            (r.start - created, r.end - r.start, -1 if r.offset is None else r.offset, r.size,
                pages[r.process], r.thread, r.file_id,
             op_named(r.op).value, r.flags, r.error)
            for r in plain.records if r.op not in ("thread", "sync")
        ]  # fmt: skip
        assert sorted(row[:7] + (row[8],) + row[10:] for row in made) == sorted(expected)
        names = {(pages[process], number): text for (process, number), text in plain.names.items()}
        for row in made:
            assert names.get((row[4], row[6])) == (None if row[7] == LOST else texts[row[7]])
        assert rows_of(file, 10**5) == made


def test_a_growing_chunk_is_read_on_where_it_stopped(tmp_path):
    """As weir watch reads: places of a chunk that are taken and not written are looked at again."""
    whole = np.concatenate([records(op_named("read").value, (1 << 40) + i, 1, size=i)
        for i in range(100)])

    def reader(written: int) -> TraceFile:
        path = tmp_path / f"{written}.weir"
        with TraceWriter(path) as writer:
            part = whole.copy()
            part[written:] = np.zeros(1, RECORD)
            writer.process().events(part, 9)
        return TraceFile(path)

    sizes, cursor = [], None
    for written in (0, 10, 10, 64, 100):
        file = reader(written)
        if cursor is None:
            chunk = int(np.flatnonzero(file.array("chunks")["kind"] == 3)[0])
            cursor = Cursor(chunk, 0, chunk + 1, 0)
        batch = next_events(file, Line(1 << 40, 0, 1 << 48).native(), cursor)
        assert (batch["thread"] == 9).all()
        sizes.append(batch["bytes"].tolist())
    assert sizes == [[], list(range(10)), [], list(range(10, 64)), list(range(64, 100))]
