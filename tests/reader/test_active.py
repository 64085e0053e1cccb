# SPDX-License-Identifier: Apache-2.0
"""Active time against an oracle that sorts and merges every interval of every process in Python
integers."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.active import active_time
from weir.analysis.clock import Line, node_line
from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter, event, records
from weir.trace.ops import op_named, ops

SETTINGS = settings(max_examples=120)


def union_ns(intervals: list[tuple[int, int]]) -> int:
    """The oracle: sort by start, walk once."""
    total, end = 0, None
    for begin, until in sorted(intervals):
        if end is None or begin > end:
            total, end = total + until - begin, until
        elif until > end:
            total, end = total + until - end, until
    return total


# A thread: gaps and lengths of its calls; `disorder` swaps neighbours, as a signal handler's record
# does.
calls = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60),
    st.sampled_from([0, 0, 0, 1, 2, 3])), max_size=40)
threads = st.tuples(st.integers(0, 300), calls, st.booleans(),
    st.sampled_from([4096, 4096, 1 << 20]))
nodes = st.lists(
    st.tuples(st.integers(300, 3000).map(lambda n: Fraction(n, 1000)), st.integers(-500, 500),
        st.lists(threads, max_size=4)),
    min_size=1,
    max_size=3,
)
NAMES = ("", "/scratch/a", "pipe:[1]", "/dev/shm/b")


def write_thread(process, thread, begin, made, is_disordered, chunk_bytes,
        scale) -> list[tuple[int, int]]:
    """One thread's records; returns the intervals that count, in ticks. Gaps and lengths are
    multiples of scale."""
    at, rows = begin, []
    for gap, length, name in made:
        at += gap * scale
        rows.append((at, length * scale, name))
        at += length * scale
    if is_disordered:
        rows = rows[1:] + rows[:1]
    if rows:
        starts, lengths, names = (np.array(column) for column in zip(*rows))
        files = [process.name(NAMES[n]) if n else 0 for n in names.tolist()]
        kinds = np.resize([op_named(n).value for n in ("read", "pwrite", "fread", "lseek")],
            len(rows))
        process.events(records(kinds, starts, lengths, file=files), thread, chunk_bytes)
    return [(start, start + length) for start, length, name in rows if NAMES[name] != "pipe:[1]"]


@SETTINGS
@given(nodes, st.integers(0, 3), st.integers(1, 5), st.sampled_from([1, 1 << 17, 1 << 30]),
    st.booleans())
def test_the_union_is_that_of_the_oracle(made, left_out, threads, scale, is_scanned):
    expected, files, lines, masks = [], [], [], []
    with tempfile.TemporaryDirectory() as directory:
        for number, (slope, skew, ranks) in enumerate(made):
            path = Path(directory) / f"n{number}.weir"
            line = Line(1 << 40, 10**18 + skew, round(slope * 2**48))
            with TraceWriter(path, f"n{number}") as writer:
                for rank, (begin, rows, is_disordered, chunk_bytes) in enumerate(ranks):
                    process = writer.process(100 + rank, rank)
                    ticks = write_thread(process, rank, writer.created_ticks + begin, rows,
                        is_disordered, chunk_bytes, scale)
                    if rank != left_out:
                        expected += [(line.timestamp(a), line.timestamp(b)) for a, b in ticks]
            files.append(TraceFile(path).scan(threads) if is_scanned else TraceFile(path))
            lines.append(line)
            masks.append(np.arange(len(ranks)) != left_out)
        found = active_time(tuple(files), tuple(lines), masks, threads=threads)
    assert found.ns == union_ns(expected)
    assert found.records == len(expected)
    if expected:
        assert (found.first_ns, found.last_ns) == (min(a for a, _ in expected),
            max(b for _, b in expected))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_threads_in_many_chunks(tmp_path, seed):
    print("seed", seed)
    random = np.random.default_rng(seed)
    expected = []
    with TraceWriter(tmp_path / "n.weir", ns_per_tick=0.37) as writer:
        process = writer.process(1, 0, last_ticks=(1 << 40) + 10**10)
        for thread in range(20):
            lengths = random.integers(0, 300, 5000)
            starts = writer.created_ticks + np.cumsum(random.integers(0, 9000, 5000)
                + lengths) - lengths
            process.events(records(6, starts, lengths), thread=thread, chunk_bytes=8192)
            expected.append((starts, lengths))
    file = TraceFile(tmp_path / "n.weir").scan()
    line, problem = node_line(file)
    assert problem is None
    intervals = [
        (line.timestamp(a), line.timestamp(a + n)) for starts, lengths in expected
        for a, n in zip(starts.tolist(), lengths.tolist())
    ]
    for threads in (1, 2, 7):
        found = active_time((file,), (line,), threads=threads)
        assert (found.ns, found.records) == (union_ns(intervals), 100_000)
    assert file.array("chunks")["disordered"].sum() == 0


def bursts(random: np.random.Generator, thread: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of one thread: it is busy for 1 ms, as all others are, every 10 s; then a
    call that all since the second burst were part of ends. Every tenth thread has its records out
    of order."""
    starts = np.concatenate([burst * 10**10 + np.cumsum(random.integers(0, 5000, 300))
        for burst in range(8)])
    lengths = random.integers(0, 4000, len(starts))
    starts, lengths = np.append(starts, 10**10 + 10**6 + thread), np.append(lengths,
        4096 * int(random.integers(1, 10**7)))
    order = np.argsort(starts + lengths) if thread % 10 else random.permutation(len(starts))
    return starts[order], lengths[order]


