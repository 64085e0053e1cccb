# SPDX-License-Identifier: Apache-2.0
"""Handles of the output library as objects. The context owns all of them, as in C."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from weir.output import _mpi
from weir.output._errors import ArgumentError, OrderError
from weir.output._library import Library, WeirCosts

TYPES = {
    np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.int32): 2, np.dtype(np.int64): 3,
    np.dtype(np.int16): 4,
    np.dtype(np.int8): 5,
}  # fmt: skip
OPERATIONS = ("instant", "mean", "minimum", "maximum", "accumulate")


def init(config: str | os.PathLike[str] | None = None, comm: Any = None) -> Context | None:
    """[collective over comm] Begin. None on ranks that have been servers: when it returns there,
    the model has finalized and all is written.

    config: a TOML file or a namelist in WRF's names; None: what WEIR_OUTPUT_CONFIG names, else mode
    serial. comm: an mpi4py communicator; None: the world. Raises ConfigError on all ranks before
    anything is written; UsageError when mpi4py's MPI is none that libweir is built for.
    """
    library, handle, mpi4py = _mpi.begin(comm)
    model, context = ctypes.c_int(), ctypes.c_void_p()
    path = os.fsencode(config) if config is not None else b""
    library.weir_init_f(handle, path, ctypes.byref(model), ctypes.byref(context))
    return Context(library, context, _mpi.communicator(mpi4py, model.value)) if context else None


def serve(config: str | os.PathLike[str] | None = None, comm: Any = None) -> None:
    """[collective over comm, with the others' init] This rank is a server and nothing else, of a
    job of several programs (MPMD); the others may be in any language. Returns when the model has
    finalized and all is written. Raises ConfigError, LostError, OrderError."""
    library, handle, _ = _mpi.begin(comm)
    library.weir_serve_f(handle, os.fsencode(config) if config is not None else b"")


@dataclass(frozen=True)
class Costs:
    """What output has cost this rank so far; see weir_costs in include/weir/context.h."""

    put_s: float
    wait_s: float
    end_step_s: float
    final_s: float
    put_bytes: int
    frames: int


def _costs_of(costs: WeirCosts) -> Costs:
    return Costs(*(getattr(costs, name) for name, _ in WeirCosts._fields_))


def _text(text: str) -> bytes:
    return text.encode()


def _doubles(values: ArrayLike, what: str, dimensions: int = 1) -> tuple[Any, np.ndarray]:
    """A pointer for C and the array that it points to, which must live as long."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise ArgumentError(f"{what} has {array.ndim} dimensions; expected {dimensions}")
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), array


def _type_of(dtype: DTypeLike) -> int:
    number = TYPES.get(np.dtype(dtype))
    if number is None:
        raise ArgumentError(
            f"dtype {np.dtype(dtype)}: expected one of {', '.join(str(t) for t in TYPES)}, in the "
            f"machine's byte order")
    return number


class _Thing:
    def __init__(self, library: Library, context: Context):
        self._library, self._context, self._handle = library, context, ctypes.c_void_p()

    def _made(self) -> ctypes._Pointer:
        return ctypes.byref(self._handle)

    def _alive(self) -> ctypes.c_void_p:
        self._context._alive()
        return self._handle


