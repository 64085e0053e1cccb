# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O in the workload: a file that is made slow is the one that costs the step
most, and the tables agree with one another."""

from __future__ import annotations

import json

import pytest
from wall_sums import splits_of

pytestmark = pytest.mark.mpi
RANKS = 2  # those of the steps before


@pytest.fixture(scope="module")
def found(any_workload, after, weir, tmp_path_factory):
    """JSON of the step min0, in which rank 0 reads wavelet.cv in requests of 0.1 s each, while the
    others wait for what it hands out."""
    import shutil

    directory = tmp_path_factory.mktemp("waits")
    shutil.copytree(after["traj0"], directory / "work", symlinks=True)
    (directory / "rules.toml").write_text(
        '[[rule]]\nname = "wavelet.cv"\nstack = "delay:op=read:us=100000 | system"\n')
    command = any_workload.mpi.launch(RANKS, any_workload.program, "min0", "--work",
        directory / "work")
    options = ("--quiet", "--rules", directory / "rules.toml", "-o", directory / "run", "--step",
        "min0")
    weir("trace", *options, "--", *command, env=dict(any_workload.mpi.env), cwd=directory,
        timeout=120).ok()
    splits_of(directory / "run")
    return json.loads(weir("report", directory / "run", "--json").ok().stdout)


def test_the_slow_file_costs_most_and_it_is_rank_0_that_reads_it(found):
    [waits] = found["waits"]
    worst = waits["files"][0]
    assert worst["file"].endswith("/wavelet.cv") and worst["ranks"] == [0]
    assert list(worst["ops"])[0] == "read"
    assert worst["critical_s"] >= 0.8 * worst["io_s"]
    assert worst["waited_s"] >= 0.8 * (RANKS - 1) * worst["critical_s"]
    assert any("wavelet.cv" in note and "I/O delays the step by" in note for note in found["notes"])


def test_the_tables_agree_with_one_another(found):
    [step], [waits] = found["steps"], found["waits"]
    assert waits["incomplete"] == 0 and waits["collectives"] > 20 and waits["ranks"] == RANKS
    for figure in ("waited_s", "path_s", "critical_s"):
        assert sum(file[figure] for file in waits["files"]) == pytest.approx(waits[figure],
            abs=1e-6)
        for file in waits["files"]:
            assert sum(op[figure] for op in file["ops"].values()) == pytest.approx(file[figure],
                abs=1e-6)
    assert 0 < waits["critical_s"] <= waits["path_s"] <= step["active_s"]
    assert waits["waited_s"] <= waits["waiting_s"] <= RANKS * step["wall_s"]
    assert {"MPI_Barrier", "MPI_Scatterv", "MPI_Allreduce"} <= {one["routine"]
        for one in waits["routines"]}
    assert all(phase["source"] == "barriers" for phase in found["phases"]) and len(
        found["phases"]) > 2
