# SPDX-License-Identifier: Apache-2.0
"""libweir.so by ctypes: which of the libraries (one for each MPI), and what its functions take."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_void_p
from typing import Any

from weir import _native
from weir._errors import UsageError
from weir.output._errors import error_of

MPIS = ("openmpi", "mpich")
# What a launcher leaves in the environment of its ranks.
_LAUNCHED_BY = {"openmpi": ("OMPI_COMM_WORLD_SIZE",), "mpich": ("PMI_RANK", "PMI_SIZE")}
# MPI_COMM_WORLD as a Fortran handle: the same in all versions of each.
FORTRAN_WORLD = {"openmpi": 0, "mpich": 0x44000000}


class WeirError(ctypes.Structure):
    _fields_ = [("code", c_int), ("message", c_char * 1020)]


class WeirCosts(ctypes.Structure):
    _fields_ = [
        ("put_s", c_double), ("wait_s", c_double), ("end_step_s", c_double), ("final_s", c_double),
        ("put_bytes", c_int64),
        ("frames", c_int64),
    ]  # fmt: skip


_H, _HP, _TEXT, _DOUBLES, _INTS = c_void_p, POINTER(c_void_p), c_char_p, POINTER(c_double), POINTER(
    c_int64)
# Arguments of each function without the error that is the last of all of them.
_CALLS: dict[str, list[Any]] = {
    "weir_init_f": [c_int, _TEXT, POINTER(c_int), _HP],
    "weir_serve_f": [c_int, _TEXT],
    "weir_context_set_time": [_H, _TEXT, _TEXT],
    "weir_context_set_text": [_H, _TEXT, _TEXT],
    "weir_context_set_number": [_H, _TEXT, c_double],
    "weir_context_end_definition": [_H],
    "weir_step": [_H, c_double],
    "weir_end_step": [_H],
    "weir_finalize": [_HP],
    "weir_abandon": [_HP],
    "weir_finalize_costs": [_HP, POINTER(WeirCosts)],
    "weir_context_costs": [_H, POINTER(WeirCosts)],
    "weir_grid_create_lonlat": [_H, _TEXT, c_int64, _DOUBLES, c_int64, _DOUBLES, _HP],
    "weir_grid_create_plane": [_H, _TEXT, c_int64, _DOUBLES, c_int64, _DOUBLES, _HP],
    "weir_grid_create_gaussian": [_H, _TEXT, c_int64, c_int64, _HP],
    "weir_grid_create_curvilinear": [_H, _TEXT, c_int64, c_int64, _HP],
    "weir_grid_create_unstructured": [_H, _TEXT, c_int64, _HP],
    "weir_grid_set_mapping": [_H, _TEXT, _TEXT],
    "weir_grid_set_mapping_text": [_H, _TEXT, _TEXT],
    "weir_grid_set_mapping_numbers": [_H, _TEXT, c_int, _DOUBLES],
    "weir_grid_set_lonlat": [_H, _H, _DOUBLES, _DOUBLES],
    "weir_decomposition_create_block": [_H, _TEXT, c_int64, c_int64, c_int64, c_int64, _HP],
    "weir_decomposition_create_indices": [_H, _TEXT, c_int64, _INTS, _HP],
    "weir_decomposition_set_halo": [_H, c_int64, c_int64, c_int64, c_int64],
    "weir_axis_create": [_H, _TEXT, c_int64, _DOUBLES, _TEXT, _HP],
    "weir_axis_set_text": [_H, _TEXT, _TEXT],
    "weir_axis_set_bounds": [_H, _DOUBLES],
    "weir_field_create": [_H, _TEXT, c_int, c_int, _HP, _HP],
    "weir_field_set_text": [_H, _TEXT, _TEXT],
    "weir_field_set_number": [_H, _TEXT, c_double],
    "weir_field_set_missing_int64": [_H, c_int64],
    "weir_field_set_file_type": [_H, c_int],
    "weir_field_set_compression": [_H, _TEXT],
    "weir_field_set_chunk": [_H, c_int, _INTS],
    "weir_put": [_H, c_void_p],
    "weir_field_lend": [_H, POINTER(c_void_p)],
    "weir_get": [_H, _TEXT, c_int64, c_void_p],
    "weir_stream_create": [_H, _TEXT, _TEXT, _TEXT, _HP],
    "weir_stream_set_every": [_H, c_double],
    "weir_stream_set_every_steps": [_H, c_int64],
    "weir_stream_set_rotation": [_H, c_int64],
    "weir_stream_set_rotation_period": [_H, _TEXT],
    "weir_stream_set_existing": [_H, _TEXT],
    "weir_stream_add_field_as": [_H, _H, c_int, _TEXT],
}


class Library:
    """The functions of one libweir.so: ``library.weir_put(field, data)`` raises instead of
    returning a code."""

    def __init__(self, path: str, mpi: str):
        self.mpi = mpi
        # Open MPI's plugins look for MPI's symbols among the global ones
        self.native = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        for name, arguments in _CALLS.items():
            function = getattr(self.native, name)
            function.argtypes = [*arguments, POINTER(WeirError)]
            function.restype = c_int
        self.native.weir_field_array_shape.argtypes = [_H, c_int64 * 6]
        self.native.weir_decomposition_local_size.argtypes = [_H]
        self.native.weir_decomposition_local_size.restype = c_int64
        self.native.weir_field_local_size.argtypes = [_H]
        self.native.weir_field_local_size.restype = c_int64
        self.native.weir_stream_is_due.argtypes = [_H]

    def __getattr__(self, name: str) -> Any:
        if name not in _CALLS:
            raise AttributeError(name)
        function = getattr(self.native, name)

        def call(*arguments: Any) -> None:
            error = WeirError()
            code = function(*arguments, ctypes.byref(error))
            if code:
                raise error_of(code, error.message.decode(errors="replace"))

        setattr(self, name, call)
        return call


def mpi_of_version(text: str) -> str | None:
    """``openmpi`` or ``mpich`` (with those of its family that share its binary interface), from
    what MPI says of itself."""
    if text.startswith("Open MPI"):
        return "openmpi"
    return "mpich" if text.startswith(("MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH")) else None


def library_path(mpi: str) -> str:
    """Raises UsageError when there is no libweir.so for this MPI."""
    if directory := os.environ.get("WEIR_OUTPUT_LIBRARIES"):
        return os.path.join(directory, mpi, "libweir.so")
    path = _native.library_directory() / mpi / "libweir.so"
    if path.exists():
        return str(path)
    there = [name for name in MPIS if (_native.library_directory() / name / "libweir.so").exists()]
    raise UsageError(
        f"this program runs with {mpi}, for which weir has no libweir.so (there is one for: "
        f"{', '.join(there) or 'none'}); "
        "expected the MPI that weir was built with, also under mpi4py"
    )


def choose_mpi() -> str:
    """Without mpi4py: the MPI that started this process, else the first that there is a library
    for."""
    for name, variables in _LAUNCHED_BY.items():
        if any(variable in os.environ for variable in variables):
            return name
    return next((name for name in MPIS if (_native.library_directory() / name / "libweir.so")
        .exists()), MPIS[0])


def load(mpi: str) -> Library:
    """libweir.so of this MPI; a library of another MPI in the same process is refused, as two MPIs
    cannot both be right."""
    global _loaded
    if _loaded is not None and _loaded.mpi != mpi:
        raise UsageError(
            f"weir.output was begun with {_loaded.mpi}; it cannot go on with {mpi} in the same "
            f"process")
    if _loaded is None:
        _loaded = Library(library_path(mpi), mpi)
    return _loaded


_loaded: Library | None = None
