# SPDX-License-Identifier: Apache-2.0
"""``weir bench scales`` at a small scale: every method runs, its messages are those of ecCodes, the
profile's figures come from the trace. No time is judged."""

from __future__ import annotations

import json

import pytest

SMALL = ("--scale", "1e-6", "--writing", "1e-6", "--nlat", 8, "--variables", 13, "--repeat", 1,
    "--places", "memory")


@pytest.fixture
def bench(weir, native_build, tmp_path):
    if not list((native_build / "workloads" / "echam").glob("*/weir-echam")):
        pytest.skip("weir-echam is not built: it needs an MPI and libeccodes-dev")

    def run(*options: object, timeout: float = 150):
        return weir("bench", "scales", *options, "--programs", native_build, "--directory",
            tmp_path, timeout=timeout)

    return run


@pytest.mark.mpi
def test_runs_that_are_done_are_not_repeated_and_write_the_same_volume(bench, tmp_path):
    found = tmp_path / "scales.json"
    given = ("--pes", "2", *SMALL, "--table", "--json", found, "--resume", tmp_path / "state")
    bench("--only", "direct", *given)
    lines = (tmp_path / "state").read_text()
    done = bench("--only", "offset-guard,direct", *given)
    assert (tmp_path / "state").read_text().startswith(lines), "runs are repeated"
    assert done.returncode in (0, 1), done.stderr
    data = json.loads(found.read_text())
    rows = {row["name"]: row for row in data["writers"]}
    assert {name: row["error"] for name, row in rows.items() if row["error"]} == {}
    assert (rows["direct"]["collectors"], rows["offset-guard"]["collectors"]) == (2, 1)
    sizes = {row[kind]["bytes"]["median"] for row in rows.values()
        for kind in ("encoding", "writing")}
    peers = {(one["name"], one["pes"]): one for one in data["peers"]}
    assert sizes == {peers["pwrite", 2]["figures"]["bytes"]["median"]}
    assert "Offset guard, fwrite" in done.stdout and "direct / fastest other" in done.stdout


@pytest.mark.mpi
def test_a_run_ends_in_time(bench, tmp_path):
    found = tmp_path / "scales.json"
    done = bench("--pes", "2", "--only", "direct", *SMALL, "--minutes", "1e-9", "--json", found)
    data = json.loads(found.read_text())
    assert done.returncode == 1 and "the limit of 1e-09 minutes was reached" in done.stdout
    assert [row["encoding"] for row in data["writers"]] == [{}] and data["profiles"] == []


@pytest.mark.mpi
@pytest.mark.campaign
def test_all_methods_with_profiles_windows_and_nodes(bench, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the test extra, on Python 3.11 or newer")
    found, picture, page = (tmp_path / name for name in ("scales.json", "s.png", "s.html"))
    bench("--pes", "2,4", *SMALL, "--json", found, "--png", picture, "--html", page, timeout=175)
    data = json.loads(found.read_text())
    errors = {(row["name"], row["pes"], row.get("nodes")): row["error"]
        for row in [*data["writers"], *data["nodes"]] if row["error"]}
    assert errors.keys() == {("mpi-shared", 4, 2), ("mpi-shared", 4, 4)}
    profiles = {(one["name"], one["pes"]): {line["routine"]: line for line in one["routines"]}
        for one in data["profiles"]}
    guard = profiles["offset-guard", 4]
    assert guard["encode"]["pes"] == 3 and guard["MPI_Probe"]["pes"] == 1
    assert {one["windows"] for one in data["windows"]} == {1, 2, 4, 8}
    assert picture.read_bytes()[:4] == b"\x89PNG" and "Direct offsets" in page.read_text()


def test_what_cannot_be_run_is_refused(bench):
    done = bench("--pes", "many", "--minutes", "0")
    assert done.returncode == 2 and "--pes many: expected numbers" in done.stderr
