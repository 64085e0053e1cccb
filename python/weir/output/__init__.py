# SPDX-License-Identifier: Apache-2.0
"""The output library for Python programs with MPI: numpy arrays into files, by the same servers as
for C and Fortran.

    import numpy as np
    from weir import output

    context = output.init("output.toml")          # over MPI.COMM_WORLD when mpi4py is there if
    context is not None:                       # None: this rank has been a server, and all is
    written
        with context:
            grid = context.lonlat_grid("atmosphere", lon, lat) part = grid.block("blocks", i0, ni,
            j0, nj) t2 = part.field("t2", np.float32, units="K", standard_name="air_temperature")
            context.stream("history", "out/history_%Y%m%d%H.nc", every_s=3600, rotation=1,
            fields=[t2]) for step in range(steps):
                with context.step(step * 600.0):
                    t2.put(array)                 # array.shape == t2.shape

Indices count from 0. Every call raises a subclass of weir.output.OutputError; calls of the program
on all ranks (init, definitions, step, end_step, finalize, get) raise the same on all ranks.
"""

from weir.output._check import check, recover
from weir.output._context import (
    Axis,
    Context,
    Costs,
    Decomposition,
    Field,
    Grid,
    Stream,
    init,
    serve,
)
from weir.output._errors import (
    ArgumentError,
    ConfigError,
    DecompositionError,
    FileError,
    FormatError,
    LostError,
    MissingError,
    MpiError,
    OrderError,
    OutputError,
    OutputMemoryError,
    RemoteError,
    ValueLostError,
)

__all__ = [
    "ArgumentError",
    "Axis",
    "ConfigError",
    "Context",
    "Costs",
    "Decomposition",
    "DecompositionError",
    "Field",
    "FileError",
    "FormatError",
    "Grid",
    "LostError",
    "MissingError",
    "MpiError",
    "OrderError",
    "OutputError",
    "OutputMemoryError",
    "RemoteError",
    "Stream",
    "ValueLostError",
    "check",
    "init",
    "recover",
    "serve",
]
