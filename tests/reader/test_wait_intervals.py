# SPDX-License-Identifier: Apache-2.0
"""Functions of time made of intervals, against counting every ns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.intervals import Price, Shares, Sum, Union

SETTINGS = settings(max_examples=60, deadline=None, print_blob=True)
END = 130
interval = st.tuples(st.integers(0, 100), st.integers(0, 25)).map(lambda one: (one[0],
    one[0] + one[1]))
intervals = st.lists(interval, max_size=12)
disjoint = st.lists(st.integers(0, 120), max_size=12,
    unique=True).map(lambda cuts: list(zip(sorted(cuts)[::2], sorted(cuts)[1::2])))
OFFSET = 1_700_000_000 * 10**9  # timestamps are ns since 1970


def columns(found: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([one[side] + OFFSET for one in found], np.int64) for side in (0, 1))


def counts(found: list[tuple[int, int]]) -> np.ndarray:
    """How many intervals each ns lies in."""
    return np.array([sum(begin <= t < end for begin, end in found) for t in range(END)])


TIMESTAMPS = np.arange(END + 1)


@SETTINGS
@given(intervals)
def test_length_of_the_union_and_sum_up_to_each_timestamp(found):
    each = counts(found)
    assert np.array_equal(Union.of(*columns(found)).until(TIMESTAMPS + OFFSET),
        np.r_[0, np.cumsum(each > 0)])
    assert np.array_equal(Sum.of(*columns(found)).until(TIMESTAMPS + OFFSET),
        np.r_[0, np.cumsum(each)])


@SETTINGS
@given(intervals, disjoint, st.integers(1, 9))
def test_the_highest_price_at_each_timestamp(added, windows, tenths):
    begins, ends = columns(windows)
    price = Price.greatest([Price.added(*columns(added)),
        Price.of_windows(begins, ends, np.full(len(begins), tenths / 10))])
    expected = np.maximum(counts(added), (counts(windows) > 0) * tenths / 10)
    assert np.array_equal(price.at(TIMESTAMPS[:-1] + OFFSET), expected)


def shares_of(cost, starts, ends, parts: int) -> np.ndarray:
    """Of calls that are added some at a time."""
    shares = Shares(cost)
    for some in np.array_split(np.arange(len(starts)), parts):
        if len(some):
            shares.add(starts[some], ends[some])
    return shares.of(starts, ends)


@SETTINGS
@given(intervals, intervals, st.integers(1, 4))
def test_what_io_costs_is_shared_out_to_calls_and_nothing_is_lost(calls, windows, parts):
    union, price = Union.of(*columns(calls)), Price.added(*columns(windows))
    cost = price.cost(union)
    each = (counts(calls) > 0) * counts(windows)
    assert np.array_equal(cost.until(TIMESTAMPS + OFFSET), np.r_[0, np.cumsum(each)])
    starts, ends = columns(calls)
    shares = shares_of(cost, starts, ends, parts)
    assert shares.sum() == pytest.approx(each.sum(), abs=1e-6)
    assert all(share >= 0 for share in shares) and cost.total_ns == each.sum()


def test_calls_at_one_time_share_by_their_time():
    """20 ns that a rank was in I/O, in three calls of 10."""
    union, price = Union.of(*columns([(0, 10), (0, 10), (20, 30)])), Price.added(
        *columns([(0, 30)]))
    starts, ends = columns([(0, 10), (0, 10), (20, 30)])
    assert shares_of(price.cost(union), starts, ends, 2).tolist() == pytest.approx([20 / 3] * 3)


def test_windows_that_overlap_belong_to_the_earlier_one():
    begins, ends = columns([(0, 10), (5, 12), (6, 8), (20, 21)])
    price = Price.of_windows(begins, ends, np.array([1.0, 2.0, 3.0, 4.0]))
    assert price.at(np.array([0, 9, 10, 11, 12, 20, 21]) + OFFSET).tolist() == [1, 1, 2, 2, 0, 4, 0]
