# SPDX-License-Identifier: Apache-2.0
"""A model that is only its output: temperature on three levels and surface pressure of a small
globe, every hour for six hours. The same fields as examples/c/output.c and
examples/fortran/output.f90 write, and the same files to the byte.

    mpirun -n 4 python output.py [output.toml]      # with mpi4py; without it on one rank: python
    output.py
"""

import sys

import numpy as np

from weir import output

NX, NY, LEVELS, STEPS = 36, 18, 3, 7


def share(n: int, parts: int, part: int) -> tuple[int, int]:
    """First and count of this rank's columns or rows: blocks as equal as possible."""
    first = n * part // parts
    return first, n * (part + 1) // parts - first


def value(i: np.ndarray, j: np.ndarray, level: int, step: int) -> np.ndarray:
    """Any numbers, the same in all three languages and exact in float32."""
    return 250.0 + ((j * NX + i) * 7 % 1013 + level * 40 + step * 3) / 8.0


def block(comm) -> tuple[int, int, int, int]:
    """i0, ni, j0, nj of this rank."""
    if isinstance(comm, int):  # no mpi4py: a Fortran handle, and nobody to share with
        return 0, NX, 0, NY
    from mpi4py import MPI

    across, along = MPI.Compute_dims(comm.size, 2)
    return (*share(NX, across, comm.rank % across), *share(NY, along, comm.rank // across))


def run(context: output.Context) -> None:
    i0, ni, j0, nj = block(context.comm)
    context.set_time("2026-11-21 00:00:00", "proleptic_gregorian")
    context.set_attributes(title="output example")
    grid = context.lonlat_grid("globe", 10.0 * np.arange(NX), -85.0 + 10.0 * np.arange(NY))
    plev = context.axis("plev", [850, 500, 250], "hPa", standard_name="air_pressure",
        positive="down")
    blocks = grid.block("blocks", i0, ni, j0, nj)
    ta = blocks.field("ta", np.float32, [plev], units="K", standard_name="air_temperature")
    ps = blocks.field("ps", np.float64, units="Pa", standard_name="surface_air_pressure")
    context.stream("history", "history_%Y%m%d%H.nc", [ta, ps], every_s=3600, rotation=3)
    j, i = np.meshgrid(np.arange(j0, j0 + nj), np.arange(i0, i0 + ni), indexing="ij")
    for step in range(STEPS):
        with context.step(3600.0 * step):
            ta.put(np.stack([value(i, j, level, step) for level in range(LEVELS)])
                .astype(np.float32))
            ps.put(100000.0 + value(i, j, 0, step))


def main() -> None:
    context = output.init(sys.argv[1] if len(sys.argv) > 1 else None)
    if context is not None:  # None on ranks that have been servers: all is written then
        with context:
            run(context)


main()