class Context:
    """One model component and everything it writes. A context manager: the end of the block
    finalizes; one that is left by an exception abandons."""

    def __init__(self, library: Library, handle: ctypes.c_void_p, comm: Any):
        self._library, self._handle = library, handle
        # to compute with: an mpi4py communicator, which finalize frees; a Fortran handle without
        # mpi4py
        self.comm = comm
        self._costs: Costs | None = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finalize()
        else:
            self.abandon()

    def _alive(self) -> ctypes.c_void_p:
        if not self._handle:
            raise OrderError("the context has been finalized")
        return self._handle

    def set_time(self, reference: str, calendar: str = "proleptic_gregorian") -> None:
        """[collective] The reference of all times ("2026-11-21 00:00:00") and the CF name of the
        calendar."""
        self._library.weir_context_set_time(self._alive(), _text(reference), _text(calendar))

    def set_attributes(self, **attributes: str | float) -> None:
        """[collective] Global attributes of every file."""
        for name, value in attributes.items():
            if isinstance(value, str):
                self._library.weir_context_set_text(self._alive(), _text(name), _text(value))
            else:
                self._library.weir_context_set_number(self._alive(), _text(name), float(value))

    def lonlat_grid(self, name: str, lon: ArrayLike, lat: ArrayLike) -> Grid:
        """[collective] Regular longitudes and latitudes, in degrees."""
        return self._rectangular("weir_grid_create_lonlat", name, lon, lat)

    def plane_grid(self, name: str, x: ArrayLike, y: ArrayLike) -> Grid:
        """[collective] A plane, in metres."""
        return self._rectangular("weir_grid_create_plane", name, x, y)

    def _rectangular(self, call: str, name: str, x: ArrayLike, y: ArrayLike) -> Grid:
        grid = Grid(self._library, self)
        (px, x_kept), (py, y_kept) = _doubles(x, "the first coordinate"), _doubles(y,
            "the second coordinate")
        getattr(self._library, call)(self._alive(), _text(name), x_kept.size, px, y_kept.size, py,
            grid._made())
        return grid

    def gaussian_grid(self, name: str, nx: int, ny: int) -> Grid:
        """[collective] A regular Gaussian grid of ny = 2 N latitudes."""
        grid = Grid(self._library, self)
        self._library.weir_grid_create_gaussian(self._alive(), _text(name), nx, ny, grid._made())
        return grid

    def curvilinear_grid(self, name: str, nx: int, ny: int) -> Grid:
        """[collective] nx x ny points whose places Grid.set_lonlat gives."""
        grid = Grid(self._library, self)
        self._library.weir_grid_create_curvilinear(self._alive(), _text(name), nx, ny, grid._made())
        return grid

    def unstructured_grid(self, name: str, size: int) -> Grid:
        """[collective] Cells whose places Grid.set_lonlat gives."""
        grid = Grid(self._library, self)
        self._library.weir_grid_create_unstructured(self._alive(), _text(name), size, grid._made())
        return grid

    def axis(self, name: str, values: ArrayLike, units: str = "1", bounds: ArrayLike | None = None,
            **attributes: str) -> Axis:
        """[collective] A dimension beside the horizontal and time; bounds[size][2]; attributes:
        positive, standard_name, ..."""
        axis = Axis(self._library, self)
        pointer, kept = _doubles(values, f"axis {name}")
        self._library.weir_axis_create(self._alive(), _text(name), kept.size, pointer, _text(units),
            axis._made())
        axis.size = kept.size
        for key, value in attributes.items():
            self._library.weir_axis_set_text(axis._handle, _text(key), _text(value))
        if bounds is not None:
            pointer, pairs = _doubles(bounds, f"bounds of axis {name}", dimensions=2)
            if pairs.shape != (kept.size, 2):
                raise ArgumentError(
                    f"bounds of axis {name} have shape {pairs.shape}; expected {(kept.size, 2)}")
            self._library.weir_axis_set_bounds(axis._handle, pointer)
        return axis

    def stream(
        self,
        name: str,
        path: str,
        fields: Iterable[Field | tuple[Field, str] | tuple[Field, str, str]] = (),
        *,
        format: str = "",
        every_s: float | None = None,
        every_steps: int | None = None,
        rotation: int | str = 0,
        existing: str = "replace",
    ) -> Stream:
        """[collective] A series of files. fields: a field, or a field with its operation
        (mean, minimum, maximum, accumulate) and its name in the files. rotation: frames of a file,
        0 for one file, or "day", "month", "year". existing: what becomes of a file of a run before
        that has the name, "replace", "refuse" or "append". format: a name of
        docs/reference/formats.md, "" for the first. The configuration may change everything by the
        stream's name."""
        stream = Stream(self._library, self)
        self._library.weir_stream_create(self._alive(), _text(name), os.fsencode(path),
            _text(format), stream._made())
        if every_s is not None:
            self._library.weir_stream_set_every(stream._handle, every_s)
        if every_steps is not None:
            self._library.weir_stream_set_every_steps(stream._handle, every_steps)
        if isinstance(rotation, str):
            self._library.weir_stream_set_rotation_period(stream._handle, _text(rotation))
        else:
            self._library.weir_stream_set_rotation(stream._handle, rotation)
        self._library.weir_stream_set_existing(stream._handle, _text(existing))
        for member in fields:
            stream.add(*member) if isinstance(member, tuple) else stream.add(member)
        return stream

    def end_definition(self) -> None:
        """[collective] Check and agree; the first step does it otherwise."""
        self._library.weir_context_end_definition(self._alive())

    def step(self, time_s: float) -> _Step:
        """[collective] Begin the step at this time, seconds since the reference. As ``with
        context.step(t):`` the block's end is its end."""
        self._library.weir_step(self._alive(), time_s)
        return _Step(self)

    def end_step(self) -> None:
        """[collective] End the step and return before its data are on disk (modes with servers)."""
        self._library.weir_end_step(self._alive())

    def finalize(self) -> None:
        """[collective] Wait until all is written, and free everything. A second call does nothing.
        """
        if self._handle:
            costs = WeirCosts()
            try:
                self._library.weir_finalize_costs(ctypes.byref(self._handle), ctypes.byref(costs))
            finally:
                self._costs = _costs_of(costs)

    def abandon(self) -> None:
        """End without finalize, on this rank alone: nothing more is written, files are closed and
        may be written anew. Those that are not complete keep their finished steps under their
        temporary names (weir output recover). A second call does nothing."""
        if self._handle:
            self._library.weir_abandon(ctypes.byref(self._handle))

    @property
    def costs(self) -> Costs:
        """What output has cost this rank so far; after finalize: in all."""
        if not self._handle and self._costs:
            return self._costs
        costs = WeirCosts()
        self._library.weir_context_costs(self._alive(), ctypes.byref(costs))
        return _costs_of(costs)


