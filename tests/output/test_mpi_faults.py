# SPDX-License-Identifier: Apache-2.0
"""Calls of the MPI library itself fail (mpi_faults.c), and windows have the memory model MPI_WIN_SEPARATE. Every run ends; a file that has its name is that of
a run without failures, byte for byte; where one has not got it, every rank of the model has returned an error."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from weir_process import run

HERE = Path(__file__).parent
RANKS = 3
WAYS = [("serial", "two-sided"), ("servers", "rma"), ("servers", "two-sided")]


@pytest.fixture
def faults(model):
    """``faults("servers", "rma", 2)``: the output of faults.c; two calls of each rank fail, one a run."""
    flags = (f"-I{model.root / 'include'}", f"-I{HERE}", str(HERE / "mpi_faults.c"), f"-L{model.libraries}",
             f"-Wl,-rpath,{model.libraries}", "-lweir", "-ldl")
    program = model.mpi.cc(HERE / "faults.c", *flags, name="faults")

    def go(mode: str, transport: str, each: int, **env: str) -> str:
        env |= {"WEIR_OUTPUT_MODE": mode, "WEIR_OUTPUT_TRANSPORT": transport, **model.mpi.env}
        done = run(model.mpi.launch(RANKS, program, str(each)), timeout=60 + 20 * each, env=env, cwd=model.folder)
        assert done.stdout.count(": all runs have ended") == RANKS, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    return go


def check(folder: Path, said: str, runs: int) -> int:
    """Files of all runs. Returns how many have no name."""
    right = {name: (folder / f"0.{name}.nc").read_bytes() for name in ("each", "means")}
    assert "run 0 rank 0: computes" in said and not re.search(r"^run 0 .*WEIR_E_", said, re.M)
    lacking = 0
    for number in range(1, runs + 1):
        failed = re.findall(rf"^run {number} rank .*$", said, re.M)
        complete = True
        for name, content in right.items():
            path = folder / f"{number}.{name}.nc"
            if path.exists():
                assert path.read_bytes() == content, (path.name, failed)
            else:
                complete = False
        if complete:
            continue
        lacking += 1
        computes = set(re.findall(rf"^run {number} rank (\d+): computes", said, re.M))
        told = set(re.findall(rf"^run {number} rank (\d+): WEIR_E_", said, re.M))
        assert told and computes <= told, failed
    return lacking


@pytest.mark.parametrize(("mode", "transport"), WAYS)
def test_files_are_right_or_missed_when_a_call_of_mpi_fails(model, faults, mode, transport):
    each = 40 if os.environ.get("WEIR_TEST_FAULTS") else 2
    said = faults(mode, transport, each)
    assert len(re.findall(r"^run \d+ rank \d+: call .* failed: MPI_\w+$", said, re.M)) >= RANKS * each // 2
    assert check(model.folder, said, RANKS * each) > 0


def test_windows_of_two_copies_are_brought_up_to_date(model, faults):
    """What is fetched is what MPI_Win_sync has made public: without it a file would have zeros."""
    said = faults("servers", "rma", 0, MPI_FAULT_SEPARATE="1")
    syncs = [int(n) for n in re.findall(r"(\d+) of MPI_Win_sync", said)]
    assert len(syncs) == RANKS and sum(n >= 5 for n in syncs) == 2  # the two that compute, at each step
    separate = (model.folder / "0.each.nc").read_bytes()
    faults("servers", "two-sided", 0)
    assert (model.folder / "0.each.nc").read_bytes() == separate
