# SPDX-License-Identifier: Apache-2.0
"""The communicator of a context: mpi4py's when it is there, else MPI_COMM_WORLD of an MPI that is
started here."""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

from weir._errors import UsageError
from weir.output import _library

_started_here = False


def begin(comm: Any) -> tuple[_library.Library, int, Any]:
    """The library, the communicator as a Fortran handle, and mpi4py's MPI module or None."""
    try:
        from mpi4py import MPI
    except ModuleNotFoundError:
        return (*_without_mpi4py(), None)
    except (ImportError, RuntimeError) as why:
        raise UsageError(
            f"mpi4py is installed, but finds no MPI: {why}; its wheels look for libmpi.so.40 (Open "
            f"MPI) or libmpi.so.12 (MPICH): where "
            "the system has another name for it, as Debian for MPICH, a link of that name in a "
            "directory of LD_LIBRARY_PATH helps"
        ) from why
    version = MPI.Get_library_version()
    mpi = _library.mpi_of_version(version)
    if mpi is None:
        raise UsageError(
            f"mpi4py runs on {version.splitlines()[0]!r}; expected Open MPI or MPICH, for which "
            f"libweir is built")
    world = MPI.COMM_WORLD if comm is None else comm
    if not isinstance(world, MPI.Comm):
        raise UsageError(
            f"the communicator is a {type(world).__name__}; expected an mpi4py.MPI.Comm")
    _same_as_launcher(mpi, MPI.COMM_WORLD.size)
    return _library.load(mpi), world.py2f(), MPI


def _same_as_launcher(mpi: str, size: int) -> None:
    """mpi4py's wheels choose an MPI by themselves; under another one's launcher every rank is then
    a job of one."""
    for name, ranks in _started().items():
        if size == 1 and ranks > 1 and name != mpi:
            raise UsageError(
                f"{name} started {ranks} ranks, but mpi4py runs on {mpi}, where each of them is "
                f"alone; expected mpi4py on {name}: "
                f"MPI4PY_MPIABI={name} chooses it for mpi4py's wheels; or build mpi4py with "
                f"{name}'s mpicc"
            )


def _started() -> dict[str, int]:
    """Ranks that each MPI's launcher says it has started."""
    return {name: int(os.environ.get(variable, "1"))
        for name, variable in (("openmpi", "OMPI_COMM_WORLD_SIZE"), ("mpich", "PMI_SIZE"))}


def communicator(mpi4py: Any, handle: int) -> Any:
    """The model's communicator: mpi4py's, or the Fortran handle without mpi4py."""
    return mpi4py.Comm.f2py(handle) if mpi4py else handle


def _without_mpi4py() -> tuple[_library.Library, int]:
    global _started_here
    ranks = max(_started().values())
    if ranks > 1:
        raise UsageError(
            f"there is no mpi4py, and this is a job of {ranks} ranks, which cannot know one "
            f"another without; install mpi4py")
    mpi = _library.choose_mpi()
    library = _library.load(mpi)
    running = ctypes.c_int()
    library.native.MPI_Initialized(ctypes.byref(running))
    if not running.value:
        library.native.MPI_Init(None, None)
        _started_here = True
        atexit.register(_end, library)
    return library, _library.FORTRAN_WORLD[mpi]


def _end(library: _library.Library) -> None:
    """Only what was begun here is ended here."""
    ended = ctypes.c_int()
    library.native.MPI_Finalized(ctypes.byref(ended))
    if _started_here and not ended.value:
        library.native.MPI_Finalize()