class _Step:
    def __init__(self, context: Context):
        self._context = context

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._context.end_step()


class Grid(_Thing):
    """A horizontal domain; see include/weir/grid.h."""

    def block(self, name: str, i0: int, ni: int, j0: int, nj: int,
            halo: Sequence[int] = (0, 0, 0, 0)) -> Decomposition:
        """[collective] This rank has columns i0 to i0 + ni - 1 and rows j0 to j0 + nj - 1. halo:
        west, east, south, north."""
        part = Decomposition(self._library, self._context)
        self._library.weir_decomposition_create_block(self._alive(), _text(name), i0, ni, j0, nj,
            part._made())
        if len(halo) != 4:
            raise ArgumentError(f"a halo of {len(halo)} numbers; expected west, east, south, north")
        if any(halo):
            self._library.weir_decomposition_set_halo(part._handle, *halo)
        return part

    def indices(self, name: str, indices: ArrayLike) -> Decomposition:
        """[collective] This rank has these points, in this order; the index of point (i, j) is j *
        nx + i."""
        part = Decomposition(self._library, self._context)
        array = np.asarray(indices)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ArgumentError(
                f"indices have {array.ndim} dimensions and dtype {array.dtype}; expected one "
                f"dimension of integers")
        kept = np.ascontiguousarray(array, dtype=np.int64)
        pointer = kept.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        self._library.weir_decomposition_create_indices(self._alive(), _text(name), kept.size,
            pointer, part._made())
        return part

    def set_mapping(self, name: str, grid_mapping_name: str,
            **attributes: str | float | Sequence[float]) -> None:
        """[collective] The grid's mapping to the earth (CF-1.11, appendix F), a variable ``name``
        of the files, with its attributes."""
        self._library.weir_grid_set_mapping(self._alive(), _text(name), _text(grid_mapping_name))
        for key, value in attributes.items():
            if isinstance(value, str):
                self._library.weir_grid_set_mapping_text(self._alive(), _text(key), _text(value))
            else:
                pointer, kept = _doubles(np.atleast_1d(value), f"{key} of grid mapping {name}")
                self._library.weir_grid_set_mapping_numbers(self._alive(), _text(key), kept.size,
                    pointer)

    def set_lonlat(self, part: Decomposition, lon: ArrayLike, lat: ArrayLike) -> None:
        """[collective] Degrees of this rank's points, in any shape with as many elements as the
        decomposition has points."""
        (plon, lon_kept), (plat, lat_kept) = _doubles(np.ravel(lon), "lon"), _doubles(np.ravel(lat),
            "lat")
        if not lon_kept.size == lat_kept.size == part.size:
            # the other ranks wait for this one
            self._library.native.weir_grid_set_lonlat(self._alive(), part._handle, None, None, None)
            raise ArgumentError(
                f"lon has {lon_kept.size} and lat {lat_kept.size} values; expected {part.size}, "
                f"this rank's points")
        self._library.weir_grid_set_lonlat(self._alive(), part._handle, plon, plat)


