# SPDX-License-Identifier: Apache-2.0
"""Functions of time made of intervals, against counting every ns."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.intervals import Price, Union
from weir.analysis.lines import Cells, LineOf, call_rows
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.trace import Step
from weir.trace._synthetic import TraceWriter, event

SETTINGS = settings(max_examples=60)
END = 130
interval = st.tuples(st.integers(0, 100), st.integers(0, 25)).map(lambda one: (one[0],
    one[0] + one[1]))
intervals = st.lists(interval, max_size=12)
OFFSET = 1_700_000_000 * 10**9  # timestamps are ns since 1970


def columns(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([one[side] + OFFSET for one in found], np.int64) for side in (0, 1))


def counts(found: list[tuple[int, int]]) -> np.ndarray:
    """How many intervals each ns lies in."""
    return np.array([sum(begin <= t < end for begin, end in found) for t in range(END)])


TIMESTAMPS = np.arange(END + 1)


@SETTINGS
@given(intervals)
def test_length_of_the_union_up_to_each_timestamp(found):
    each = counts(found)
    assert np.array_equal(Union.of(*columns(found)).until(TIMESTAMPS + OFFSET),
        np.r_[0, np.cumsum(each > 0)])


class OneRank:
    """A rank with these calls, each on a file of its own but that of `shared`; a few in a chunk, on
    two threads in turn."""

    def __init__(self, calls: list[tuple[int, int]], directory: Path, shared: int = 0):
        path, self.names = directory / "n.weir", NameTable()
        with TraceWriter(path) as writer:
            process = writer.process(5, 0, 1)
            files = [process.name(f"/a{max(at, shared)}") for at in range(len(calls))]
            for thread in (1, 2):
                some = range(thread - 1, len(calls), 2)
                made = [event("read", writer.created_ticks + calls[at][0],
                    calls[at][1] - calls[at][0], file=files[at]) for at in some]
                process.events(made, thread=thread, chunk_bytes=64 + 2 * 32)
        self.data = read_step(Step("main", directory, None, None, (path,)), self.names)
        self.line, self.rows = LineOf((0,)), call_rows(self.data, self.names, LineOf((0,)))
        created = np.array([self.data.files[0].header.created_ticks], np.uint64)
        self.origin = int(self.data.lines[0].timestamps(created)[0])

    def file_of(self, row: int) -> int:
        return int(self.names[int(self.rows.name[row])].removeprefix("/a"))

    def cells(self, edges: list[int]) -> Cells:
        return Cells(self.data, self.line, self.rows, np.array(edges, np.int64) + self.origin)


edges_of = st.lists(st.integers(0, END), min_size=2, max_size=12, unique=True).map(sorted)


@SETTINGS
@given(intervals, edges_of)
def test_how_long_calls_of_each_file_last_in_each_cell(calls, edges):
    with tempfile.TemporaryDirectory() as directory:
        rank = OneRank(calls, Path(directory))
        found = rank.cells(edges).time(len(rank.rows.table))
        for row, times in enumerate(found.tolist()):
            each = counts([calls[rank.file_of(row)]])
            cells = zip(edges, edges[1:])
            assert times == [int(each[low:high].sum()) for low, high in cells]


@SETTINGS
@given(intervals, edges_of, st.lists(st.integers(0, 5), min_size=22, max_size=22))
def test_costs_are_shared_by_the_time_between_edges(calls, edges, rates):
    """Two costs at once; a second of a call costs so much in each cell."""
    with tempfile.TemporaryDirectory() as directory:
        rank = OneRank(calls, Path(directory), shared=3)
        of_cells = np.array(rates[: 2 * (len(edges) - 1)]).reshape(-1, 2)
        rising = np.cumsum(np.r_[np.zeros((1, 2)), of_cells * np.diff(edges)[:, None]], axis=0)
        found = rank.cells(edges).shares(rising)
        for row, costs in enumerate(found.tolist()):
            its = [call for at, call in enumerate(calls) if max(at, 3) == rank.file_of(row)]
            each = counts(its)
            cells = enumerate(zip(edges, edges[1:]))
            expected = sum((each[low:high].sum() * of_cells[at] for at, (low, high) in cells),
                np.zeros(2))
            assert costs == pytest.approx(expected.tolist(), abs=1e-6)


@SETTINGS
@given(intervals, intervals)
def test_what_the_io_of_a_rank_costs_up_to_each_timestamp(calls, windows):
    union, price = Union.of(*columns(calls)), Price.added(*columns(windows))
    cost = price.cost(union)
    each = (counts(calls) > 0) * counts(windows)
    assert np.array_equal(cost.until(TIMESTAMPS + OFFSET), np.r_[0, np.cumsum(each)])
    assert cost.total_ns == each.sum()


def test_windows_that_overlap_belong_to_the_earlier_one():
    begins, ends = columns([(0, 10), (5, 12), (6, 8), (20, 21)])
    price = Price.of_windows(begins, ends, np.array([1.0, 2.0, 3.0, 4.0]))
    assert price.at(np.array([0, 9, 10, 11, 12, 20, 21]) + OFFSET).tolist() == [1, 1, 2, 2, 0, 4, 0]
