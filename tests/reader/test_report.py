# SPDX-License-Identifier: Apache-2.0
"""What holds for every report: its tables and its JSON agree with one another and with a plain
count of the records."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from own_time import is_own
from weir.report import build, report_json
from weir.report.files.compute import files_of
from weir.report.frame.kind import Options
from weir.report.processes.compute import is_complete
from weir.report.routines.compute import details_of, routines_of
from weir.trace import RunNotFound
from weir.trace._synthetic import TraceWriter, event
from weir.trace.ops import BELOW, NESTED, ops

OPS = ("open", "read", "pwrite", "close", "fread", "fwrite", "stat", "fsync", "mmap", "fopen",
    "fortran_write", "fortran_read", "MPI_Init")
NAMES = ("/scratch/an/a", "/scratch/an//./b", "/scratch/an/b", "pipe:[1]", "/dev/tty", "/dev/shm/c",
    "(relative)")
record = st.fixed_dictionaries(
    {
        "op": st.sampled_from(OPS),
        "file": st.integers(0, len(NAMES)),
        "duration": st.integers(0, 5000) | st.just(2**33),
        "size": st.integers(0, 10_000) | st.just(2**40),
        "flags": st.sampled_from([0, 0, 0, BELOW, NESTED, BELOW | NESTED, 1]),
        "rank": st.integers(-1, 2),
        "step": st.integers(0, 1),
    }
)


def write_run(run: Path, made: list[dict]) -> None:
    for step in {one["step"] for one in made} | {0}:
        directory = run / f"s{step}"
        directory.mkdir(parents=True)
        with TraceWriter(directory / "n.weir", created_realtime_ns=10**18 + step
                * 10**15) as writer:
            ranks = {rank: writer.process(100 + rank, rank, 3) for rank in (-1, 0, 1, 2)}
            for process in ranks.values():
                for name in NAMES:
                    process.name(name)
            at = writer.created_ticks
            for one in made:
                if one["step"] == step:
                    error = 5 if one["flags"] & 1 else 0
                    fields = {key: one[key] for key in ("file", "size", "flags")}
                    ranks[one["rank"]].events(event(one["op"], at, one["duration"], error=error,
                        **fields))
                    at += one["duration"] + 10


def is_file(one: dict) -> bool:
    return one["file"] == 0 or NAMES[one["file"] - 1].startswith(("/scratch", "/dev/shm/"))


def counted(made: list[dict]) -> dict:
    """Calls, bytes, ns and files by the definitions in docs/reference/tables.md, one record after
    the other."""
    sums = {"calls": 0, "bytes": 0, "ns": 0, "files": set()}
    known = {op.name: op for op in ops().values() if op.value < 250}
    for one in made:
        op = known[one["op"]]
        if op.op_class == "X" or not is_file(one):
            continue
        ns = one["duration"] // 4096 * 4096 if one["duration"] >= 2**32 else one["duration"]
        sums["calls"] += not one["flags"] & BELOW
        sums["ns"] += ns if is_own(one["op"], one["flags"]) else 0
        sums["bytes"] += one["size"] if op.op_class in "RW" and op.layer in (1,
            2) and not one["flags"] & 1 else 0
        if op.op_class in "ORW" and one["file"]:
            sums["files"].add(NAMES[one["file"] - 1].replace("//./", "/"))
    return {**sums, "files": len(sums["files"])}


def check(totals, made: list[dict]) -> None:
    assert {"calls": totals.calls, "bytes": totals.bytes, "ns": totals.ns,
        "files": totals.files} == counted(made)


@settings(max_examples=60)
@given(st.lists(record, max_size=60))
def test_every_table_adds_up_to_the_records(made):
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), made)
        report = build(directory)
        check(report.all, made)
        check(report.rank0, [one for one in made if one["rank"] == 0])
        for number, step in enumerate(report.steps):
            mine = [one for one in made if one["step"] == int(step.name[1])]
            check(step.all, mine)
            for rank, totals in step.by_rank.items():
                check(totals, [one for one in mine if one["rank"] == report.names.ranks[rank].rank])
            table = routines_of(step)
            assert (table.total.calls, table.total.bytes, table.total.ns) == (step.all.calls,
                step.all.bytes, step.all.ns)
        named = [one for one in made if one["file"]]
        wanted = counted(named)
        assert sum(f.calls for f in files_of(report)) == wanted["calls"]
        assert sum(f.bytes for f in files_of(report)) == wanted["bytes"]
        assert sum(f.ns for f in files_of(report)) == wanted["ns"]
        for file in files_of(report):
            assert file.calls == sum(op.calls - op.below for op in file.ops)
        details = [one for step in report.steps for one in details_of(step, )]
        assert sum(one.table.total.bytes for one in details) == wanted["bytes"]
        assert sum(one.table.total.calls for one in details) == wanted["calls"]
        text = json.dumps(report_json(report))
        assert json.loads(text)["total"]["bytes"] == report.all.bytes
        everything = build(directory, all=True).all
        left_out = [step.left_out()[0] for step in report.steps]
        assert everything.calls == report.all.calls + sum(one.calls for one in left_out)
        assert everything.bytes == report.all.bytes + sum(one.bytes for one in left_out)


@pytest.fixture
def run(tmp_path) -> Path:
    with_everything = [
        {"op": op, "file": 1 + i % 3, "duration": 1000, "size": 10, "flags": 0, "rank": i % 3,
            "step": i % 2} for i, op in enumerate(OPS * 3)
    ]
    write_run(tmp_path / "run", with_everything)
    return tmp_path / "run"


def test_json_has_the_keys_that_users_rely_on(run):
    made = report_json(build(run))
    half = {"calls", "bytes", "seconds", "files"}
    assert {"steps", "total", "files", "lost_events", "complete", "problems", "not_files",
        "launchers", "fortran_units", "processes"} <= set(made)
    for step in made["steps"]:
        assert {"name", "wall_s", "rank0", "all", "active_s", "lost_events", "complete", "ranks",
            "nodes", "processes"} <= set(step)
        assert set(step["rank0"]) == set(step["all"]) == half
    assert {"wall_s", "rank0", "all", "active_s"} | half <= set(made["total"])
    for file in made["files"]:
        assert {"file", "calls", "bytes_read", "bytes_written", "seconds", "ops"} <= set(file)
        for op in file["ops"].values():
            assert {"calls", "bytes", "seconds"} <= set(op)
    assert (made["lost_events"], made["complete"]) == (0, True)
    assert {"pid", "rank", "command", "kernel_bytes_read",
        "seen_bytes_read"} <= set(made["processes"][0])


def test_one_step_and_one_rank(run):
    whole = build(run)
    assert [step.name for step in whole.steps] == ["s0", "s1"]
    assert [step.name for step in build(run, step="s1").steps] == ["s1"]
    assert [step.name for step in build(run / "s1").steps] == ["s1"]
    parts = [build(run, rank=rank).all for rank in (-1, 0, 1, 2)]
    assert sum(part.calls for part in parts) == whole.all.calls
    assert build(run, rank=1).rank0.calls == 0


@pytest.mark.parametrize("options", [{"step": "s7"}, {"rank": 9}])
def test_what_is_not_there_is_said(run, options):
    with pytest.raises(RunNotFound, match="no (step|rank)"):
        build(run, **options)


def test_a_directory_without_steps_is_no_run(tmp_path):
    (tmp_path / "some").mkdir()
    with pytest.raises(RunNotFound, match="no steps in it"):
        build(tmp_path)


def test_a_step_without_a_trace_is_incomplete(tmp_path):
    (tmp_path / "s0").mkdir()
    (tmp_path / "s0" / "job.json").write_text(json
        .dumps({"format": 1, "level": "trace", "started_realtime_ns": 5, "ended_realtime_ns": 7}))
    report = build(tmp_path)
    assert (is_complete(report), report.wall_ns, report.all.calls) == (False, 2, 0)
    assert "no trace file" in report_json(report)["notes"][1]


@pytest.mark.parametrize("by", ["time", "mb", "rate", "calls", "file"])
def test_files_are_sorted_by_each_key(run, by):
    files = report_json(build(run), Options(by=by))["files"]
    key = {
        "time": lambda f: -f["seconds"],
        "mb": lambda f: -f["bytes_read"] - f["bytes_written"],
        "rate": lambda f: -(f["bytes_read"] + f["bytes_written"]) / f["seconds"],
        "calls": lambda f: -f["calls"],
        "file": lambda f: f["file"],
    }[by]
    assert files == sorted(files, key=key)
    assert len(report_json(build(run), Options(by=by, top=1))["files"]) == 1