@pytest.mark.parametrize("is_scanned", [True, False])
def test_bursts_long_calls_and_disorder(tmp_path, is_scanned):
    random, intervals = np.random.default_rng(11), []
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(1, 0)
        for thread in range(40):
            starts, lengths = bursts(random, thread)
            process.events(records(6, writer.created_ticks + starts, lengths), thread=thread,
                chunk_bytes=16384)
            intervals += zip(starts.tolist(), (starts + lengths).tolist())
    for threads in (1, 2, 5):
        file = TraceFile(tmp_path / "n.weir")
        found = active_time((file.scan() if is_scanned else file,), (Line(1 << 40, 0, 1 << 48),),
            threads=threads)
        assert (found.ns, found.records) == (union_ns(intervals), 40 * 2401)
        assert (found.first_ns, found.last_ns) == (min(a for a, _ in intervals),
            max(b for _, b in intervals))


def test_many_chunks_of_several_files(tmp_path):
    """More than 4,096 chunks: the library unites each file on its own, then all."""
    random, intervals, files, lines = np.random.default_rng(13), [], [], []
    for node in range(3):
        lines.append(Line(1 << 40, 10**6 * node, (1 << 48) + node))
        with TraceWriter(tmp_path / f"{node}.weir", f"n{node}") as writer:
            process = writer.process(1, 0)
            for thread in range(1500):
                lengths = random.integers(0, 3 * 10**4, 6)
                starts = writer.created_ticks + random.integers(0, 10**8) + random.integers(
                    0, 10**5, 6)
                order = np.argsort(starts + lengths) if thread % 10 else random.permutation(6)
                process.events(records(6, starts[order], lengths[order]), thread=thread,
                    chunk_bytes=4096)
                intervals += [(lines[-1].timestamp(a), lines[-1].timestamp(a + n))
                    for a, n in zip(starts.tolist(), lengths.tolist())]
        files.append(TraceFile(tmp_path / f"{node}.weir").scan())
    for threads in (1, 3):
        found = active_time(tuple(files), tuple(lines), threads=threads)
        assert (found.ns, found.records) == (union_ns(intervals), 27_000)
        assert (found.first_ns, found.last_ns) == (min(a for a, _ in intervals),
            max(b for _, b in intervals))


