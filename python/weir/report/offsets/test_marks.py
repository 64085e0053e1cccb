# SPDX-License-Identifier: Apache-2.0
"""Many requests as fewer boxes: each box holds its requests, none is lost, and boxes of boxes are
those of the requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.report.offsets.marks import SEVERAL, Cells, Marks, Plot, combined


def marks_of(rows) -> Marks:
    way, rank, begin, length, offset, size = np.array(rows, np.int64).reshape(-1, 6).T
    return Marks(way, rank, begin, begin + length, offset, offset + size, np.ones_like(way))


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 3), st.integers(0, 2**40),
    st.integers(0, 2**30), st.integers(0, 2**44), st.integers(0, 2**32)), max_size=60)


def columns(marks: Marks) -> set:
    return set(zip(*(one.tolist() for one in vars(marks).values())))


@given(ROWS, st.integers(0, 40), st.integers(0, 44))
def test_a_box_is_the_smallest_that_holds_its_requests(rows, time, offset):
    marks = marks_of(rows)
    boxes = combined(marks, Cells(time, offset))
    assert boxes.count.sum() == len(marks)
    of = {(one[0], one[2] >> time, one[4] >> offset): one for one in columns(boxes)}
    assert len(of) == len(boxes)
    for cell, box in of.items():
        its = [one for one in zip(*(part.tolist() for part in vars(marks).values()))
            if (one[0], one[2] >> time, one[4] >> offset) == cell]
        assert box[2] == min(one[2] for one in its) and box[3] == max(one[3] for one in its)
        assert box[4] == min(one[4] for one in its) and box[5] == max(one[5] for one in its)
        ranks = {one[1] for one in its}
        assert box[6] == len(its) and box[1] == (ranks.pop() if len(ranks) == 1 else SEVERAL)


@given(ROWS, st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_boxes_of_boxes_are_those_of_the_requests(rows, time, offset, more):
    marks, coarse = marks_of(rows), Cells(time + more, offset + more)
    assert columns(combined(combined(marks, Cells(time, offset)), coarse)) == columns(
        combined(marks, coarse))


@pytest.mark.parametrize("batch", [7, 1000])
def test_few_requests_stay_as_they_are_and_many_fit(batch):
    random = np.random.default_rng(5)
    rows = np.column_stack((random.integers(0, 2, 1000), random.integers(0, 4, 1000),
        np.sort(random.integers(0, 10**10, 1000)), random.integers(0, 10**6, 1000),
        random.integers(0, 10**9, 1000), random.integers(1, 10**5, 1000)))
    whole = marks_of(rows)
    for most in (1000, 100):
        plot = Plot(most)
        for at in range(0, 1000, batch):
            plot.add(whole.of(np.arange(at, min(at + batch, 1000))))
        found = plot.marks()
        assert found.count.sum() == 1000
        if most == 1000:
            assert plot.cells is None and columns(found) == columns(whole)
        else:
            assert 10 < len(found) <= most
            assert columns(combined(whole, plot.cells)) == columns(found)
