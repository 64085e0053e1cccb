# SPDX-License-Identifier: Apache-2.0
"""The communicator of a context: mpi4py's when it is there, else MPI_COMM_WORLD of an MPI that is started here."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

from weir._errors import UsageError
from weir.output import _library

_started_here = False


def begin(comm: Any) -> tuple[_library.Library, int, Any]:
    """The library, the communicator as a Fortran handle, and mpi4py's MPI module or None."""
    try:
        from mpi4py import MPI
    except ImportError as why:
        if comm is not None:
            raise UsageError(f"a communicator was given, but mpi4py cannot be imported: {why}") from why
        return (*_without_mpi4py(), None)
    version = MPI.Get_library_version()
    mpi = _library.mpi_of_version(version)
    if mpi is None:
        raise UsageError(f"mpi4py runs on {version.splitlines()[0]!r}; expected Open MPI or MPICH, for which libweir is built")
    world = MPI.COMM_WORLD if comm is None else comm
    if not isinstance(world, MPI.Comm):
        raise UsageError(f"the communicator is a {type(world).__name__}; expected an mpi4py.MPI.Comm")
    return _library.load(mpi), world.py2f(), MPI


def communicator(mpi4py: Any, handle: int) -> Any:
    """The model's communicator: mpi4py's, or the Fortran handle without mpi4py."""
    return mpi4py.Comm.f2py(handle) if mpi4py else handle


def _without_mpi4py() -> tuple[_library.Library, int]:
    global _started_here
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
