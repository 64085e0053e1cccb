# SPDX-License-Identifier: Apache-2.0
"""scale_factor and add_offset: integers in files, which readers turn into the values again; what
the integers cannot hold is reported."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
import xarray
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

MODES = ["serial", "collective", "servers", "servers+parallel"]


def values(field: int, step: int, levels: int = 1) -> np.ndarray:
    level = np.arange(levels)[:, None] * 10000.0
    return (field * 100000 + level + np.arange(240) % 997 + step * 0.25).reshape(levels, 10, 24)


@pytest.mark.parametrize("form", ["cdf5", "cdf2", "netcdf4", "zarr"])
def test_readers_get_the_values_within_half_a_scale_factor(model, form):
    model(3, "servers", levels=1, packed=300, format=form, path="o").fine()
    path = model.directory / "o"
    opened = xarray.open_zarr(path, decode_times=False) if form == "zarr" else xarray.open_dataset(
        path, decode_times=False)
    with opened as data:
        for field in (0, 1):
            assert data[f"f{field}"].encoding["dtype"] == np.int16
            for step in range(4):
                there = data[f"f{field}"][step].values
                missing = values(field, step) == values(field, 3)[0, 0, 17]
                assert np.array_equal(np.isnan(there), missing) and (missing.any() == (step == 3))
                assert np.abs(there - values(field, step))[~missing].max() <= 0.15 * (1 + 1e-9)
    if form == "zarr":
        return
    with Dataset(path) as file:
        masked = file["f1"][3]
        assert masked.mask.sum() == 1 and masked.mask[0, 0, 17]
        assert np.abs(masked - values(1, 3)).max() <= 0.15 * (1 + 1e-9)
        file.set_auto_maskandscale(False)
        assert file["f1"]._FillValue == -32767 and file["f1"][3, 0, 0, 17] == -32767


def test_cdo_reads_what_was_put(model):
    if shutil.which("cdo") is None:
        pytest.skip("needs cdo")
    model(2, levels=1, packed=250, path="o.nc", format="cdf2", lonlat=1).fine()
    command = ["cdo", "-s", "outputf,%.2f,1", "-seltimestep,2", "-selname,f0", "o.nc"]
    text = subprocess.run(command, cwd=model.directory, capture_output=True, text=True,
        check=True).stdout
    assert [float(word) for word in text.split()] == values(0, 1).ravel().tolist()


@pytest.mark.parametrize("mode", MODES)
def test_values_beyond_the_integers_are_reported_and_missing(model, mode):
    ran = model(4, mode, levels=3, packed=300, path="o.nc", steps=2)
    printed = [message for _, code, message in ran.said[0] if code == "WEIR_E_VALUE"]
    assert printed and set(ran.codes(0)) == {"WEIR_E_VALUE"}
    text = "\n".join(printed)
    assert (
        "field 'f1': 480 values are outside of what int16 packed with scale_factor 0.3 and "
        "add_offset 99990 holds "
        "(the first: level 1, row 0, column 0, counted from 0, is 110000), written as the missing "
        "value -32767" in text
    )
    with Dataset(model.directory / "o.nc") as file:
        assert file["f1"][0].mask.sum() == 480 and not file["f1"][0, 0].mask.any()


def test_a_model_reads_packed_values_back(model):
    model(3, "collective", levels=1, packed=250, path="r.nc").fine()
    for ranks in (1, 2):
        done = model(ranks, path="r.nc", levels=1, get=3, packed=250).fine().done
        assert done.stdout.count(" 0 values wrong of") == 2 * ranks


def test_means_are_packed_too(model):
    model(3, "servers", levels=1, packed=250, mean=1, every_steps=2, steps=5, path="m.nc").fine()
    with Dataset(model.directory / "m.nc") as file:
        assert not np.ma.getmaskarray(file["f0"][1])[0, 0, 17]  # of two steps one is missing there
        expected = (values(0, 3) + values(0, 4)) / 2
        expected[0, 0, 17] = values(0, 4)[0, 0, 17]
        same = expected != values(0, 3)[0, 0, 17]
        assert np.abs(file["f0"][1] - expected)[same].max() <= 0.125


def test_floats_in_files_are_not_packed(model):
    """Their scale_factor would have to be undone by readers, and was never applied."""
    source = model.program_source.read_text().replace("WEIR_INT16);\n      SAY",
        "WEIR_FLOAT32);\n      SAY")
    assert source != model.program_source.read_text()
    changed = model.directory / "floats.c"
    changed.write_text(source)
    flags = (f"-I{model.root / 'include'}", f"-L{model.libraries}", f"-Wl,-rpath,{model.libraries}",
        "-lweir")
    model.program = model.mpi.cc(changed, *flags, name="model-floats")
    ran = model(2, levels=1, packed=250, path="o.nc")
    assert ran.said[1][0][
        1] == "WEIR_E_ARGUMENT" and "field 'f0': scale_factor and add_offset pack" in ran.said[1][
        0][2]
