# SPDX-License-Identifier: Apache-2.0
"""The blocks workload: the file it leaves, and what weir says of it, known beforehand for each
library and MPI."""

from __future__ import annotations

import json

import numpy as np
import pytest
from wall_sums import splits_of

pytestmark = pytest.mark.any_mpi

RANKS, BLOCK, TRANSFER, SEGMENTS = 3, 8192, 4096, 2
SIZES = ("--block", BLOCK, "--transfer", TRANSFER, "--segments", SEGMENTS)
BYTES, CALLS = RANKS * SEGMENTS * BLOCK, RANKS * SEGMENTS * BLOCK // TRANSFER
LIBRARIES = {"mpiio": None, "hdf5": "hdf5", "netcdf4": "netcdf", "pnetcdf": "pnetcdf"}


def words(path, api: str) -> np.ndarray:
    if api == "mpiio":
        return np.fromfile(path, "<u8")
    from netCDF4 import Dataset

    # a file of HDF5 alone has no names of dimensions; netCDF makes some up
    with Dataset(path) as file:
        return np.asarray(file["words"][:].data)


@pytest.fixture(params=LIBRARIES)
def api(request, case):
    there = case.start("blocks", 1, "--help").ok().stdout
    if request.param not in there:
        pytest.skip(f"{request.param} is packaged for Open MPI alone")
    return request.param


@pytest.mark.parametrize("way", ["independent", "collective"])
def test_the_file_and_what_is_said_of_it(case, weir, mpi, api, way, tmp_path, pattern):
    options = ("--api", api, "--file", tmp_path / "blocks.nc", *SIZES,
        *(["--collective"] if way == "collective" else []))
    command = mpi.launch(RANKS, case.program("blocks"), *options)
    weir("trace", "-o", tmp_path / "run", "--", *command, env=mpi.env).ok()
    assert (words(tmp_path / "blocks.nc", api) == pattern(5, 0, BYTES // 8)).all()

    [wall] = splits_of(tmp_path / "run")
    assert len(wall.locations) == RANKS and (wall.of_ranks.communication_ns > 0).all()
    said = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    [box] = [one for one in said["mpi_io"] if one["file"].endswith("blocks.nc")]
    if api == "mpiio":
        for direction in ("writes", "reads"):
            assert (box[direction][way], box[direction]["bytes"]) == (CALLS, BYTES)
    else:
        [variable] = [one for one in said["variables"] if one["variable"].strip("/") == "words"]
        assert (variable["library"], variable["ranks"]) == (LIBRARIES[api], RANKS)
        assert [variable[key] for key in ("puts", "put_bytes", "gets", "get_bytes")] == [CALLS,
            BYTES, CALLS, BYTES]
    # through whatever calls of MPI-IO, each byte of the variable is asked for
    for direction in ("writes", "reads"):
        assert box[direction]["bytes"] >= BYTES and box[direction]["system_bytes"] >= BYTES
