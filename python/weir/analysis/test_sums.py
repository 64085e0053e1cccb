# SPDX-License-Identifier: Apache-2.0
"""Rows that are added up while trace files are scanned: what is kept grows with ranks and files,
and not with their product; nothing that is read again differs from what was there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weir.analysis import step as steps
from weir.analysis.columns import INTEGERS, merged
from weir.analysis.sums import OTHERS, bytes_of
from weir.report import build, report_json
from weir.report.frame.kind import Options
from weir.report.patterns.compute import accesses_of
from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter, records, sync
from weir.trace.ops import op_named

RANKS_A_NODE = 8
OPS = ("open", "pread", "pwrite")


def write_run(run: Path, ranks: int, files: int) -> Path:
    """Each rank opens, reads and writes a file of its own, and all common files."""
    directory = run / "main"
    directory.mkdir(parents=True)
    for node in range(-(-ranks // RANKS_A_NODE)):
        with TraceWriter(directory / f"n{node}.weir", f"node{node}") as writer:
            for rank in range(node * RANKS_A_NODE, min((node + 1) * RANKS_A_NODE, ranks)):
                process, at = writer.process(100 + rank, rank, ranks), writer.created_ticks
                names = [process.name(f"/scratch/own.{rank}")]
                names += [process.name(f"/scratch/common.{number}") for number in range(files)]
                ops = [op_named(one).value for one in OPS] * len(names)
                process.events(records(ops, at + 1000 * np.arange(len(ops)), 10 + rank,
                    file=np.repeat(names, len(OPS)), size=8, offset=8 * np.arange(len(ops))))
    return run


def kept(run: Path) -> tuple[int, int, int]:
    """Rows by file, by process, and of the spread of ranks."""
    report = build(run)
    [step], [found] = report.steps, accesses_of(report)
    return len(step.data.sums.by_file), len(step.data.sums.by_member), found.ranks.kept_rows


def test_rows_that_are_kept_grow_with_ranks_and_files_and_not_with_their_product(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(steps, "KEPT_ROWS", 0)
    made = {}
    for ranks, files in ((16, 50), (64, 50), (16, 200)):
        run = write_run(tmp_path / f"{ranks}-{files}", ranks, files)
        made[ranks, files] = kept(run)
        by_file, by_member, of_ranks = made[ranks, files]
        # rank 0 has rows of its own
        assert by_file == len(OPS) * (ranks + files + files)
        assert by_member == len(OPS) * ranks
        assert of_ranks <= 6 * (ranks + files)  # two directions, and what waits to be combined
    more_ranks = made[64, 50][0] - made[16, 50][0]
    assert more_ranks == len(OPS) * 48
    data = build(run).steps[0].data
    assert all(len(file.array(name)) == 0 for file in data.files for name in ("rows", "histograms"))
    assert bytes_of(data.sums.by_file) < 80 * made[16, 200][0]


def test_sums_are_those_of_the_rows(tmp_path):
    [step] = build(write_run(tmp_path, 16, 5)).steps
    sums, rows = step.data.sums, step.data.columns
    for keys, found in ((("name", "op"), sums.by_file), (("member", "op"), sums.by_member)):
        wanted, got = merged(rows, *keys), merged(found, *keys)
        for key in (*keys, *INTEGERS, "first_ns", "last_ns"):
            assert getattr(wanted, key).tolist() == getattr(got, key).tolist(), key
    assert set(np.unique(sums.by_file.rank).tolist()) == {0, OTHERS}
    assert sums.files_of == dict.fromkeys(range(16), 6)
    assert step.rows == len(step.columns) == len(OPS) * 16 * 6


@pytest.mark.parametrize("rank", [None, 9])
def test_a_report_is_the_same_whether_rows_are_kept_or_read_again(tmp_path, monkeypatch, rank):
    run = write_run(tmp_path, 16, 5)
    whole = report_json(build(run, rank=rank), Options(top=0))
    monkeypatch.setattr(steps, "KEPT_ROWS", 0)
    assert report_json(build(run, rank=rank), Options(top=0)) == whole


def test_rows_that_were_forgotten_are_read_again_by_process(tmp_path):
    run = write_run(tmp_path, 4, 3)
    file = TraceFile(run / "main" / "n0.weir").scan()
    rows = file.array("rows").copy()
    is_between = (rows["process"] >= 1) & (rows["process"] < 3)
    assert file.rows_of(1, 3).tolist() == rows[is_between].tolist()
    file.forget()
    assert not file.has_rows and not len(file.array("rows"))
    assert file.rows_of(0, 4).tolist() == rows.tolist()
    assert file.rows_of(2, 3).tolist() == rows[rows["process"] == 2].tolist()
    assert not len(file.rows_of(2, 2))


def test_barriers_are_found_before_a_scan_as_by_one(tmp_path):
    with TraceWriter(tmp_path / "n.weir", "n") as writer:
        for rank in (0, 1):
            process, at = writer.process(100 + rank, rank, 2), writer.created_ticks
            process.events([sync(at + 100 * number + rank, number, 2) for number in range(1, 7)])
    before = TraceFile(tmp_path / "n.weir").find_syncs().array("syncs").tolist()
    assert len(before) == 12
    assert TraceFile(tmp_path / "n.weir").scan().array("syncs").tolist() == before
