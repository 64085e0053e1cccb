# SPDX-License-Identifier: Apache-2.0
"""A model of one rank: round.py CONFIG FIELD.npy PATH writes the field, [record, level, y, x] of
float32 or float64, as `t` of the stream `history`."""

from __future__ import annotations

import sys

sys.modules["mpi4py"] = None  # type: ignore[assignment]  # a rank alone needs none

import numpy as np  # noqa: E402

from weir import output  # noqa: E402

config, data, path = sys.argv[1:4]
values = np.load(data)
records, levels, ny, nx = values.shape
with output.init(config) as context:
    grid = context.lonlat_grid("globe", np.arange(nx) * 360 / nx, 88 - np.arange(ny) * 176 / ny)
    part = grid.block("all", 0, nx, 0, ny)
    axis = context.axis("plev", 100.0 * np.arange(levels, 0, -1), "hPa",
        standard_name="air_pressure")
    field = part.field("t", values.dtype, axes=[axis], standard_name="air_temperature", units="K",
        missing_value=-9e9)
    context.stream("history", path, [field])
    for record in range(records):
        with context.step(3600.0 * record):
            field.put(values[record])
