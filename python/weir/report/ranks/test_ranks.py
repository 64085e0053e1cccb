# SPDX-License-Identifier: Apache-2.0
"""Table ranks, of runs with known calls."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from weir_pages import write_step

from weir.report import build, render_text
from weir.report.frame.kind import Options
from weir.report.ranks.compute import ranks_of
from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

RANKS, NODES = 30, 3


@pytest.fixture
def run(tmp_path):
    """Rank r reads r times 1000 bytes in 1 ms, writes once 500 bytes in 2 ms, and opens a file."""
    for node in range(NODES):
        with TraceWriter(tmp_path / f"n{node}.weir", f"node{node}") as writer:
            for rank in range(node, RANKS, NODES):
                process = writer.process(100 + rank, rank, RANKS)
                file, at = process.name("/scratch/f"), writer.created_ticks
                ops = ["open", "pwrite", *["pread"] * rank]
                process.events(records([op_named(one).value for one in ops],
                    at + 10_000_000 * np.arange(len(ops)),
                    [3_000_000, 2_000_000, *[1_000_000] * rank], file=file,
                    size=[0, 500, *[1000] * rank], offset=0))
    return tmp_path


def text_of(report, **options) -> list[str]:
    stream = io.StringIO()
    render_text(report, stream, Options(("ranks",), **options))
    return stream.getvalue().splitlines()


def test_each_rank_has_its_calls_bytes_and_time(run):
    rows = ranks_of(build(run))
    assert [row["rank"].rank for row in rows] == list(range(RANKS))
    for rank, row in enumerate(rows):
        assert row["node"] == f"node{rank % NODES}" and row["files"] == 1
        assert (row["read_calls"], row["write_calls"], row["other_calls"]) == (rank, 1, 1)
        assert (row["read_bytes"], row["write_bytes"], row["other_bytes"]) == (1000 * rank, 500, 0)
        assert row["read_ns"] == pytest.approx(rank * 1e6, abs=rank)
        assert row["ns"] == row["read_ns"] + row["write_ns"] + row["other_ns"]
        assert row["wall_share"] == pytest.approx(row["ns"] / build(run).wall_ns)


def test_of_many_ranks_the_text_has_the_busiest_and_the_mean_of_all(run):
    report = build(run)
    lines = text_of(report)
    (title,) = (at for at, line in enumerate(lines) if "(20 of 30, those with most" in line)
    assert lines[title].startswith("I/O of each rank (20 of 30") and max(map(len, lines)) <= 80
    assert "Node" in lines[title + 2] and "% wall" in lines[title + 2]
    listed = [line.split() for line in lines[title + 3 : title + 23]]
    assert [int(words[0]) for words in listed] == list(range(29, 9, -1))
    mean = next(line.split() for line in lines if line.strip().startswith("MEAN"))
    assert mean[1:4] == ["14", "1", "1"]  # 14.5 reads, to the even one
    everyone = [line.split() for line in text_of(report, top=0)[title + 3 :]]
    assert [words[0] for words in everyone[:30]] == [str(rank) for rank in range(RANKS)]


def test_the_sums_are_those_of_the_steps(weir, tmp_path):
    for at, name in enumerate(("traj0", "min0")):
        write_step(tmp_path / "run" / name, at, ["/scratch/a", "/scratch/b"])
    made = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    for step in made["steps"]:
        rows = [row for row in made["ranks"] if row["step"] == step["name"]]
        assert rows[-1]["rank"] == -1 and len(rows) == 7
        kinds = ("read", "write", "other")
        assert sum(row[f"{kind}_calls"] for row in rows for kind in kinds) == step["all"]["calls"]
        assert sum(row[f"{kind}_bytes"] for row in rows for kind in kinds[:2]) == step["all"][
            "bytes"]
        assert sum(row["seconds"] for row in rows) == pytest.approx(step["all"]["seconds"])
