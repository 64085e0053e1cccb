# SPDX-License-Identifier: Apache-2.0
"""The workload for tests: its programs, and one finished run of the tiny profile with a copy of the
directory after each step."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from weir_fixtures import NATIVE_BUILD
from weir_mpi import IMPLEMENTATIONS, Mpi
from weir_process import Completed, run

STEPS = ("prepare", "traj0", "min0", "traj1", "min1", "traj2")
BIN = Path(os.environ.get("WEIR_4DVAR_BIN", NATIVE_BUILD / "workloads" / "4dvar"))
QUICK = ("--tiny", "--compute", "0")


@dataclass(frozen=True)
class Workload:
    """The program built for one MPI."""

    mpi: Mpi

    @property
    def program(self) -> Path:
        return BIN / self.mpi.name / "weir-4dvar"

    def step(self, step: str, work: Path, *options: object, ranks: int = 2) -> Completed:
        return self.mpi.run(1 if step == "prepare" else ranks, self.program, step, "--work", work,
            *options)

    def chain(self, work: Path, *sizes: object, ranks: int = 2, until: str = "traj2") -> Path:
        work.mkdir(exist_ok=True)
        for step in STEPS[: STEPS.index(until) + 1]:
            self.step(step, work, *(sizes if step == "prepare" else ()), ranks=ranks).ok()
        return work


def workload_for(mpi: Mpi) -> Workload:
    workload = Workload(mpi)
    if not workload.program.exists():
        pytest.skip(f"{workload.program} is not built: run `make build` (needs libeccodes-dev and "
                    f"this MPI's compilers)")
    return workload


@pytest.fixture
def workload(mpi) -> Workload:
    """The workload with each MPI in turn."""
    return workload_for(mpi)


@pytest.fixture(scope="session")
def any_workload() -> Workload:
    """The workload with one MPI, for what does not depend on it: MPICH, which starts fastest, else
    Open MPI."""
    for name in ("mpich", "openmpi"):
        if not IMPLEMENTATIONS[name].missing():
            return workload_for(IMPLEMENTATIONS[name])
    pytest.skip("no MPI is installed here")


@pytest.fixture(scope="session")
def after(any_workload, tmp_path_factory):
    """``after["min0"]``: a directory as it is when that step is done, not to be changed; see
    ``copy``."""
    directory = tmp_path_factory.mktemp("4dvar")
    kept = {}
    for step in STEPS:
        work = directory / step
        if step != "prepare":
            shutil.copytree(kept[STEPS[STEPS.index(step) - 1]], work, symlinks=True)
        work.mkdir(exist_ok=True)
        any_workload.step(step, work, *(QUICK if step == "prepare" else ())).ok()
        kept[step] = work
    return kept


@pytest.fixture
def copy(after, tmp_path):
    """``copy("min0")``: the directory after that step, to do harm to; whole again with each call.
    """

    def of(step: str) -> Path:
        work = tmp_path / "work"
        if work.exists():
            shutil.rmtree(work)
        return Path(shutil.copytree(after[step], work, symlinks=True))

    return of


@pytest.fixture(scope="session")
def traced_run(any_workload, tmp_path_factory):
    """``traced_run(4)``: the run directory of all steps of the tiny profile with so many ranks,
    traced once; its work directory lies beside it."""

    @cache
    def of(ranks: int) -> Path:
        directory = tmp_path_factory.mktemp("traced")
        command = [Path(__file__).parents[1] / "run", *QUICK, "--work", directory / "work",
            "--ranks", ranks, "--weir", directory / "run"]
        command += ["--mpi", any_workload.mpi.name, "--bin", any_workload.program.parent.parent]
        run([*command, "--weir-command", Path(sys.executable).parent / "weir"], timeout=120).ok()
        return directory / "run"

    return of
