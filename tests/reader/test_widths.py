# SPDX-License-Identifier: Apache-2.0
"""What `weir report` and `weir compare` print fits 80 columns: every table and note of the golden
runs, of a run with large figures and long paths, and any table at all."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from golden_trace import GoldenTrace
from weir_pages import write_step

from weir.compare.table import compare, render_comparison
from weir.report import build, render_text
from weir.report.frame.kind import Options
from weir.report.frame.table import Table, text_lines
from weir.report.registry import KINDS

WIDTH = 80
FILES = sorted((Path(__file__).parent / "golden").glob("*.txt"))
LONG = "/scratch/an/experiment-with-a-long-name/output/of/the/atmosphere/files/of_{number}.nc"


def written(path, run):
    trace = GoldenTrace(run)
    for line in path.read_text().split("\n? ")[0].splitlines():
        if line.strip() and not line.startswith("#"):
            trace.line(line)
    trace.close()
    return run


def large_run(run):
    for at in range(3):
        write_step(run / f"step-with-a-name-{at}", at, [LONG.format(number=n) for n in range(50)],
            calls=900)
    return run


@pytest.fixture(scope="module", params=[*FILES, None], ids=lambda path: path.stem if path
    else "large")
def run(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("widths") / "run"
    return large_run(directory) if request.param is None else written(request.param, directory)


def too_long(text: str) -> list[str]:
    """Lines beyond the width, but for those of one word that has no blank to break it at."""
    lines = [line for line in text.splitlines() if len(line) > WIDTH]
    return [line for line in lines if len(max(line.split(), key=len)) < WIDTH - 2]


@pytest.mark.parametrize("everything", [False, True])
def test_every_table_fits(run, everything):
    report = build(run, all=everything)
    for tables in ((), *((kind.name,) for kind in KINDS)):
        text = io.StringIO()
        render_text(report, text, Options(tables, top=0))
        assert not too_long(text.getvalue()), tables


def test_a_comparison_fits(run):
    text, report = io.StringIO(), build(run)
    render_comparison(compare(report, report), text)
    assert not too_long(text.getvalue())


@pytest.mark.parametrize("seed", range(50))
def test_any_table_fits_and_loses_no_figure(seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 25)
    columns = tuple(("<" if chance.random() < 0.2 else "") + f"head{at}" for at in range(count))
    rows = tuple(
        tuple(str(chance.randrange(10 ** chance.randrange(1, 14))) for _ in columns)
        for _ in range(4)
    )
    rows = tuple(
        tuple(f"/a/{cell * 12}" if head[0] == "<" else cell for head, cell in zip(columns, row))
        for row in rows
    )
    groups, left = [], count
    while left:
        groups.append((chance.choice(("", "group", "a group")), chance.randrange(1, left + 1)))
        left -= groups[-1][1]
    table = Table("title " * 30, columns, rows, tuple(groups) if seed % 2 else (), rows[:1],
        ("remark " * 30,))
    lines = list(text_lines(table, WIDTH))
    left_columns = sum(head[0] == "<" for head in columns)
    if left_columns * 8 < WIDTH // 2:
        assert max(map(len, lines)) <= WIDTH
    words = " ".join(lines).split()
    for at, head in enumerate(columns):
        assert head.lstrip("<") in words
        if head[0] != "<":
            assert all(row[at] in words for row in rows)


def test_each_part_of_a_table_of_variables_has_the_variable_and_the_file():
    names = [("yspecies", f"/scratch/run/pressure_wave_test.{n}.field.nc") for n in range(3)]
    rows = tuple((name, "pnetcdf", *["123.456"] * 7, file) for name, file in names)
    columns = ("<Variable", "<library", *(f"figure{n}" for n in range(7)), "<File")
    table = Table("Variables", columns, rows, keys=("<Variable",))
    parts = "\n".join(text_lines(table, 80)).split("\n\n")
    assert len(parts) > 1
    for part in parts:
        lines = part.splitlines()[-3:]
        assert [line.split()[0] for line in lines] == ["yspecies"] * 3
        assert [line[-10:] for line in lines] == [f"{n}.field.nc" for n in range(3)]
