# SPDX-License-Identifier: Apache-2.0
"""The time of a rank's calls up to timestamps, against counting every ns; and how often a report
reads the calls of a rank."""

from __future__ import annotations

import random

import numpy as np
import pytest

from weir.analysis import lines
from weir.analysis import lines
from weir.analysis.lines import (
    ALL_CALLS, ALL_IO, ALL_TIME, CALLS, EVERY_THREAD, IO, TIME, KnownLengths, LineOf,
    known_in_windows, lengths_of, rising
)  # fmt: skip
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.report import build, report_json
from weir.report.patterns.compute import accesses_of
from weir.report.waits import records
from weir.report.waits.summary import synchronisation_of
from weir.trace import Step
from weir.trace._synthetic import TraceWriter, event, mpi
from weir.trace.events import next_events

LAST = 300  # ns
OPS = ("read", "fwrite", "MPI_wait")
BARRIER = 1


@pytest.mark.parametrize("seed", range(8))
def test_time_of_calls_of_a_thread_and_of_all_threads(tmp_path, seed):
    of = random.Random(seed)
    calls = [(of.choice(OPS), of.randrange(LAST), of.randrange(40), of.choice((1, 2, 3)))
        for _ in range(60)]
    path = tmp_path / "n.weir"
    with TraceWriter(path) as writer:
        process = writer.process(5, 0, 1)
        file = process.name("/a")
        for thread in (1, 2, 3):
            process.events([event(op, writer.created_ticks + start, length, file=file)
                for op, start, length, its in calls if its == thread], thread=thread,
                chunk_bytes=64 + 3 * 32)  # fmt: skip
        created = writer.created_ticks
    data = read_step(Step("s", path.parent, None, None, (path,)), NameTable())
    origin = int(data.lines[0].timestamps(np.array([created], np.uint64))[0])
    asked = np.array(sorted(of.sample(range(LAST + 50), 25)), np.int64)
    own, every = lengths_of(data, LineOf((0,), thread=2), asked + origin, TIME, ALL_TIME)

    def expected(threads: set[int]) -> list[int]:
        return [
            sum(max(0, min(start + length, at) - start) for op, start, length, thread in calls
                if thread in threads and op != "MPI_wait")
            for at in asked.tolist()
        ]  # fmt: skip

    assert own.tolist() == expected({2})
    assert every.tolist() == expected({1, 2, 3})
    known = KnownLengths(asked + origin, {TIME: own})
    assert known.at(asked[::3] + origin, TIME)[0].tolist() == own[::3].tolist()
    assert known.at(asked[-1:] + origin + 1, TIME) is None, "nobody named this timestamp"


@pytest.mark.parametrize("seed", range(6))
def test_windows_of_timestamps_have_the_lengths_of_one_pass(tmp_path, monkeypatch, seed):
    """Calls longer than windows among them; what does not grow is left out and known all the
    same."""
    of = random.Random(seed)
    calls = sorted((of.choice(("read", "MPI_wait")), of.randrange(LAST), of.choice((0, 3, 900)),
        of.choice((1, 2))) for _ in range(60))
    path = tmp_path / "n.weir"
    with TraceWriter(path) as writer:
        process = writer.process(5, 0, 1)
        file = process.name("/a")
        for thread in (1, 2):
            process.events([event(op, writer.created_ticks + start, length, file=file)
                for op, start, length, its in calls if its == thread], thread=thread,
                chunk_bytes=64 + 3 * 32)  # fmt: skip
        created = writer.created_ticks
    data = read_step(Step("s", path.parent, None, None, (path,)), NameTable())
    origin = int(data.lines[0].timestamps(np.array([created], np.uint64))[0])
    sides = [origin + np.sort(np.array(of.choices(range(LAST + 50), k=count))) for count in (
        40, 7)] + [np.empty(0, np.int64)]
    asked = rising(*sides)
    line = LineOf((0,), thread=of.choice((2, EVERY_THREAD)))
    unions = IO, CALLS, ALL_IO, ALL_CALLS, TIME, ALL_TIME
    monkeypatch.setattr(lines, "TIMESTAMPS_AT_ONCE", 8)
    parts = list(known_in_windows(data, line, sides, unions))
    assert len(parts) > 4
    expected = lengths_of(data, line, asked, *unions)
    assert np.isin(asked, KnownLengths.joined(parts).at_ns).all()
    for known in (KnownLengths.joined(parts), KnownLengths.joined(
            [one.changing(*unions) for one in parts])):  # fmt: skip
        assert known.at(asked, *unions).tolist() == expected.tolist()


