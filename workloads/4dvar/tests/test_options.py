# SPDX-License-Identifier: Apache-2.0
"""What is asked for wrongly is refused with a message that says what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from weir_process import run

pytestmark = pytest.mark.mpi
SCRIPT = Path(__file__).parents[1] / "run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no step given"),
        (["traj9"], '"traj9" is not a step'),
        (["prepare", "tiny"], '"tiny" is not an option'),
        (["prepare", "--levels"], "--levels needs a value"),
        (["prepare", "--levels", "many"], '--levels: expected a number, found "many"'),
        (["prepare", "--levels", "0"], "levels must be within 2 and 200, is 0"),
        (["prepare", "--colour", "3"], "--colour 3: "),
        (["prepare", "--scale", "0"], "--scale must be within"),
        (["prepare", "--group", "3", "--pools", "2"], "group must be within 1 and 2, is 3"),
        (["prepare", "--work", "/nonexistent/directory"],
            "--work /nonexistent/directory: No such file or directory"),
    ],
)
def test_the_program_refuses(any_workload, tmp_path, arguments, message):
    result = any_workload.mpi.run(2, any_workload.program, *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert f"weir-4dvar: {message}" in result.stderr
    assert result.stderr.count("usage: ") == 1, "one rank speaks for all"
    assert not (tmp_path / "fort.4").exists()


def test_sizes_are_for_prepare_only(any_workload, copy):
    result = any_workload.step("traj0", copy("prepare"), "--levels", 5)
    assert result.returncode == 2 and "--levels is for prepare only" in result.stderr


def test_a_grid_without_sample_is_refused(any_workload, tmp_path):
    result = any_workload.step("prepare", tmp_path, "--grid", 33)
    assert result.returncode == 1 and "sample of ecCodes: expected one for grid 33" in result.stderr


def test_a_directory_that_was_not_prepared_is_refused(workload, tmp_path):
    result = workload.step("traj0", tmp_path)
    assert (
        result.returncode == 1
        and "fort.4: open: expected the namelist that the step prepare wrote" in result.stderr
    )


@pytest.mark.parametrize("step", ["min0", "traj1", "min1", "traj2"])
def test_a_step_out_of_order_is_refused(any_workload, copy, step):
    before = {"min0": "traj0", "traj1": "min0", "min1": "traj1", "traj2": "min1"}[step]
    result = any_workload.step(step, copy("prepare"))
    assert result.returncode == 1 and f"run {before} before {step}" in result.stderr


def test_another_number_of_ranks_is_refused_where_files_belong_to_ranks(workload, copy):
    result = workload.step("min0", copy("traj0"), ranks=3)
    assert result.returncode == 1
    assert (
        "trajectory of traj0: ranks: expected 2, found 3; start this step with -n 2"
        in result.stderr
    )


def test_another_number_of_ranks_is_fine_where_they_do_not(any_workload, copy):
    any_workload.step("traj1", copy("min0"), ranks=4).ok()


def test_sizes_changed_by_hand_are_found(any_workload, copy):
    work = copy("prepare")
    namelist = work / "fort.4"
    namelist.write_text(re.sub(r"LEVELS=\d+", "LEVELS=5", namelist.read_text()))
    result = any_workload.step("traj0", work)
    assert result.returncode == 1 and "fort.4: sizes: expected 32 6114 31 4 " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["tiny"], 2, '"tiny" is not an option'),
        (["--ranks"], 2, "--ranks needs a value"),
        (["--ranks", "none"], 2, '--ranks: expected a positive number, found "none"'),
        (["--mpi", "lam"], 2, '--mpi: expected openmpi or mpich, found "lam"'),
        (["--level", "trace"], 2, "--level is for runs with --weir"),
        (["--steps", "traj0 traj9"], 2, '"traj9" is not a step'),
        (["--bin", "/nonexistent"], 3, "no weir-4dvar for"),
        (["--levels", "0"], 2, "step prepare ended with status 2"),
    ],
)
def test_the_script_refuses(any_workload, tmp_path, arguments, status, message):
    directory = [] if "--bin" in arguments else ["--bin", any_workload.program.parent.parent]
    result = run([SCRIPT, "--work", tmp_path / "work", *directory, *arguments])
    assert result.returncode == status and message in result.stderr


def test_help_is_printed(any_workload, tmp_path):
    assert "usage: " in run([SCRIPT, "--help"]).ok().stdout
    assert "--compute SECONDS" in any_workload.mpi.run(1, any_workload.program, "--help",
        cwd=tmp_path).ok().stdout
