# SPDX-License-Identifier: Apache-2.0
"""The MPI implementations tests run on, side by side, by the names Debian and Ubuntu give their
commands."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from weir_compile import Compiler
from weir_process import Completed, run


@dataclass(frozen=True)
class Mpi:
    """One implementation: compilers, and how n ranks of a program are started on this machine."""

    name: str
    launcher: tuple[str, ...]
    cc: Compiler
    fc: Compiler
    env: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        """The commands of it that this machine does not have."""
        return [c for c in (self.launcher[0], self.cc.driver, self.fc.driver) if shutil
            .which(c) is None]

    def launch(self, ranks: int, *command: object) -> list[str]:
        """The command line that starts the program with this many ranks; run it with ``env`` added.
        """
        return [*self.launcher, "-n", str(ranks), *(str(part) for part in command)]

    def run(self, ranks: int, *command: object, timeout: float = 90, env=None,
            cwd=None) -> Completed:
        """Start it, wait for it."""
        return run(self.launch(ranks, *command), timeout=timeout, env={**self.env, **(env or {})},
            cwd=cwd)


IMPLEMENTATIONS = {
    "openmpi": Mpi(
        "openmpi",
        ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
        Compiler("mpicc.openmpi", ".c"),
        Compiler("mpifort.openmpi", ".F90"),
        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_io": "romio321"},
    ),
    "mpich": Mpi("mpich", ("mpirun.mpich",), Compiler("mpicc.mpich", ".c"),
        Compiler("mpifort.mpich", ".F90")),
}
