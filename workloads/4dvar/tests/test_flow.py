# SPDX-License-Identifier: Apache-2.0
"""The workload's data flow as weir reports it, and the comparison of two numbers of ranks: names,
figures, agreement with the tables."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.mpi
STEPS = ("traj0", "min0", "traj1", "min1", "traj2")
# Line of the matrix: who reads and who writes in each step, in the reference's words
# (workloads/4dvar/README.md).
MATRIX = {
    "ICMSHweirINIT": ("0-", "0-", "0-", "0-", "0-"),
    "ICMGGweirINIUA": ("0-", "", "0-", "", "0-"),
    "specwavein": ("0-", "", "0-", "", "0-"),
    "wavelet.cv": ("", "0-", "", "0-", ""),
    "traj00": ("", "-0", "", "0-", ""),
    "traj01": ("", "", "", "-0", "0-"),
    "ME<N>": ("", "-sev", "", "sev-sev", ""),
    "TRAJHR00/trajspecL<N>": ("-all", "all-", "", "", ""),
    "TRAJHR01/trajspecL<N>": ("", "", "-all", "all-", ""),
    "TRAJHR00/trajgridL<N>": ("-all", "all-", "", "", ""),
    "TRAJHR01/trajgridL<N>": ("", "", "-all", "all-", ""),
}
CARRIED = {"traj00", "traj01", *(name for name in MATRIX if name.startswith("TRAJHR"))}


@pytest.fixture(scope="module")
def figures(traced_run, weir):
    return json.loads(weir("report", traced_run(4), "--json", "--tables", "graph").ok().stdout)


@pytest.fixture(scope="module")
def rows(figures, traced_run):
    """Lines of the matrix by their pattern below the workload's directory, which is not the one
    that the steps were started in."""
    work = f"{traced_run(4).parent / 'work'}/"
    return {row["pattern"].removeprefix(work): row for row in figures["flow"]["rows"]}


@pytest.mark.parametrize("pattern", MATRIX)
def test_the_matrix_is_that_of_the_reference(rows, pattern):
    used = {use["step"]: f"{use['readers']}-{use['writers']}" for use in rows[pattern]["uses"]
        if use["direction"]}
    assert tuple(used.get(step, "") for step in STEPS) == MATRIX[pattern]


def test_patterns_tell_how_many_and_how_far(rows):
    for row in rows.values():
        assert (len(row["files"]) == 1) == ("<" not in row["pattern"] and "*" not in row["pattern"])
    levels = rows["TRAJHR00/trajspecL<N>"]
    assert levels["numbers"] == [{"letter": "N", "least": "001",
        "most": f"{len(levels['files']):03}", "count": len(levels["files"])}]
    assert "ECMA.*/<N>/*" in rows and len(rows["ECMA.*/<N>/*"]["files"]) > 10


def test_what_is_only_carried(figures, rows):
    assert CARRIED <= {name for name, row in rows.items() if row["role"] == "carried"}
    passage = rows["TRAJHR00/trajgridL<N>"]["passages"]
    assert [(one["from"], one["to"], one["writers"], one["readers"]) for one in passage] == [
        ("traj0", "min0", "0-3", "0-3")]
    assert passage[0]["bytes"] == rows["TRAJHR00/trajgridL<N>"]["bytes_read"]
    carried = figures["flow"]["carried"]
    mine = [figures["flow"]["rows"][index] for index in carried["rows"]]
    for key in ("bytes_read", "bytes_written"):
        assert carried[key] == sum(row[key] for row in mine)
    files = {file for row in mine for file in row["files"]}
    critical = sum(file["critical_s"] for step in figures["waits"] for file in step["files"]
        if file["file"] in files)
    assert figures["waits"] and carried["critical_s"] == pytest.approx(critical)


def test_bytes_and_seconds_are_those_of_the_table_of_files(figures):
    listed = {file["file"]: file for file in figures["files"]}
    renamed = {name for file in figures["files"] for name in (file["also"])} - set(listed)
    for row in figures["flow"]["rows"]:
        mine = [listed.pop(name) for name in (*row["files"], *row["also"]) if name not in renamed]
        assert row["bytes_read"] == sum(file["bytes_read"] for file in mine)
        assert row["bytes_written"] == sum(file["bytes_written"] for file in mine)
        assert row["seconds"] == pytest.approx(sum(file["seconds"] for file in mine))
    assert all(file["bytes_read"] == file["bytes_written"] == 0 for file in listed.values())


def test_edges_carry_every_byte_that_is_read(figures):
    edges = figures["graph"]["edges"]
    assert sum(one["bytes"] for one in edges) == sum(row["bytes_read"]
        for row in figures["flow"]["rows"])
    own = [one for one in edges if "/trajspecL" in one["file"] and "/TRAJHR00/" in one["file"]]
    assert own and all(len(one["from"]) == len(one["to"]) == 1 for one in own)
    assert all(one["from"][0].startswith("traj0:") and one["to"][0]["id"].startswith("min0:")
        for one in own)


def test_two_and_four_ranks_compared(traced_run, weir):
    runs = [traced_run(ranks) for ranks in (2, 4)]
    done = weir("compare", *runs, "--json", "--fail-if", "*:bytes/rank>1.0")
    made = json.loads(done.stdout)
    assert done.returncode == 0, "each of 4 ranks moves less than each of 2"
    assert [(one["name"], one["a"]["ranks"], one["b"]["ranks"]) for one in made["steps"]] == [(step,
        2, 4) for step in STEPS]
    for side, run in zip("ab", runs):
        report = json.loads(weir("report", run, "--json").ok().stdout)
        for step, pair in zip(report["steps"], made["steps"]):
            for figure, value in (("wall", step["wall_s"]), ("active", step["active_s"]),
                    *((key, step["all"][key]) for key in ("seconds", "calls", "bytes", "files"))):
                assert pair["figures"][figure][side] == value
        for figure in ("critical", "path"):
            assert made["total"]["figures"][figure][side] == pytest.approx(sum(step[f"{figure}_s"]
                for step in report["waits"]))
        assert sum(one[side]["calls"] for one in made["files"] if one[side]) == sum(file["calls"]
            for file in report["files"])
    trajectories = next(one for one in made["files"]
        if one["file"].endswith("TRAJHR00/trajspecL<N>"))
    assert trajectories["b"]["files"] == 2 * trajectories["a"]["files"]
    assert weir("compare", *runs, "--fail-if", "traj0:files>1").returncode == 1
