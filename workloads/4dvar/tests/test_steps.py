# SPDX-License-Identifier: Apache-2.0
"""The five steps run with any number of ranks, hand their results on, and the analysis is one."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

QUICK = ("--tiny", "--compute", "0")
ACTIVE, REJECTED, THINNED = 1, 2, 3


def load_odb():
    spec = importlib.util.spec_from_file_location("fourdvar_odb",
        Path(__file__).with_name("odb.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


odb = load_odb()


@pytest.fixture(scope="module")
def chained(tmp_path_factory):
    """``chained(workload, 3)``: the directory after all steps of the tiny profile with so many
    ranks, run once, not to be changed."""
    kept = {}

    def of(workload, ranks: int) -> Path:
        key = workload.mpi.name, ranks
        if key not in kept:
            kept[key] = workload.chain(tmp_path_factory.mktemp("chained") / "work", *QUICK,
                ranks=ranks)
        return kept[key]

    return of


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_steps_run(workload, chained, ranks):
    work = chained(workload, ranks)
    assert len(list((work / "TRAJHR00").iterdir())) == 2 * ranks
    assert (work / "LEDGER").read_text().split("\n")[2].split() == ["done", "1"] + 5 * [str(ranks)]


def rms(values):
    values = list(values)
    return math.sqrt(sum(v * v for v in values) / len(values))


def test_the_analysis_fits_the_observations_better_than_the_first_guess(any_workload, tmp_path):
    """The script links each step's fields to the next one's input, so traj2 starts from min1's
    analysis."""
    work = run_script(any_workload, tmp_path / "work", *QUICK)
    active = [row for row in odb.updates(work).values() if row["status"] == ACTIVE]
    assert len(active) > 50
    assert rms(row["an_depar"] for row in active) < 0.7 * rms(row["fg_depar"] for row in active)


def run_script(workload, work, *options):
    from weir_process import run

    script = Path(__file__).parents[1] / "run"
    mpi, directory = workload.mpi.name, workload.program.parent.parent
    run([script, "--work", work, "--mpi", mpi, "--bin", directory, "--ranks", "2", *options],
        timeout=90).ok()
    return work


def test_every_report_is_accounted_for(after):
    before, end = odb.updates(after["prepare"]), odb.updates(after["traj2"])
    assert before.keys() == end.keys() and len(end) > 200
    assert {row["status"] for row in before.values()} == {0}
    assert {row["status"] for row in end.values()} == {ACTIVE, REJECTED, THINNED}
    assert all(row["an_depar"] == 0 for row in end.values() if row["status"] != ACTIVE)
    used = sum(len(rows) for path in after["traj2"].glob("CCMA/*/depar")
        for _, rows in odb.sections(path))
    assert used == sum(row["status"] == ACTIVE for row in end.values())


def test_the_result_does_not_depend_on_the_number_of_ranks(any_workload, after, chained):
    other = odb.updates(chained(any_workload, 3))
    for key, row in odb.updates(after["traj2"]).items():
        assert row == pytest.approx(other[key], rel=1e-9, abs=1e-9), key


def test_a_step_may_be_repeated(any_workload, copy):
    work = copy("min0")
    any_workload.step("traj0", work).ok()
    refused = any_workload.step("traj1", work)
    assert refused.returncode != 0 and "run min0 before traj1" in refused.stderr
    any_workload.step("min0", work).ok()
    any_workload.step("min0", work).ok()
    any_workload.step("traj1", work).ok()


def test_the_minimisation_lowers_the_cost(after):
    for step in ("min0", "min1"):
        (line,) = [x for x in (after[step] / f"NODE.001_01.{step}").read_text().splitlines()
            if "cost before" in x]
        before, end = (float(x) for x in line.split()[-2:])
        assert 0 < end < before


def test_grib_edition_2_works_too(any_workload, tmp_path):
    work = any_workload.chain(tmp_path / "work", *QUICK, "--edition", 2)
    assert (work / "init" / "ICMGGweirINIUA").read_bytes()[7] == 2


@pytest.mark.parametrize("sizes", [("--pools", 1, "--group", 1), ("--types", 1, "--reports", 1),
    ("--fields", 1)])
def test_small_sizes_work(any_workload, tmp_path, sizes):
    """One pool for several ranks, a base almost without reports, a single field."""
    any_workload.chain(tmp_path / "work", *QUICK, *sizes, ranks=2)
