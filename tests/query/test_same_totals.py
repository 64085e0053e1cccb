# SPDX-License-Identifier: Apache-2.0
"""One run has the same totals in every table, with and without the files that are left out."""

from __future__ import annotations

import io
import json

import pytest
from query_runs import write_run

import weir
from weir.analysis.exclusion import exclusion_of
from weir.export import export_totals
from weir.report import build, report_json, trace_lines
from weir.report.timeline.compute import sums, timeline
from weir.report.timeline.page import span_of
from weir.watch.watch import Watch

pytest.importorskip("pyarrow", reason="needs the test extra, on Python 3.11 or newer")

RUN = """
step a wall=2
node n1
process pid=10 rank=0 ranks=2
open /data/a at=1000 for=10
write /data/a at=2000 for=100 bytes=4096 offset=0
write /data/a at=3000 for=200 bytes=100 offset=4096
close /data/a at=5000 for=5
open /usr/share/misc/pci.ids at=5100 for=10
read /usr/share/misc/pci.ids at=5200 for=30 bytes=777 offset=0
fread /sw/lib/python3.11/abc.py at=5300 for=40 bytes=55
write pipe:[7] at=8000 for=7 bytes=9
process pid=11 rank=1 ranks=2
read /data//a at=1500 for=400 bytes=4096 offset=0
read /etc/hosts at=2500 for=20 bytes=11 offset=0
stat /opt/model/table at=2600 for=8
node n2
process pid=10 command=mpirun rank=-1 exe=/usr/bin/mpirun
read /etc/hosts at=100 for=10 bytes=50
read pipe:[9] at=200 for=13 bytes=70 x=3
write /data/log at=300 for=17 bytes=80
process pid=13 rank=1 ranks=2
write /dev/shm/vader_segment.n.0.1 at=400 for=19 bytes=90
process pid=12 command=cp rank=-1 exe=/bin/cp
read /data/b at=9000 for=60 bytes=1000
read /usr/bin/x at=9100 for=60 bytes=33
"""
LISTS = {"default": (None, None), "without": ("none", ""), "more": ("*/b", "/etc")}
COUNTED = {  # calls, bytes, ns, files
    "default": (6, 4096 + 100 + 4096 + 1000, 775, 2),
    "without": (12, 9292 + 777 + 55 + 11 + 33, 775 + 168, 6),
    "more": (6, 4096 + 100 + 4096 + 11, 735, 2),
}


@pytest.fixture(params=LISTS)
def which(request):
    return request.param


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", RUN)


def figures(rows) -> tuple[int, ...]:
    """Calls, bytes and ns of rows of JSON."""
    return (
        sum(one["calls"] for one in rows),
        sum(one["bytes"] if "bytes" in one else one["bytes_read"] + one["bytes_written"]
            for one in rows),
        round(sum(one["seconds"] for one in rows) * 1e9),
    )


def test_every_table_has_the_same_totals(run, which):
    made = build(run, exclusion=exclusion_of(*LISTS[which], environ={}))
    printed = report_json(made)
    whole = printed["total"]
    *wanted, files = COUNTED[which]
    assert [*figures([whole]), whole["files"]] == [*wanted, files]
    step = printed["steps"][0]
    for rows in (
        [step["all"]], step["by_rank"], [step["routines"]["all"]["total"]],
        step["routines"]["all"]["rows"],
        printed["files"],
    ):  # fmt: skip
        assert list(figures(rows)) == wanted, rows
    moved = printed["requests"]["sizes"]
    assert sum(one["reads"] + one["writes"] for one in moved) == sum(
        one["ops"][op]["calls"] for one in printed["files"] for op in ("read", "write", "fread")
        if op in one["ops"]
    )
    lines = [line for line in trace_lines(made) if "offset=" in line or "bytes=" in line]
    assert sum(int(line.split("bytes=")[1].split()[0]) for line in lines) == wanted[1]
    busy = sums(timeline([span_of(one) for one in made.steps]).by_lane)
    assert (busy["calls"].sum(), busy["bytes"].sum(), busy["busy_ns"].sum()) == tuple(wanted)


def test_sql_and_the_python_api_have_them_too(run, which):
    *wanted, files = COUNTED[which]
    exclude, include = LISTS[which]
    with weir.open(run, exclude=exclude, include=include) as opened:
        def row(text):
            return [int(value) for value in opened.sql(text).to_pylist()[0].values()]

        assert row("SELECT sum(calls), sum(bytes), sum(ns) FROM io") == wanted
        assert row("SELECT sum(calls), sum(bytes_read + bytes_written), sum(ns) FROM "
                   "files") == wanted
        assert row("SELECT sum(calls), sum(bytes), sum(ns), sum(files) FROM steps") == [*wanted,
            files]
        counted = "is_file AND NOT excluded AND NOT launcher AND class <> 'none'"
        moved = "CASE WHEN class IN ('read', 'write') THEN bytes ELSE 0 END"
        for table, calls, ns in (("totals", "sum(calls)", "sum(ns)"),
                ("events", "count(*)", "sum(duration_ns)")):
            assert row(f"SELECT {calls}, sum({moved}), {ns} FROM {table} WHERE {counted}") == wanted
        # one was only looked at
        assert len(opened.files.to_arrow()) == files + (which == "without")
        excluded = [one["name"] for one in opened.names.to_arrow().to_pylist() if one["excluded"]]
        assert ("/usr/share/misc/pci.ids" in excluded) == (which != "without")


