# SPDX-License-Identifier: Apache-2.0
"""A run of thousands of ranks, each with a file of its own: JSON has the first rows of its lists
and sums by node, and says how many rows there are."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from weir.report import build, report_json
from weir.report.frame import kind
from weir.report.frame.kind import Options
from weir.report.json import write_json
from weir.trace._synthetic import TraceWriter, event, mpi
from weir.trace.ops import mpi_routines

MOST_ROWS = 40  # instead of thousands
RANKS, NODES = MOST_ROWS + 20, 2


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch):
    monkeypatch.setattr(kind, "MOST_ROWS", MOST_ROWS)


def _barrier(process, ticks):
    routine = next(value for value, name in mpi_routines().items() if name == "MPI_Barrier")
    return mpi("MPI_collective", [ticks], [500], routine, file=process.name(f"mpi:world:{RANKS}"),
        offset=[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ranks") / "run" / "s"
    directory.mkdir(parents=True)
    for node in range(NODES):
        with TraceWriter(directory / f"n{node}.weir", f"n{node}") as writer:
            for rank in range(node, RANKS, NODES):
                process = writer.process(10 + rank, rank, RANKS)
                own, common = (process.name(f"/scratch/{name}") for name in (f"r{rank}", "all"))
                process.events([
                    event("write", writer.created_ticks, 1 + rank, file=own, size=2, offset=0),
                    event("read", writer.created_ticks + 9000, 5, file=common, size=1, offset=0),
                ])  # fmt: skip
                process.events(_barrier(process, writer.created_ticks + 10**4), thread=2)
    return directory.parent


def text_of(run, options=Options()) -> str:
    """As --json prints it."""
    stream = io.StringIO()
    write_json(report_json(build(run), options), stream)
    return stream.getvalue()


def test_lists_have_their_first_rows_and_say_how_many_there_are(run):
    text, whole_text = text_of(run), text_of(run, Options(top=0))
    assert len(whole_text.splitlines()) - len(text.splitlines()) > 4 * (RANKS - MOST_ROWS)
    printed = json.loads(text)
    [step] = printed["steps"]
    lists = {"files": printed["files"], "patterns": printed["patterns"],
        "steps.by_rank": step["by_rank"], "processes": printed["processes"]}
    assert {len(one) for one in lists.values()} == {MOST_ROWS}
    whole = {"files": RANKS + 1, "patterns": RANKS + 1, "steps.by_rank": RANKS, "processes": RANKS}
    assert {key: printed["rows"][key] for key in whole} == whole
    every = json.loads(whole_text)
    assert every["rows"] == {}
    assert {key: len(every[key]) for key in ("files", "patterns", "processes")} == {
        key: whole[key] for key in ("files", "patterns", "processes")
    }
    assert every["total"] == printed["total"] and every["total"]["calls"] == 2 * RANKS
    assert every["files"][:MOST_ROWS] == printed["files"]
    assert every["patterns"][:MOST_ROWS] == printed["patterns"]


def test_ranks_are_summed_by_node(run):
    [step] = report_json(build(run))["steps"]
    nodes = step["by_node"]
    half = RANKS // 2
    assert [(one["node"], one["ranks"]) for one in nodes] == [("n0", half), ("n1", half)]
    for key in ("calls", "bytes"):
        assert sum(one[key] for one in nodes) == step["all"][key]
    for number, one in enumerate(nodes):
        times = [1 + rank + 5 for rank in range(number, RANKS, NODES)]
        assert one["seconds"] == sum(times) / 1e9
        middle = times[len(times) // 2] / 1e9
        assert one["rank_seconds"] == {
            "least": times[0] / 1e9, "median": middle, "most": times[-1] / 1e9
        }


def test_patterns_of_a_file_of_all_ranks(run):
    rows = report_json(build(run), Options(top=0))["patterns"]
    [common] = [row for row in rows if row["file"] == "/scratch/all"]
    assert (common["ranks"], common["calls"], common["interleaved"]) == (RANKS, RANKS, RANKS)
    assert (common["fastest_rank"], common["slowest_rank"], common["deviation_s"]) == (0, 0, 0)
    assert sum(row["interleaved"] for row in rows) == RANKS


def test_patterns_of_files_that_belong_together(run):
    from weir.report.patterns.compute import patterns_of
    from weir.report.patterns.groups import group_table

    report = build(run)
    rows = patterns_of(report)
    table = group_table(report, rows, None)
    [line] = table.rows
    assert line[:3] == (str(RANKS), f"{2 * RANKS / 1e6:.3f}", str(RANKS))
    assert line[-2] == "w" and line[-1].endswith("r<N>")
    [name] = rows.columns("name")
    alone = [report.names[one].endswith("all") for one in name.tolist()]
    assert group_table(report, rows.chosen(np.array(alone)), None) is None


def test_the_flow_of_many_ranks_and_files_is_made_when_it_is_named(run, monkeypatch):
    from weir.report.flow import table
    from weir.report.html.tables import table_section

    report = build(run)
    assert report_json(report)["flow"] is not None
    monkeypatch.setattr(table, "QUICK_ROWS", RANKS)
    assert report_json(report)["flow"] is None
    assert report_json(report, Options(("flow",)))["flow"] is not None
    section = table_section(report, table.FLOW)
    assert section is not None and f"weir report {report.path} --tables flow" in section.body


def test_rows_that_json_leaves_out_are_not_made(run, monkeypatch):
    from weir.report.frame.declared import Listing

    made = []
    plain = Listing.json

    def counted(self, rows):
        found = plain(self, rows)
        made.append((self.name, len(found)))
        return found

    monkeypatch.setattr(Listing, "json", counted)
    report_json(build(run), Options(("processes", "ranks", "wall")))
    assert {name for name, _ in made} >= {"processes", "ranks", "wall_time_by_rank"}
    assert max(rows for _, rows in made) == MOST_ROWS


def test_records_of_mpi_are_read_file_by_file(run, monkeypatch):
    """Not rank by rank."""
    from weir.report.waits import records
    from weir.report.waits.summary import BEGIN, RECORDS

    calls = []
    plain = records.next_events
    monkeypatch.setattr(records, "next_events",
        lambda *arguments: calls.append(arguments) or plain(*arguments))
    [step] = build(run).steps
    found = records.records_of(step.data, step.names, BEGIN, *RECORDS)
    assert len(found) == RANKS and (found.member == range(RANKS)).all()
    assert len(calls) == NODES