@pytest.mark.parametrize("seed", [21, 22])
def test_ranks_of_many_files_that_call_at_the_same_times(tmp_path, seed):
    """Most calls lie within what is known of files before; some begin before it, end behind it,
    last over what lies between, are empty or out of order."""
    print("seed", seed)
    random, intervals, files = np.random.default_rng(seed), [], []
    line = Line(1 << 40, 0, 1 << 48)
    for node in range(6):
        with TraceWriter(tmp_path / f"{node}.weir", f"n{node}") as writer:
            process = writer.process(1, 0)
            for thread in range(800):
                starts = np.repeat(np.arange(8), 3) * 10**6 + random.integers(0, 3000, 24)
                lengths = random.integers(0, 1500, 24)
                if random.random() < 0.05:
                    lengths[random.integers(0, 24)] = random.integers(0, 3 * 10**6)
                if random.random() < 0.05:
                    starts[random.integers(0, 24)] += random.integers(-10**5, 10**5)
                order = np.argsort(starts + lengths) if thread % 10 else random.permutation(24)
                starts, lengths = starts[order] + 10**7, lengths[order]
                process.events(records(6, writer.created_ticks + starts, lengths), thread=thread,
                    chunk_bytes=4096)
                intervals += zip(starts.tolist(), (starts + lengths).tolist())
        files.append(TraceFile(tmp_path / f"{node}.weir").scan())
    for threads in (1, 3):
        found = active_time(tuple(files), (line,) * len(files), threads=threads)
        assert (found.ns, found.records) == (union_ns(intervals), 6 * 800 * 24)
        assert (found.first_ns, found.last_ns) == (min(a for a, _ in intervals),
            max(b for _, b in intervals))


def test_calls_that_end_where_time_is_cut_count_once(tmp_path):
    """The library cuts time in lengths of powers of two ns, from 2^20 on: here each call ends at
    such a place."""
    random, intervals = np.random.default_rng(12), []
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(1, 0)
        for thread in range(3):
            ends = np.cumsum(random.integers(0, 4, 3000)) << 19
            lengths = random.integers(0, 5, 3000) << 18
            process.events(records(6, writer.created_ticks + 2**22 + ends - lengths, lengths),
                thread=thread, chunk_bytes=16384)
            intervals += zip((ends - lengths).tolist(), ends.tolist())
    file = TraceFile(tmp_path / "n.weir").scan()
    found = active_time((file,), (Line(1 << 40, 0, 1 << 48),), threads=2)
    assert (found.ns, found.records) == (union_ns(intervals), 9000)


def test_a_signal_handlers_record_is_found_out_of_order(tmp_path):
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(1, 0)
        t = writer.created_ticks
        process.events([event("read", t, 100), event("write", t + 500, 20),
            event("write", t + 510, 5), event("read", t + 200, 30)])
    file = TraceFile(tmp_path / "n.weir").scan()
    assert file.event_chunks()["disordered"].tolist() == [1]
    assert active_time((file,), (node_line(file)[0],)).ns == 100 + 20 + 30


def test_only_io_counts(tmp_path):
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(1, 0)
        pipe, t = process.name("pipe:[9]"), writer.created_ticks
        process.events([event("MPI_Init", t, 10**6), event("read", t, 2 * 10**6, file=pipe),
            event("stat", t, 7)])
    file = TraceFile(tmp_path / "n.weir").scan()
    line = node_line(file)[0]
    assert active_time((file,), (line,)).ns == 7
    assert active_time((file,), (line,), all_names=True).ns == 2 * 10**6


def test_nothing_is_active_in_nothing():
    assert active_time((), ()).ns == 0


def test_python_and_library_agree_on_every_tick(tmp_path):
    ticks = np.array([0, 1, 2**40, 2**40 + 12345678901, 2**56, 2**40 - 999], np.uint64)
    for multiplier in (2**48, 2**48 // 3, 2**52, 2**42 + 1):
        line = Line(2**40, 1_700_000_000 * 10**9, multiplier)
        assert line.timestamps(ticks).tolist() == [line.timestamp(int(t)) for t in ticks]
        lengths = ticks[ticks < 2**57]
        assert line.lengths(lengths).tolist() == [min(line.length(int(t)), 2**62) for t in lengths]


def test_every_operation_of_the_table_is_known():
    assert {op.name for op in ops().values()} >= {"read", "fwrite", "fortran_write", "thread",
        "MPI_Init"}
    assert op_named("sync").op_class == "M"
