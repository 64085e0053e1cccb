# SPDX-License-Identifier: Apache-2.0
"""Servers that are a program of their own: a job of several programs, in C, Fortran and Python."""

from __future__ import annotations

import importlib.util
import sys

import pytest

pytestmark = pytest.mark.any_mpi

C = """
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <weir/mpi.h>

int main(int argc, char **argv) {
  weir_error err;
  MPI_Init(&argc, &argv);
  if (weir_serve(MPI_COMM_WORLD, "", &err)) printf("rank server: weir_serve: %s: %s\\n", weir_status_name(err.code), err.message);
  else puts("served to the end");
  MPI_Finalize();
  return 0;
}
"""
FORTRAN = """
program server
  use mpi_f08
  use weir
  implicit none (type, external)
  call MPI_Init()
  call weir_serve(MPI_COMM_WORLD, "")
  print "(a)", "served to the end"
  call MPI_Finalize()
end program server
"""
PYTHON = "from weir import output; output.serve(); print('served to the end', flush=True)"


@pytest.fixture
def command_of(model, native_build):
    flags = (f"-I{model.root / 'include'}", f"-I{model.libraries}", f"-L{model.libraries}",
        f"-Wl,-rpath,{model.libraries}")

    def made(face: str) -> list[str]:
        if face == "c":
            (model.directory / "server.c").write_text(C)
            return [str(model.mpi.cc(model.directory / "server.c", *flags, "-lweir"))]
        if face == "fortran":
            (model.directory / "server.F90").write_text(FORTRAN)
            version = (model.libraries / "weir_fields.mod").stat().st_mtime_ns
            return [str(model.mpi.fc(model.directory / "server.F90", *flags, f"-DMODULE={version}",
                "-lweirf", "-lweir"))]
        if importlib.util.find_spec("mpi4py") is None or model.mpi.name != "openmpi":
            pytest.skip("mpi4py runs on Open MPI here")
        return [sys.executable, "-m", "mpi4py", "-c", PYTHON]

    return made


def launch(model, command, mode: str, servers: int, *options: str):
    from weir_process import run

    env = {**model.mpi.env, "WEIR_OUTPUT_MODE": mode,
        "WEIR_OUTPUT_LIBRARIES": str(model.libraries.parent), "WEIR_OUTPUT_TIME_LIMIT_S": "60"}
    line = [*model.mpi.launch(3, model.program, "", *options), ":", "-n", str(servers), *command]
    return run(line, timeout=90, env={**env, "WEIR_OUTPUT_GROUPS": "2"}, cwd=model.directory)


@pytest.mark.parametrize("face", ["c", "fortran", "python"])
def test_ranks_of_another_program_serve(model, command_of, face):
    model(1, path="serial{file}.nc", rotation=2).fine()
    done = launch(model, command_of(face), "servers+parallel", 3, "path=o{file}.nc",
        "rotation=2").ok()
    assert done.stdout.count("served to the end") == 3 and "ok 1" in done.stdout
    for file in (0, 1):
        assert (model.directory / f"o{file}.nc").read_bytes() == (model.directory
            / f"serial{file}.nc").read_bytes()


def test_servers_in_a_mode_without_are_reported_on_all_ranks(model, command_of):
    done = launch(model, command_of("c"), "serial", 1, "path=o.nc")
    assert done.stdout.count(
        "ranks called weir_serve, but the mode is serial; set mode to servers or "
        "servers+parallel") == 4, done.stdout
    assert not (model.directory / "o.nc").exists()
