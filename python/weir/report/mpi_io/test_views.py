# SPDX-License-Identifier: Apache-2.0
"""The drawing of file views whose bytes are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from weir.analysis.ranks import RankName
from weir.report.mpi_io.view_table import drawings, figures
from weir.report.mpi_io.views import FileView, Run, ViewGroup


def view(rank: int, displacement: int, extent: int, runs: str, recorded: str = "all") -> FileView:
    made = Run.all_of(runs)
    data = sum(run.blocks * run.length for run in made)
    name = RankName("", rank, str(rank), True)
    return FileView("main", "/f", name, 1, displacement, 1, data, extent, recorded, made)


def group(*views: FileView) -> ViewGroup:
    return ViewGroup("main", "/f", (1,), tuple((one, (one.rank,)) for one in views))


def rows(made: ViewGroup, which: int = 0) -> list[str]:
    return [row[1] for row in list(drawings(made, "File view 1"))[which].rows]


@pytest.mark.parametrize("text", ["3+4", "0+1*5/3", "10+2*3/5*4/40", "7+8*2/8*3/20"])
def test_bytes_below_a_place_are_those_of_the_blocks_one_by_one(text):
    (run,) = Run.all_of(text)
    assert str(run) == text and len(list(run.places())) == run.blocks
    own = np.zeros(300, np.int64)
    for place in run.places():
        own[place : place + run.length] = 1
    assert run.end == np.flatnonzero(own)[-1] + 1
    at = np.arange(-20, 300)
    assert run.below(at).tolist() == [int(own[: max(one, 0)].sum()) for one in at]


def test_repetitions_that_lie_in_one_another_are_counted():
    one = view(0, 5, 4, "0+1*3/10")  # periods begin each 4 bytes, and end 21 behind their begin
    own = np.zeros(400, np.int64)
    for period in range(90):
        for place in one.runs[0].places():
            own[5 + 4 * period + place] += 1
    assert one.seen(np.arange(301)).tolist() == own[:300].tolist()
    assert sum(length for _, length in one.spans(0, 300, 10**4)) == own[:300].sum()


def test_a_file_that_is_cut_in_parts_shows_where_each_begins():
    made = group(*(view(rank, 100 * rank, 4, "0+4") for rank in range(4)))
    assert made.range == (0, 400) and not made.is_plain
    assert rows(made) == ["#" * 50, "." * 12 + "+" + "#" * 37, "." * 25 + "#" * 25,
        "." * 37 + "+" + "#" * 12]


def test_many_ranks_show_the_first_views_and_the_last():
    made = group(*(view(rank, 0, 320, f"{8 * rank}+8") for rank in range(40)))
    found = rows(made)
    assert found == ["." * rank + "#" + "." * (39 - rank) for rank in (*range(15), 39)]
    assert "16 of 40 different views" in list(drawings(made, "x"))[0].remarks[1]
    assert len(figures(made).rows) == 16


def test_what_was_not_recorded_is_drawn_as_such():
    made = group(view(0, 0, 64, "0+8 16+8", "first"), view(1, 0, 64, "", "unknown"))
    assert rows(made) == ["#.#?????", "????????"]
    assert [row[5] for row in figures(made).rows] == ["-", "-"]


def test_a_detail_is_where_two_ranks_begin():
    halves = ("0+400*1000/800", "400+400*1000/800", "800000+400*1000/800", "800400+400*1000/800")
    made = group(*(view(rank, 0, 1_600_000, text) for rank, text in enumerate(halves)))
    assert rows(made) == ["+" * 32 + "." * 31 + "+"] * 2 + ["." * 31 + "+" * 33] * 2
    assert rows(made, 1) == ["#.#.", ".#.#", "....", "...."]


def test_every_rank_sees_all_bytes():
    assert group(view(0, 8, 4, "0+4"), view(1, 8, 16, "0+16")).is_plain
    assert not group(view(0, 8, 4, "0+4"), view(1, 8, 16, "0+12")).is_plain
