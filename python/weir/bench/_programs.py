# SPDX-License-Identifier: Apache-2.0
"""Where the programs of the benches lie, and how MPI programs are started on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weir._errors import InputError, UsageError

BUILD = Path(__file__).resolve().parents[3] / "build" / "native"


def build_directory(given: str | None) -> Path:
    """The CMake build whose programs are measured. Raises InputError when it is not there."""
    directory = Path(given) if given else BUILD
    if not directory.is_dir():
        raise InputError(
            f"{directory}: no build there; the benchmark's programs belong to the source tree: run "
            f"`make build`, or give --programs")
    return directory.resolve()


@dataclass(frozen=True)
class Mpi:
    """How ranks of one implementation are started, more of them than there are cores."""

    name: str
    launcher: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, ranks: int, program: Path, arguments: Sequence[object]) -> list[str]:
        return [*self.launcher, "-n", str(ranks), str(program), *(str(a) for a in arguments)]


_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_OVERSUBSCRIBED = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
IMPLEMENTATIONS = {
    "openmpi": Mpi("openmpi", _OVERSUBSCRIBED, {**_AS_ROOT, "OMPI_MCA_io": "romio321"}),
    "mpich": Mpi("mpich", ("mpirun.mpich",)),
}


def choose_mpi(name: str | None, program: Path, ompio: bool = False) -> Mpi:
    """The implementation asked for, or the first that has a launcher here and `program` (a path
    with {mpi} in it) built.

    ``ompio``: Open MPI's own MPI-IO in place of ROMIO. Raises UsageError or InputError.
    """
    if name is not None and name not in IMPLEMENTATIONS:
        raise UsageError(f"--mpi {name}: expected {' or '.join(IMPLEMENTATIONS)}")
    for mpi in (IMPLEMENTATIONS[name],) if name else IMPLEMENTATIONS.values():
        if shutil.which(mpi.launcher[0]) and Path(str(program).format(mpi=mpi.name)).exists():
            return Mpi(mpi.name, mpi.launcher,
                {**_AS_ROOT, "OMPI_MCA_io": "ompio"}) if ompio else mpi
    raise InputError(
        f"no {Path(program).name} for {name or 'any MPI'}, or no mpirun for it: run `make build`, "
        f"or give --programs")


def clean_environment() -> dict[str, str]:
    """The caller's environment without what a layer, a trace or another bench left in it."""
    left = ("LD_PRELOAD", "IOBUF_PARAMS", "FILENV")
    return {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") and k not in left}


def weir_command(*arguments: object) -> list[str]:
    """A command line of weir itself, of this installation."""
    return [sys.executable, "-m", "weir", *(str(a) for a in arguments)]