@pytest.fixture
def run(tmp_path):
    """Two nodes with two ranks each, which write by turns and meet after each call."""
    ranks, turns = 4, 12
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    for node in range(2):
        with TraceWriter(directory / f"n{node}.weir", f"n{node}") as writer:
            for rank in (2 * node, 2 * node + 1):
                process = writer.process(100 + rank, rank, ranks)
                world = process.name(f"mpi:world:{ranks}")
                file = process.name("/scratch/all")
                at = writer.created_ticks + 1000 * (1 + np.arange(turns))
                turn = np.arange(turns) % ranks == rank
                process.events([event("write", int(one), 600, file=file, size=8, offset=0)
                    for one in at[turn]], thread=1)  # fmt: skip
                process.events(mpi("MPI_collective", at + 600 * turn, 700 - 600 * turn, BARRIER,
                    file=world, offset=np.arange(turns)), thread=1)  # fmt: skip
    return directory.parent


def test_a_report_reads_the_calls_of_each_rank_twice(run, monkeypatch):
    """Once for all that waits, the critical path and wall time ask, once for what calls cost."""
    passes = {"lengths": 0, "time": 0, "shares": 0}

    def counting(name, function):
        def counted(*arguments):
            passes[name] += 1
            return function(*arguments)

        return counted

    functions = tuple(map(counting, passes, lines.line_functions()))
    monkeypatch.setattr(lines, "line_functions", lambda: functions)
    report = build(run)
    report_json(report)
    [step] = report.steps
    waits = synchronisation_of(step).waits
    assert waits is not None and waits.waited_ns > 0
    assert passes["lengths"] == passes["shares"] == 4


def test_common_sizes_of_a_file_are_kept_once_for_all_nodes(run):
    [found] = accesses_of(build(run))
    assert len(found) == 1, "a row for all nodes"
    assert found.ranks.files()["ranks"].tolist() == [4]
    sizes = found.commons[found.commons[:, 1] == 0]
    assert sizes[:, 2:].tolist() == [[8, 12]]


def test_chunks_of_threads_that_do_io_alone_are_not_read_for_calls_of_mpi(tmp_path, monkeypatch):
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir") as writer:
        for rank in range(2):
            process = writer.process(100 + rank, rank, 2)
            at = writer.created_ticks + 1000 * np.arange(1, 9)
            file, world = process.name("/a"), process.name("mpi:world:2")
            process.events([event("write", int(one), 600, file=file, size=8) for one in at],
                thread=1, chunk_bytes=64 + 2 * 32)  # fmt: skip
            process.events(mpi("MPI_collective", at + 700, 200, BARRIER, file=world,
                offset=np.arange(8)), thread=2)  # fmt: skip
    threads = []

    def reading(file, clock, cursor, *rest):
        threads.append(int(file.array("chunks")["thread"][cursor.chunk]))
        return next_events(file, clock, cursor, *rest)

    monkeypatch.setattr(records, "next_events", reading)
    monkeypatch.setattr(records, "SKIPPED_BYTES", 0)
    [step] = build(directory.parent).steps
    waits = synchronisation_of(step).waits
    assert waits is not None and waits.collectives == 8
    assert threads and set(threads) == {2}
