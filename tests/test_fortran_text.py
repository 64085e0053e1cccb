# SPDX-License-Identifier: Apache-2.0
"""Programs of gfortran that write text: what the Fortran library does in a statement is computing,
what it asks of files is I/O, in every table."""

from __future__ import annotations

import json

import decode
import pytest

pytestmark = [pytest.mark.mpi, pytest.mark.any_mpi]

TEXT = """
program text
  use mpi
  implicit none
  integer :: rank, ranks, error, step, unit
  real :: mine(20000)
  real, allocatable :: all(:)
  character(20) :: name
  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  allocate(all(20000 * ranks))
  do step = 1, 3
    mine = sin(real(step + rank))
    call mpi_gather(mine, 20000, mpi_real, all, 20000, mpi_real, 0, mpi_comm_world, error)
    if (rank == 0) then
      write(name, '(a,i2.2,a)') 'diag_', step, '.txt'
      open(newunit=unit, file=name, form='formatted')
      write(unit, '(10f12.5)') all
      close(unit)
    end if
    call mpi_barrier(mpi_comm_world, error)
  end do
  call mpi_finalize(error)
end program
"""


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_text_is_computing_and_files_are_io(mpi, weir, tmp_path, level):
    command = ["trace", "--quiet", "--level", level, "-o", "run", "--",
        *mpi.launch(2, mpi.fc(TEXT))]
    weir(*command, cwd=tmp_path, env=dict(mpi.env), timeout=90).ok()
    report = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    units = [one for one in report["fortran_units"] if one["file"].endswith(".txt")]
    assert [one["writes"] for one in units] == [1, 1, 1]
    for one in units:
        assert 0 < one["io_s"] < one["seconds"]
        assert one["library_s"] == pytest.approx(one["seconds"] - one["io_s"])
    seconds = {one["file"]: one["seconds"] for one in report["files"]
        if "/diag_" in one["file"]}
    assert {one["file"]: pytest.approx(one["io_s"]) for one in units} == seconds
    if level == "detail":
        return
    own = [r for r in decode.read_trace(tmp_path / "run" / "main").records
        if r.file in seconds and r.op in ("open", "write", "close")]
    assert {r.op for r in own} == {"open", "write", "close"} and all(r.below for r in own)
    # With files at no cost the text would still be made.
    [waits], costs = report["waits"], {one["file"]: one for one in report["output_cost"]}
    assert waits["critical_s"] <= 1.001 * sum(one["seconds"] for one in report["files"])
    for one in units:
        cost = costs[one["file"]]
        assert cost["system_s"] == pytest.approx(one["io_s"], rel=0.001)
        assert cost["library_s"] == pytest.approx(one["library_s"], rel=0.001)
