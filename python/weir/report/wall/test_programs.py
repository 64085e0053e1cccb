# SPDX-License-Identifier: Apache-2.0
"""Wall time of steps with many processes, or several programs with ranks."""

from __future__ import annotations

import io

import pytest

from weir.report import build, render_text
from weir.report.frame.kind import Options
from weir.report.frame.programs import ranks_text
from weir.report.wall.table import by_rank
from weir.trace._synthetic import TraceWriter, event

MS = 10**6
ALONE = 200


def lines_of(report) -> list[str]:
    stream = io.StringIO()
    render_text(report, stream, Options(("wall",), width=80))
    return stream.getvalue().splitlines()


def write_processes(path, processes) -> None:
    """Each: fields of its chunk, and for how many ms it lives; half of that is a write."""
    with TraceWriter(path) as writer:
        tick = 1 / writer.ns_per_tick
        for number, (fields, life_ms) in enumerate(processes):
            start = writer.created_ticks + round(number * MS * tick)
            end = start + round(life_ms * MS * tick)
            rank, ranks = fields.pop("rank", -1), fields.pop("ranks", 0)
            process = writer.process(1000 + number, rank, ranks, start_ticks=start, end_ticks=end,
                last_ticks=end, end_kind=1, **fields)
            process.events(event("pwrite", start, (end - start) // 2, size=10, offset=0,
                file=process.name("/scratch/f")))


@pytest.fixture
def script(tmp_path):
    """Processes that no other of the step started, each longer than the one before."""
    write_processes(tmp_path / "n.weir",
        [({"ppid": 1, "exe": b"/bin/gzip"}, 1 + number) for number in range(ALONE)])
    return build(tmp_path)


def test_of_many_processes_the_longest_are_listed_and_the_rest_is_one_line(script):
    rows = by_rank(script.steps[0])
    assert len(rows) == ALONE and {row["rank"].rank for row in rows} == {0}
    assert len({row["rank"].label for row in rows}) == ALONE
    lines = lines_of(script)
    first = next(at for at, line in enumerate(lines) if "each process of main" in line
        or "The same of each process" in line)
    listed = [line.split() for line in lines[first + 3 : first + 3 + 20]]
    assert [words[:2] for words in listed[:19]] == [["gzip", str(1000 + number)]
        for number in range(ALONE - 1, ALONE - 20, -1)]
    assert listed[19][:2] == [str(ALONE - 19), "others"]
    assert not any("rank" in line for line in lines[first - 5 :])
    assert ranks_text(script) == f"{ALONE} processes of gzip"


def test_of_several_programs_with_many_ranks_each_has_a_line(tmp_path):
    def program(name, world, ranks):
        return [({"rank": rank, "ranks": ranks, "ppid": world, "exe": name,
            "rank_source": 1}, 10)
            for rank in range(ranks)]

    write_processes(tmp_path / "n.weir", program(b"/bin/pre", 5, 12) + program(b"/bin/model", 6,
        16))
    report = build(tmp_path)
    lines = lines_of(report)
    first = next(at for at, line in enumerate(lines) if "The same of each program" in line)
    assert [line.split()[:2] for line in lines[first + 3 : first + 5]] == [["pre", "12"],
        ["model", "16"]]
    assert ranks_text(report) == "12 ranks of pre, 16 ranks of model"
    everyone = by_rank(report.steps[0])
    assert [row["rank"].label for row in everyone[11:13]] == ["pre:11", "model:0"]