def test_watch_and_export_have_them_too(run, which, monkeypatch):
    *wanted, _ = COUNTED[which]
    exclusion = exclusion_of(*LISTS[which], environ={})
    look = Watch(run, exclusion).look()
    assert [look.so_far.calls, look.so_far.bytes, look.so_far.ns] == wanted
    stream, made = io.StringIO(), build(run, exclusion=exclusion)
    export_totals(made, stream)
    lines = [line.split("\t") for line in stream.getvalue().splitlines() if "_BYTES_" in line]
    moved = sum(int(one[4]) for one in lines if one[3].endswith(("BYTES_READ", "BYTES_WRITTEN")))
    of_others = sum(one.bytes for rank, one in made.steps[0].by_rank.items() if rank < 0)
    assert moved == wanted[1] - of_others


PARTS = ("total", "not_files", "launchers", "mpi_segments", "excluded")


@pytest.mark.parametrize("rank", [None, 0, 1, -1])
def test_what_is_counted_and_what_is_left_out_is_what_all_counts(run, which, rank):
    exclusion = exclusion_of(*LISTS[which], environ={})
    printed = report_json(build(run, exclusion=exclusion, rank=rank))
    whole = report_json(build(run, all=True, rank=rank))
    every = figures([whole["total"]])
    assert figures([printed[key] for key in PARTS]) == every
    for rows in ([whole["steps"][0]["all"]], whole["steps"][0]["by_rank"], whole["files"],
            whole["steps"][0]["routines"]["all"]["rows"]):  # fmt: skip
        assert figures(rows) == every
    notes = [note for note in printed["notes"] if note.startswith("left out: ")]
    said = [note.split(": ")[1].split(" of ")[0].replace(" and", ",").split(", ") for note in notes]
    left = every[0] - printed["total"]["calls"]
    assert sum(int(one[0].split()[0]) for one in said) == left


def test_files_that_the_user_excludes_are_no_system_files(run):
    exclusion = exclusion_of("/data/a", "", environ={})
    notes = report_json(build(run, exclusion=exclusion))["notes"]
    [asked] = [note for note in notes if "--exclude" in note]
    assert asked.startswith("left out: 5 calls, 0.008 MB and 0.000 s of 1 file named by --exclude")
    assert "(/data/a)" in asked
    [system] = [note for note in notes if "system files" in note]
    assert "of 5 system files (/usr/, " in system and "/data/a" not in system


def test_what_is_left_out_and_what_is_counted_is_all_that_processes_did(run, which):
    exclusion = exclusion_of(*LISTS[which], environ={})
    printed = report_json(build(run, exclusion=exclusion))
    parts = [printed[key] for key in PARTS]
    with weir.open(run) as opened:
        [every] = opened.sql("SELECT sum(calls)::BIGINT AS calls FROM processes").to_pylist()
        [moved] = opened.sql(
            "SELECT sum(bytes)::BIGINT AS bytes FROM totals WHERE class IN ('read', 'write')"
        ).to_pylist()
    assert sum(one["calls"] for one in parts) == every["calls"] == 19
    assert sum(one["bytes"] for one in parts) == moved["bytes"]


def test_a_note_counts_them_and_all_includes_them(run, weir):
    printed = weir("report", run, "--tables", "files").ok().stdout
    printed = " ".join(printed.split())
    assert "- 6 calls, 0.001 MB and 0.000 s of 5 system files (/usr/, " in printed
    assert "pci.ids" not in printed
    included = weir("report", run, "--tables", "files", "--include", "/usr/share").ok().stdout
    assert "/usr/share/misc/pci.ids" in included and "of 4 system files" in included
    everything = weir("report", run, "--tables", "files", "--all").ok().stdout
    assert "/usr/share/misc/pci.ids" in everything and "left out" not in everything


def test_the_environment_chooses_them(run, weir):
    env = {"WEIR_EXCLUDE": "none,/data/a"}
    printed = json.loads(weir("report", run, "--json", env=env).ok().stdout)
    assert {"/data/b", "/etc/hosts"} <= {one["file"] for one in printed["files"]}
    assert printed["excluded"] == {"files": 1, "calls": 5, "bytes": 8292, "seconds": 7.15e-07,
        "words": {"/data/a": 5}}
    found = weir("query", run, "SELECT file FROM files ORDER BY 1", "--format", "csv", env=env).ok()
    assert "/data/a" not in found.stdout and "/etc/hosts" in found.stdout
