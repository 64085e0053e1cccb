# SPDX-License-Identifier: Apache-2.0
"""libweir of the build, for programs in C and Fortran and for Python."""

from __future__ import annotations

from pathlib import Path

import pytest


class Libweir:
    """``libweir.cc(source)``, ``libweir.fc(source)``, ``libweir.run(ranks, program)``: with one MPI
    and its libweir.so."""

    def __init__(self, mpi, build: Path, root: Path):
        self.mpi, self.root = mpi, root
        self.libraries = build / "lib"
        self.directory = self.libraries / mpi.name
        self.link = (f"-I{root / 'include'}", f"-I{self.directory}", f"-L{self.directory}",
            f"-Wl,-rpath,{self.directory}")

    def cc(self, source: Path) -> Path:
        return self.mpi.cc(source, *self.link, "-lweir")

    def fc(self, source: Path) -> Path:
        # The program is compiled against a module file: another one is another program.
        version = (self.directory / "weir_fields.mod").stat().st_mtime_ns
        return self.mpi.fc(source, *self.link, f"-DMODULE={version}", "-lweirf", "-lweir")

    def run(self, ranks: int, *command: object, cwd: Path, **env: str):
        return self.mpi.run(ranks, *command, cwd=cwd, env=env, timeout=120)


@pytest.fixture
def libweir(mpi, native_build, root) -> Libweir:
    made = Libweir(mpi, native_build, root)
    if not (made.directory / "libweir.so").exists():
        pytest.skip(f"libweir is not built for {mpi.name}: cmake says which package it needs")
    return made
