# SPDX-License-Identifier: Apache-2.0
"""A model of one rank that writes and reads files: weir_one_rank.py JOBS does each of a list of
jobs (JSON) in a context of its own, and prints a list of what came of them: "" or the error; of
`get` values go to PATH.npy. Longitudes in rows are of a curvilinear grid. A job: {"put": PATH} or
{"get": PATH}, with lon, lat, levels, level_units, units, cells, axis, attributes, standard_name,
config, type, file_type, missing, format, existing, operation and begin (s), and others: fields
beside it, as keywords, with levels and axis, "on" its axis, or on none. With "hole" the first value
is the missing one; "meanwhile" is a command that runs before the last record, "records" how many
there are (2). "operations" of the field: lists of an operation and a name in the files."""

from __future__ import annotations

import json
import subprocess
import sys

if __name__ == "__main__":
    sys.modules["mpi4py"] = None  # type: ignore[assignment]  # a rank alone needs none

import numpy as np  # noqa: E402

import weir  # noqa: E402
from weir import output  # noqa: E402

RECORDS = 2


def values_of(record: int, shape: tuple[int, ...]) -> np.ndarray:
    return (250 + record + np.arange(np.prod(shape)).reshape(shape) / 8).astype("f4")


def fields_of(context, job):
    if "cells" in job:
        grid = context.unstructured_grid("globe", job["cells"])
        part = grid.indices("all", np.arange(job["cells"]))
        if "lon" in job:
            grid.set_lonlat(part, job["lon"], job["lat"])
    elif np.ndim(job["lon"]) == 2:
        ny, nx = np.shape(job["lon"])
        grid = context.curvilinear_grid("globe", nx, ny)
        part = grid.block("all", 0, nx, 0, ny)
        grid.set_lonlat(part, job["lon"], job["lat"])
    else:
        grid = context.lonlat_grid("globe", job["lon"], job["lat"])
        part = grid.block("all", 0, len(job["lon"]), 0, len(job["lat"]))
    axes = []
    if "levels" in job:
        axes = [context.axis("lev", job["levels"], job.get("level_units", "hPa"),
            **job.get("axis", {"standard_name": "air_pressure"}))]
    types = {"file_dtype": job["file_type"]} if "file_type" in job else {}
    fields = [part.field("t", job.get("type", "f4"), axes, units=job.get("units", "K"),
        missing_value=job.get("missing"), **types,
        attributes=job.get("attributes", {}),
        standard_name=job.get("standard_name", "air_temperature"))]
    for other in job.get("others", []):
        own = dict(other)
        levels, here = own.pop("levels", None), axes if own.pop("on", None) else []
        if levels is not None:
            here = [context.axis("lev_" + own["name"], levels, "1", **own.pop("axis"))]
        fields.append(part.field(dtype="f4", axes=here, **own))
    return fields


def do(job) -> str:
    try:
        with output.init(job.get("config")) as context:
            field, *others = fields_of(context, job)
            if "get" in job:
                np.save(job["get"] + ".npy", field.get(job["get"], job.get("record", -1)))
                return ""
            stream = {key: job[key] for key in ("format", "existing", "every_s") if key in job}
            members = [(f, job.get("operation", "instant")) for f in (field, *others)]
            if "operations" in job:
                members = [(field, *operation) for operation in job["operations"]]
            context.stream("history", job["put"], members, **stream)
            records = job.get("records", RECORDS)
            for record in range(records):
                if record == records - 1 and "meanwhile" in job:
                    subprocess.run(job["meanwhile"], shell=True, check=True)
                with context.step(job.get("begin", 0) + 3600.0 * record):
                    for f in (field, *others):
                        values = values_of(record, f.shape)
                        if f is field and job.get("hole"):
                            values = values.astype(job.get("type", "f4"))
                            values.flat[0] = job["missing"]
                        f.put(values)
    except weir.Error as error:
        return str(error)
    return ""


def main() -> None:
    print(json.dumps([do(job) for job in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    main()
