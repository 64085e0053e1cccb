# SPDX-License-Identifier: Apache-2.0
"""The operations of the trace, as the native reader was compiled with them (native/wire/ops.def).
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from functools import cache

import numpy as np

from weir.trace._abi import library

LAYER_NAMES = ("marker", "posix", "stdio", "fortran", "mpi", "layers", "output", "mpi_io",
    "pnetcdf", "netcdf", "hdf5")
MARKER, POSIX, STDIO, FORTRAN, MPI, LAYERS, OUTPUT, MPI_IO, PNETCDF, NETCDF, HDF5 = range(11)
# layer of a record: EVENTS + position of an event layer in its stack; NOTES + kind of the layer
# noted
EVENTS, NOTES = 16, 32
ERROR, SHORT, LONG, BELOW, NESTED, OF_OUTPUT, ROOT = 1, 2, 4, 8, 16, 32, 64

# Records of these tell of a part of another record's call: the other file of a copy, a request of
# a list. They carry bytes and are no calls of their own.
PARTS = ("sendfile_in", "copy_file_range_in", "splice_in", "lio_read", "lio_write", "aio_read",
    "aio_write")


@dataclass(frozen=True)
class Op:
    """One operation; op_class is R reads, W writes, O opens, C closes, M other I/O, X not I/O.

    size: what the size of a record holds (native/wire/sizes.def): data, length, filetype, ranks,
    requests, statistic, lost or number.
    """

    value: int
    name: str
    layer: int
    op_class: str
    size: str


class _Ops(dict):
    """Operations by value, read from the library when first asked for."""

    def load(self) -> _Ops:
        if not self:
            layer, op_class = c.c_uint32(), c.create_string_buffer(1)
            for value in range(256):
                name = library().weir_reader_op(value, c.byref(layer), op_class)
                if name is not None:
                    size = library().weir_reader_op_size(value).decode()
                    self[value] = Op(
                        value, name.decode(), layer.value, op_class.raw.decode(), size
                    )
        return self


OPS = _Ops()


def ops() -> dict[int, Op]:
    """All operations by value."""
    return OPS.load()


@cache
def _is_part() -> np.ndarray:
    return np.array([value in ops() and ops()[value].name in PARTS for value in range(256)])


def has_own_time(op: np.ndarray, layer: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Mask of the records whose time is I/O of their thread, and that of no other record.

    A statement of Fortran leaves it to the calls that the library makes for it: what the library
    does itself (conversion to text, copies) is no I/O. As in native/reader/record.h.
    """
    by_library = ((flags & BELOW) != 0) & ~_is_part()[op]
    return (layer != FORTRAN) & (((flags & NESTED) == 0) | by_library)


@cache
def mpi_routines() -> dict[int, str]:
    """Names of MPI's routines by value, the upper half of the size of MPI's records
    (native/wire/mpi.def)."""
    name_of = library().weir_reader_mpi_routine
    name_of.restype, name_of.argtypes = c.c_char_p, [c.c_uint32]
    names = ((value, name_of(value)) for value in range(256))
    return {value: name.decode() for value, name in names if name is not None}


@dataclass(frozen=True)
class LibraryFunction:
    """A function of netCDF-C, PnetCDF, HDF5 or MPI-IO; collective None: that varies."""

    name: str
    layer: int
    collective: bool | None


_COLLECTIVE = {b"y": True, b"n": False, b"v": None}


@cache
def library_functions() -> dict[int, LibraryFunction]:
    """Functions of netCDF-C, PnetCDF and HDF5 by the number that records have in the place of an
    offset (native/wire/functions.def, netcdf.def)."""
    number, layer, collective = c.c_uint32(), c.c_uint32(), c.create_string_buffer(1)
    found: dict[int, LibraryFunction] = {}
    for index in range(1 << 16):
        name = library().weir_reader_function(index, c.byref(number), c.byref(layer), collective)
        if name is None:
            break
        found[number.value] = LibraryFunction(name.decode(), layer.value,
            _COLLECTIVE[collective.raw])
    return found


_MPI_IO_COLLECTIVE = {f"MPI_File_{name}" for name in ("open", "close", "set_size", "preallocate",
    "set_view", "set_info", "sync")}


@cache
def mpi_io_functions() -> dict[int, LibraryFunction]:
    """Functions of MPI-IO by operation: each is one of its own."""
    return {
        value: LibraryFunction(op.name, MPI_IO, op.name in _MPI_IO_COLLECTIVE
            or "_all" in op.name or "_ordered" in op.name)
        for value, op in ops().items() if op.layer == MPI_IO
    }


@dataclass(frozen=True)
class Statistic:
    """One figure that a layer keeps per file: its name in tables and the unit."""

    name: str
    unit: str


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer and its statistics by index."""

    name: str
    statistics: dict[int, Statistic]


@cache
def layer_kinds() -> dict[int, LayerKind]:
    """All kinds of layers by number, as the native reader was compiled with them."""
    kinds, unit = {}, c.c_char_p()
    for value in range(64 - NOTES):
        name = library().weir_reader_layer(value)
        if name is not None:
            found = ((index, library().weir_reader_statistic(value, index, c.byref(unit)),
                unit.value) for index in range(32))
            figures = {index: Statistic(text.decode(), (of or b"").decode())
                for index, text, of in found if text is not None}
            kinds[value] = LayerKind(name.decode(), figures)
    return kinds


@cache
def sizes_hold(meaning: str) -> np.ndarray:
    """Mask by operation: whether the size of its records holds this (Op.size)."""
    mask = np.zeros(256, bool)
    mask[[value for value, op in ops().items() if op.size == meaning]] = True
    return mask


def op_named(name: str) -> Op:
    """The operation of that name; KeyError when there is none. Where two have one name, the one
    that is I/O."""
    found = [op for op in ops().values() if op.name == name]
    if not found:
        raise KeyError(name)
    return min(found, key=lambda op: op.op_class == "X")
