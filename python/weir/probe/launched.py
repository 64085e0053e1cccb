# SPDX-License-Identifier: Apache-2.0
"""Whether a launcher started this process as one rank of several, and the MPI of that launcher for
mpi4py, whose wheels otherwise take the first MPI that the system finds."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from weir._errors import InputError
from weir.probe.cache import cache_directory

# What launchers leave in the environment of ranks: number of ranks, and which one it is.
LAUNCHED_BY = (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"))  # fmt: skip
_CHOICES = ("MPI4PY_MPIABI", "MPI4PY_LIBMPI")  # of the user
_OF_THE_ABI, _OF_DEBIAN = "libmpi.so.12", "libmpich.so.12"  # MPICH's library


def is_launched() -> bool:
    """Whether a launcher of MPI started this process as one of several ranks."""
    return any(int(os.environ.get(size) or 1) > 1 for size, _ in LAUNCHED_BY)


def is_first() -> bool:
    """Whether it is rank 0; known before MPI begins."""
    return "0" in (os.environ.get(rank) for size, rank in LAUNCHED_BY if size in os.environ)


def choose_mpi() -> None:
    """Before MPI begins: has mpi4py take the MPI of the launcher, unless the user chose one. May
    start this command anew."""
    name = _launching_mpi()
    if any(one in os.environ for one in _CHOICES) or not name:
        return
    os.environ["MPI4PY_MPIABI"] = name
    if name == "mpich" and (directory := _with_link()) is not None:
        before = os.environ.get("LD_LIBRARY_PATH")  # which the linker reads at the start alone
        os.environ["LD_LIBRARY_PATH"] = f"{directory}:{before}" if before else str(directory)
        os.execve(sys.executable, sys.orig_argv, os.environ)


def _launching_mpi() -> str:
    """As mpi4py's wheels call it; empty where it is not known: srun starts ranks of any MPI."""
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return "openmpi"
    return "mpich" if "PMI_SIZE" in os.environ and "SLURM_JOB_ID" not in os.environ else ""


def _with_link() -> Path | None:
    """A directory with MPICH's library under the name that wheels look for, where the system has it
    under Debian's alone."""
    directory = cache_directory() / "mpich"
    with suppress(OSError):
        ctypes.CDLL(_OF_THE_ABI)
        return None
    with suppress(OSError):
        ctypes.CDLL(_OF_DEBIAN)
        maps = Path("/proc/self/maps").read_text("utf-8", "surrogateescape")
        library = next(line.split(maxsplit=5)[5] for line in maps.splitlines()
            if f"/{_OF_DEBIAN}" in line)
        directory.mkdir(parents=True, exist_ok=True)
        made = directory / f"{_OF_THE_ABI}.{os.getpid()}"
        made.symlink_to(library)
        made.rename(directory / _OF_THE_ABI)  # ranks do so at the same time
        return directory
    return None


def world() -> Any:
    """mpi4py's MPI_COMM_WORLD. Raises InputError."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise InputError(f"weir probe under a launcher needs mpi4py with its MPI: {error}; "
                         f"pip install 'weir-io[mpi]'") from error
    if MPI.COMM_WORLD.size == 1:
        raise InputError("weir probe: the launcher started several ranks, but mpi4py runs on "
                         "another MPI, where each is alone; MPI4PY_MPIABI=openmpi or mpich "
                         "chooses it for mpi4py's wheels")
    return MPI.COMM_WORLD
