# SPDX-License-Identifier: Apache-2.0
"""Hints by file name reach MPI_File_open: MPI_File_get_info says so, in C and both bindings of
Fortran, Open MPI and MPICH."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.mpi]

C = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Info own = MPI_INFO_NULL;
  if (argc > 2) { MPI_Info_create(&own); MPI_Info_set(own, "ind_rd_buffer_size", "65536"); MPI_Info_set(own, "cb_buffer_size", "2097152"); }
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, own, &file) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Info seen;
  MPI_File_get_info(file, &seen);
  int rank, count;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_get_nkeys(seen, &count);
  for (int i = 0; rank == 0 && i < count; ++i) {
    char key[MPI_MAX_INFO_KEY + 1], value[256];
    int found;
    MPI_Info_get_nthkey(seen, i, key);
    MPI_Info_get(seen, key, 255, value, &found);
    printf("%s=%s\n", key, value);
  }
  MPI_File_close(&file);
  MPI_Finalize();
}
"""

FORTRAN = """
program p
  use {module}
  implicit none
  {info} :: own, seen
  {file} :: f
  integer :: rank, error, i, n
  logical :: found
  character(len=MPI_MAX_INFO_KEY) :: key
  character(len=256) :: value, path
  call MPI_Init(error)
  call get_command_argument(1, path)
  own = MPI_INFO_NULL
  call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_RDWR, own, f, error)
  if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPI_File_get_info(f, seen, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Info_get_nkeys(seen, n, error)
  do i = 0, n - 1
    call MPI_Info_get_nthkey(seen, i, key, error)
    call MPI_Info_get(seen, key, 256, value, found, error)
    if (rank == 0) print '(a)', trim(key) // '=' // trim(value)
  end do
  call MPI_File_close(f, error)
  call MPI_Finalize(error)
end program p
"""

RULES = """
[[hints]]
name = "wrfout*"
ind_rd_buffer_size = 131072
cb_buffer_size = 4194304
"""


def hints_seen(mpi, weir, tmp_path, program, path, *more, rules=RULES):
    (tmp_path / "rules.toml").write_text(rules)
    done = weir(
        "run", "--rules", tmp_path / "rules.toml", "--", *mpi.launch(2, program, path, *more),
        env=dict(mpi.env), cwd=tmp_path, timeout=90
    ).ok()
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_of_a_matching_file_are_in_force_and_others_have_the_defaults(mpi, weir, tmp_path):
    program = mpi.cc(C)
    seen = hints_seen(mpi, weir, tmp_path, program, tmp_path / "wrfout_d01")
    assert (seen["ind_rd_buffer_size"], seen["cb_buffer_size"]) == ("131072", "4194304")
    other = hints_seen(mpi, weir, tmp_path, program, tmp_path / "other")
    assert other.get("cb_buffer_size") != "4194304"


def test_of_rules_go_before_the_programs_own(mpi, weir, tmp_path):
    program = mpi.cc(C)
    seen = hints_seen(mpi, weir, tmp_path, program, "wrfout_relative", "own",
        rules='[[hints]]\nname = "wrfout*"\nind_rd_buffer_size = 131072\n')
    assert seen["ind_rd_buffer_size"] == "131072", "the rule's"
    assert seen["cb_buffer_size"] == "2097152", "the program's, of which the rule says nothing"


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_reach_fortran(mpi, weir, tmp_path, module):
    info, file = ("integer", "integer") if module == "mpi" else ("type(MPI_Info)", "type(MPI_File)")
    program = mpi.fc(FORTRAN.format(module=module, info=info, file=file))
    seen = hints_seen(mpi, weir, tmp_path, program, tmp_path / "wrfout_d02")
    assert (seen["ind_rd_buffer_size"], seen["cb_buffer_size"]) == ("131072", "4194304")


def test_reach_ompio(weir, tmp_path):
    from weir_mpi import IMPLEMENTATIONS

    mpi = IMPLEMENTATIONS["openmpi"]
    if mpi.missing():
        pytest.skip("Open MPI is not installed here")
    (tmp_path / "rules.toml").write_text(RULES)
    command = mpi.launch(2, mpi.cc(C), tmp_path / "wrfout_d03")
    env = {**mpi.env, "OMPI_MCA_io": "ompio"}
    done = weir("run", "--rules", tmp_path / "rules.toml", "--", *command, env=env, timeout=90).ok()
    assert "cb_buffer_size=4194304" in done.stdout.splitlines(
        ), "OMPIO hands back what it was given"
