# SPDX-License-Identifier: Apache-2.0
"""Data that is followed through renames and links: against a file system in a few dictionaries, and
on real runs."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from renaming_runs import LINKS, NAMES, one_action, possible, trace, write_run

from weir.report import build
from weir.report.files.compute import files_of
from weir.report.flow.table import flow_json, report_flow


def model(made: list[dict]) -> dict:
    """(step that wrote or None, its writers, step, reader) -> bytes: of each read, the step whose
    writing of the file began last before it."""
    file_of: dict[str, object] = {name: name for name in (*NAMES, *LINKS)}
    target: dict[str, str] = {}
    writings, writers, reads = {}, defaultdict(set), []
    for number, one in enumerate(made):
        old, new = one["old"], one["new"]
        if one["what"] in ("write", "read"):
            name = one["through"] or old
            file = file_of[target.get(name, name)]
            if one["what"] == "write":
                writings.setdefault((file, one["step"]), number)
                writers[file, one["step"]].add(one["rank"])
            else:
                reads.append((file, number, one))
        elif one["what"] == "symlink":
            target[one["through"] or LINKS[0]] = old
        elif one["what"] == "exchange":
            file_of[old], file_of[new] = file_of[new], file_of[old]
        elif file_of[old] != file_of[new]:
            file_of[new] = file_of[old]
            if one["what"] == "rename":
                file_of[old] = object()
    edges: dict = defaultdict(int)
    for file, number, one in reads:
        before = sorted((began, step) for (of, step), began in writings.items() if of == file
            and began < number)
        came = before[-1][1] if before else None
        edges[came, tuple(sorted(writers[file, came])) if before else (), one["step"],
            one["rank"]] += one["size"]
    return edges


@settings(max_examples=100)
@given(st.lists(one_action, max_size=14).map(possible))
def test_edges_are_those_of_a_small_file_system(made):
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), made)
        report = build(directory)
        found = report_flow(report)
        listed = {file.file: (file.bytes_read, file.bytes_written) for file in files_of(report)}
    edges: dict = defaultdict(int)
    for row in found.rows:
        for file in row.files:
            for edge in file.edges:
                edges[edge.from_step, edge.writers, edge.to_step, edge.reader] += edge.bytes
    assert edges == model(made)
    # nothing is lost, nothing counts twice
    for figure, column in (("bytes_read", 0), ("bytes_written", 1)):
        assert sum(row.sum(figure) for row in found.rows) == sum(one[column]
            for one in listed.values())
    assert sum(row.sum("ns") for row in found.rows) == 10 * sum(one["what"] in ("write", "read")
        for one in made)


def rows_of(run: Path) -> dict[str, dict]:
    return {Path(name).name: row for row in flow_json(build(run))["rows"] for name in row["files"]}


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_a_file_that_gets_its_name_when_it_is_whole_is_carried(weir, tmp_path, level):
    run = tmp_path / "run"
    trace(weir, run, "model",
        "echo 12345 > out.tmp; mv out.tmp out.nc; mkdir p.tmp; echo 123 > p.tmp/part; mv p.tmp p",
        level)
    trace(weir, run, "post", "cat out.nc p/part > sum", level)
    rows = rows_of(run)
    assert (rows["out.nc"]["role"], rows["out.nc"]["bytes_written"],
        rows["out.nc"]["bytes_read"]) == ("carried", 6, 6)
    assert (rows["part"]["role"], rows["part"]["bytes_written"],
        rows["part"]["bytes_read"]) == ("carried", 4, 4)
    assert rows["out.nc"]["also"] == [str(tmp_path / "out.tmp")] and rows["sum"]["also"] == []
    assert "out.tmp" not in rows and flow_json(build(run))["renamed"] == []


def test_links_hard_and_symbolic_and_one_that_is_set_anew(weir, tmp_path):
    run = tmp_path / "run"
    trace(weir, run, "first", "echo 1 > one.nc; ln -s one.nc cur; ln one.nc hard; echo 22 > two.nc")
    trace(weir, run, "second", "cat cur hard > s2; ln -sf two.nc cur")
    trace(weir, run, "third", "cat cur > s3")
    rows = rows_of(run)
    assert [(p["from"], p["to"], p["bytes"]) for p in rows["two.nc"]["passages"]] == [("first",
        "third", 3)]
    made = [(p["from"], p["to"], p["bytes"]) for name in ("one.nc", "hard") if name in rows
        for p in rows[name]["passages"]]
    assert made == [("first", "second", 4)]


def test_a_restart_file_that_is_rotated_is_another_one_each_time(weir, tmp_path):
    run = tmp_path / "run"
    trace(weir, run, "c1", "echo 1 > restart.tmp; mv restart.tmp restart")
    trace(weir, run, "c2",
        "cat restart > x2; echo 22 > restart.tmp; mv restart restart.old; mv restart.tmp restart")
    trace(weir, run, "c3", "cat restart > x3; cat restart.old > y3")
    found = report_flow(build(run))
    edges = sorted((edge.from_step, edge.to_step, edge.bytes) for row in found.rows
        for file in row.files for edge in file.edges)
    assert edges == [(0, 1, 2), (0, 2, 2), (1, 2, 3)]


def test_a_way_back_up_leads_to_the_same_file_and_where_a_link_leads(weir, tmp_path):
    run = tmp_path / "run"
    trace(weir, run, "first",
        "mkdir -p a/b; echo 1234 > a/b/../deep; mkdir -p far/d; ln -s far/d way; echo 1 > "
        "way/../else")
    trace(weir, run, "second", "cat a/deep > s; cat far/else > t; cat else > u || true")
    rows = rows_of(run)
    assert rows["deep"]["also"] == [str(tmp_path / "a/b/../deep")]
    assert [(p["from"], p["to"], p["bytes"]) for p in rows["deep"]["passages"]] == [("first",
        "second", 5)]
    assert rows["else"]["files"] == [str(tmp_path / "far/else")]
    assert [(p["from"], p["to"], p["bytes"]) for p in rows["else"]["passages"]] == [("first",
        "second", 2)]


def test_the_table_says_under_which_names_files_were_written(weir, tmp_path):
    run = tmp_path / "run"
    trace(weir, run, "model", "echo 12345 > out.tmp; mv out.tmp out.nc")
    text = weir("report", run, "--tables", "flow,graph").ok().stdout
    assert "out.nc" in text and "1 file was written or read under other names, too" in text
    made = json.loads(weir("report", run, "--tables", "flow", "--json").ok().stdout)
    assert [row["role"] for row in made["flow"]["rows"]] == ["output"]
