# SPDX-License-Identifier: Apache-2.0
"""Every format in every mode, and a recorder in the process."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray

pytestmark = pytest.mark.any_mpi

MODES = [(1, "serial", {}), (4, "collective", {}),
    (5, "servers+parallel", {"WEIR_OUTPUT_SERVERS_PER_GROUP": 2}), (3, "servers", {})]


def content(path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


@pytest.mark.parametrize("form", ["cdf2", "netcdf4", "zarr"])
def test_a_format_has_the_same_bytes_in_every_mode(model, form):
    first = None
    for ranks, mode, options in MODES:
        path = model.directory / mode
        model(ranks, mode, format=form, kind="scatter", nx=100, ny=50, steps=3, mean=1, lonlat=1,
            mapping=1, path=mode, **options).fine()
        first = first or content(path)
        assert content(path) == first, mode
    check_mapping(path, form)


def check_mapping(path, form) -> None:
    """The grid mapping of model.c, as xarray finds it."""
    engine = "zarr" if form == "zarr" else "netcdf4"
    if form == "zarr":
        pytest.importorskip("zarr", reason="needs the test extra, on Python 3.11 or newer")
    with xarray.open_dataset(path, engine=engine, decode_coords="all") as data:
        assert data["f0"].encoding["grid_mapping"] == "crs" and data["f1"].encoding[
            "grid_mapping"] == "crs"
        # decode_coords="all" makes it a coordinate, if all that the fields name is there
        crs = data["crs"]
        assert "crs" in data.coords and crs.dims == () and crs.dtype == np.int32 and crs.item() == 0
        assert np.asarray(crs.attrs["standard_parallel"]).tolist() == [30, 60]
        assert (crs.attrs["grid_mapping_name"],
            crs.attrs["earth_radius"]) == ("lambert_conformal_conic", 6371229)
        assert crs.attrs["long_name"] == "of the model" and "grid_mapping" not in data[
            "lon"].encoding


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "zarr"])
def test_a_run_goes_on_with_a_file_of_the_same_grid_mapping_only(model, form, tmp_path):
    (tmp_path / "o.toml").write_text('[stream.history]\nexisting = "append"\n')
    options = {"format": form, "lonlat": 1, "path": "o", "steps": 1, "WEIR_OUTPUT_CONFIG": "o.toml"}
    model(1, mapping=1, **options).fine()
    model(1, mapping=1, first=1, **options | {"steps": 2}).fine()
    check_mapping(tmp_path / "o", form)
    ran = model(1, mapping=2, first=2, **options | {"steps": 3})
    assert any("crs" in message and "is not what the stream writes now" in message
        for _, _, message in ran.said[0]), ran.said


def test_a_recorder_gets_what_output_does(model, cc):
    recorder = cc((model.program_source.parent / "recorder.c"), "-shared", "-fPIC",
        name="recorder.so")
    ran = model(3, "servers", steps=6, path="o.nc", LD_PRELOAD=str(recorder)).fine()
    events: dict[str, tuple[int, int]] = {}
    for name, count, size in re.findall(r"^event (\w+) (\d+) (\d+)$", ran.done.stdout, re.M):
        before = events.get(name, (0, 0))
        events[name] = (before[0] + int(count), before[1] + int(size))
    total = 6 * 2 * 3 * 240 * 4  # steps, fields, levels, points, bytes
    assert events["put"] == (6 * 2 * 2, total)
    assert events["write"][1] == events["transpose"][1] == total
    assert (events["frame"][0], events["end_step"][0], events["serve"][0],
        events["finalize"][0]) == (6, 12, 1, 2)
    assert "wrong" not in events