class Decomposition(_Thing):
    """The points of this rank; see include/weir/decomposition.h."""

    @property
    def size(self) -> int:
        """Points of this rank, without halo."""
        return self._library.native.weir_decomposition_local_size(self._alive())

    def field(
        self,
        name: str,
        dtype: DTypeLike,
        axes: Sequence[Axis] = (),
        *,
        missing_value: float | None = None,
        file_dtype: DTypeLike | None = None,
        compression: str | None = None,
        chunk: Sequence[int] | None = None,
        attributes: Mapping[str, str | float] | None = None,
        **more: str,
    ) -> Field:
        """[collective] A quantity here. axes: slowest first, as in numpy's shapes. more: units,
        standard_name, long_name, cell_methods."""
        field = Field(self._library, self._context)
        handles = (ctypes.c_void_p * max(1, len(axes)))(*(axis._handle for axis in axes))
        self._library.weir_field_create(self._alive(), _text(name), _type_of(dtype), len(axes),
            handles, field._made())
        field.name, field.dtype = name, np.dtype(dtype)
        for key, value in {**(attributes or {}), **more}.items():
            if isinstance(value, str):
                self._library.weir_field_set_text(field._handle, _text(key), _text(value))
            else:
                self._library.weir_field_set_number(field._handle, _text(key), float(value))
        if file_dtype is not None:
            self._library.weir_field_set_file_type(field._handle, _type_of(file_dtype))
        # all of its bits, which a float may not have
        if isinstance(missing_value, (int, np.integer)):
            self._library.weir_field_set_missing_int64(field._handle, int(missing_value))
        elif missing_value is not None:
            self._library.weir_field_set_number(field._handle, b"missing_value",
                float(missing_value))
        if compression is not None:
            self._library.weir_field_set_compression(field._handle, _text(compression))
        if chunk is not None:
            self._library.weir_field_set_chunk(field._handle, len(chunk),
                (ctypes.c_int64 * len(chunk))(*chunk))
        return field


class Axis(_Thing):
    """A dimension beside the horizontal and time."""

    size: int


class Field(_Thing):
    """A quantity on a decomposition."""

    name: str
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the arrays that put and get take on this rank, halo included: axes, rows, columns."""
        shape = (ctypes.c_int64 * 6)()
        return tuple(shape[: self._library.native.weir_field_array_shape(self._alive(), shape)])

    @property
    def size(self) -> int:
        """Elements of this rank, without halo."""
        return self._library.native.weir_field_local_size(self._alive())

    def _check(self, array: np.ndarray, why: str) -> None:
        if not isinstance(array, np.ndarray):
            raise ArgumentError(
                f"{why} of field {self.name}: a {type(array).__name__}; expected a numpy array")
        if array.dtype != self.dtype or not array.dtype.isnative:
            raise ArgumentError(
                f"{why} of field {self.name}: dtype {array.dtype}; expected {self.dtype}")
        if array.shape != self.shape and self.size > 0:  # without points any array does
            raise ArgumentError(
                f"{why} of field {self.name}: shape {array.shape}; expected {self.shape} (halo "
                f"included)")

    def put(self, array: np.ndarray) -> None:
        """Queue this step's data. array: of the field's dtype and shape; one that is not
        C-contiguous is copied first."""
        self._check(array, "put")
        kept = np.ascontiguousarray(array)
        self._library.weir_put(self._alive(), kept.ctypes.data)

    def get(self, path: str | os.PathLike[str], record: int = -1,
            out: np.ndarray | None = None) -> np.ndarray:
        """[collective] Read time record `record` (from 0; -1: the last) of a file into `out`, or a
        new array with zeros in its halo."""
        if out is None:
            out = np.zeros(self.shape, self.dtype)
        try:
            self._check(out, "get")
            if not (out.flags.c_contiguous and out.flags.writeable):
                raise ArgumentError(
                    f"get of field {self.name}: the array is not contiguous, or cannot be written; "
                    f"expected a C-contiguous one")
        except ArgumentError:
            # the other ranks wait for this one
            self._library.native.weir_get(self._alive(), os.fsencode(path), record, None, None)
            raise
        self._library.weir_get(self._alive(), os.fsencode(path), record, out.ctypes.data)
        return out


class Stream(_Thing):
    """A series of files."""

    def add(self, field: Field, operation: str = "instant", name: str | None = None) -> None:
        """[collective] The stream writes the field. name: in the files, where it is not the
        field's, which may be in a stream with several operations."""
        if operation not in OPERATIONS:
            raise ArgumentError(
                f"operation {operation!r} of field {field.name}: expected one of "
                f"{', '.join(OPERATIONS)}")
        self._library.weir_stream_add_field_as(self._alive(), field._handle,
            OPERATIONS.index(operation), None if name is None else _text(name))

    @property
    def is_due(self) -> bool:
        """Whether it wants data at the step that has begun."""
        return bool(self._library.native.weir_stream_is_due(self._alive()))
