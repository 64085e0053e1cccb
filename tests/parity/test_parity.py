# SPDX-License-Identifier: Apache-2.0
"""What weir counts is what strace -f counts, for the same processes of real programs
(weir_parity.py says how compared)."""

from __future__ import annotations

import shutil

import pytest
from programs import PROGRAMS
from weir_parity import disagreements, observe, totals, unexplained

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def needs(*commands: str) -> None:
    missing = [name for name in commands if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_and_bytes_of_each_file_are_those_of_strace(name, weir, fc, tmp_path):
    make, commands = PROGRAMS[name]
    needs(*commands)
    command, env = make(tmp_path, fc)
    rows = observe(weir, tmp_path, *command, env=env)
    assert disagreements(rows) == []
    assert unexplained(rows) == []
    kinds = totals(rows)
    assert kinds["system"]["files"] + kinds["stream"]["files"] >= 4 and kinds["system"][
        "strace calls"] > 50


@pytest.mark.timeout(300)
def test_the_4dvar_workload_agrees_with_strace(weir, mpi, native_build, tmp_path, root):
    program = native_build / "workloads" / "4dvar" / mpi.name / "weir-4dvar"
    if not program.exists():
        pytest.skip(f"{program} was not built")
    work = tmp_path / "work"
    work.mkdir()
    mpi.run(1, program, "prepare", "--tiny", "--work", work, timeout=120, cwd=tmp_path).ok()
    rows = observe(weir, tmp_path, *mpi.launch(2, program, "traj0", "--work", work), env=mpi.env,
        timeout=240)
    mine = [row for row in rows if row.file.startswith(str(work))]
    assert disagreements(mine) == []
    assert unexplained(mine) == []
    assert len(mine) > 50
