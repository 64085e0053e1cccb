# SPDX-License-Identifier: Apache-2.0
"""existing = "append": a run's frames follow those of a run before, when the file is what the run
would write; else it stays as it is."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
import xarray

pytestmark = pytest.mark.any_mpi

FORMS = {"cdf2": "none", "cdf5": "none", "netcdf4": "none", "netcdf4 packed": "deflate:3",
    "zarr": "zstd:2"}


@pytest.fixture
def run(model):
    """``run("o.nc", form, first, steps, mode="serial", ...)``: steps `first` to `steps` go to the
    end of the file."""

    def go(path: str, form: str, first: int, steps: int, mode: str = "serial", ranks: int = 2,
            **options):
        config = (
            f'[stream.history]\nformat = "{form.split()[0]}"\ncompression = '
            f'"{options.pop("compression", FORMS[form])}"\nexisting = "append"\n'
        )
        (model.directory / "o.toml").write_text(config)
        return model(ranks, mode, path=path, first=first, steps=steps, WEIR_OUTPUT_CONFIG="o.toml",
            **options)

    return go


def contents(path) -> dict[str, np.ndarray]:
    opened = xarray.open_zarr(path, decode_times=False) if path.is_dir() else xarray.open_dataset(
        path, decode_times=False)
    with opened as data:
        return {name: data[name].values for name in data.variables}


@pytest.mark.parametrize("form", FORMS)
def test_two_runs_write_what_one_writes(model, run, form):
    run("whole", form, 0, 7).fine()
    run("parts", form, 0, 3).fine()
    run("parts", form, 3, 5, "servers+parallel", 4, WEIR_OUTPUT_SERVERS_PER_GROUP=2).fine()
    run("parts", form, 5, 7, "collective", 3).fine()
    whole, parts = contents(model.directory / "whole"), contents(model.directory / "parts")
    assert parts["time"].tolist() == [60.0 * step for step in range(7)] and whole.keys(
        ) == parts.keys()
    for name, values in whole.items():
        assert np.array_equal(values, parts[name]), name
    if form.startswith("cdf"):
        assert (model.directory / "whole").read_bytes() == (model.directory / "parts").read_bytes()
    assert not list(model.directory.glob(".*"))


@pytest.mark.parametrize("form", ["cdf5", "netcdf4 packed", "zarr"])
def test_a_file_that_the_run_would_not_write_stays_as_it_is(model, run, form):
    run("o", form, 0, 3).fine()
    before = contents(model.directory / "o")
    cases = [
        ({"first": 2, "steps": 4},
            "its last time is 120 s, this run's first in it 120 s, which is not later"),
        ({"first": 3, "steps": 4, "fields": 3}, "f2"),
        ({"first": 3, "steps": 4, "nx": 30}, "lon"),
        ({"first": 3, "steps": 4, "type": "double"}, "f0"),
    ]
    if form != "cdf5":
        cases.append(({"first": 3, "steps": 4, "compression": "deflate:1" if form == "zarr"
            else "none"}, "f0"))
    for options, says in cases:
        ran = run("o", form, **options)
        for rank in (0, 1):
            assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"}, (options, ran.said)
            assert "cannot go on with" in ran.said[rank][0][2] and says in ran.said[rank][0][2], (
                options, ran.said)
        after = contents(model.directory / "o")
        assert before.keys() == after.keys() and all(np.array_equal(before[name], after[name])
            for name in before), options


def test_a_server_that_is_killed_leaves_the_file_to_the_next(model, run):
    """Group 0 has begun to append when it is killed; group 1 goes on with its copy, behind the
    records of the run before."""
    if model.mpi.name == "mpich":
        pytest.skip("MPICH's launcher ends the whole job when a rank is killed, with "
                    "-disable-auto-cleanup too")
    run("o", "cdf5", 0, 3).fine()
    ran = run("o", "cdf5", 3, 13, "servers", 5, survive=True, WEIR_OUTPUT_GROUPS=2, kill_step=6,
        kill_rank=3, pause_ms=20)
    assert any("take its files over" in m for _, _, m in ran.said[0])
    after = contents(model.directory / "o")
    steps = [round(time / 60) for time in after["time"]]
    assert steps[:3] == [0, 1, 2] and steps[-1] == 12 and len(steps) >= 11 and steps == sorted(
        set(steps))
    for record, step in enumerate(steps):
        assert after["f1"][record, 2, 9, 23] == 120000 + 239 + step * 0.25


HERE = {"lon": [15.0 * i for i in range(24)], "lat": [82.5 - 15 * j for j in range(12)],
    "levels": [850, 500], "put": "o", "existing": "append"}
RECORDS_S = 7200  # of a job of weir_one_rank.py


@pytest.mark.parametrize("form", ["grib2", "grib1"])
def test_messages_of_another_kind_are_not_appended(one_rank, tmp_path, form):
    """Another grid of as many points, edition, packing, parameter, centre, level or operation."""
    origin = "centre = 78" if form == "grib2" else "generatingProcessIdentifier = 7"
    configs = {"second": 'grib = { packingType = "grid_second_order" }', "centre":
        f"grib = {{ {origin} }}"}
    for name, line in configs.items():
        (tmp_path / name).write_text(f"[stream.history]\n{line}\n")
    later = {**HERE, "format": form, "begin": RECORDS_S}
    assert one_rank({**HERE, "format": form}) == [""]
    before = (tmp_path / "o").read_bytes()
    cases = {
        "is on a grid from": {"lon": [10.0 * i for i in range(24)]},
        "field 't', its grid": {"lat": HERE["lat"][::-1]},
        f"edition {form[-1]} of GRIB": {"format": "grib1" if form == "grib2" else "grib2"},
        "field 't', its packing": {"config": str(tmp_path / "second")},
        "field 't', its centre or tables": {"config": str(tmp_path / "centre")},
        "is not in the file (parameter": {"attributes": {"GRIB_paramId": 3014}},
        "is not in the file (parameter ": {"levels": [850, 250]},
        "another field (parameter": {"levels": [850]},
        "field 't', its": {"operation": "mean"},
    }
    for says, said in zip(cases, one_rank(*({**later, **case} for case in cases.values())),
            strict=True):
        assert "cannot go on with" in said and says in said, (says, said)
        assert "write to another path and join the files (cat FILE ANOTHER), or run with" in (
            said), said
    assert (tmp_path / "o").read_bytes() == before
    assert one_rank(later, {**HERE, "get": "o", "record": 3}) == ["", ""]
    assert (tmp_path / "o").read_bytes().startswith(before)


@pytest.mark.parametrize(("form", "key", "is_"), [
    ("grib1", "iDirectionIncrement=14999", "distance of longitudes: 14.999 degrees"),
    ("grib2", "jDirectionIncrement=14000000", "distance of latitudes: 14 degrees"),
    ("grib2", "ijDirectionIncrementGiven=0", "flags of resolution and components: 0"),
    ("grib2", "shapeOfTheEarth=1", "shape of the earth: 1"),
])
def test_what_differs_of_a_grid_is_said_in_numbers(one_rank, tmp_path, form, key, is_):
    """Of a file that another program has changed, or made."""
    assert one_rank({**HERE, "format": form, "put": "mine"}) == [""]
    subprocess.run(["grib_set", "-s", key, "mine", "o"], cwd=tmp_path, check=True)
    (said,) = one_rank({**HERE, "format": form, "begin": RECORDS_S})
    assert f"field 't', its grid ({is_} in the file, " in said and "in this run" in said, said
    assert "join the files (cat FILE ANOTHER)" in said


@pytest.mark.parametrize(("form", "tool"), [("cdf5", "ncks -d time,0,N IN OUT"),
    ("zarr", "xarray.open_zarr(IN).isel(time=slice(N)).to_zarr(OUT)"),
    ("grib2", "grib_copy -w validityDate=DATE,validityTime=TIME1/TIME2 IN OUT")])
def test_the_tool_that_is_named_takes_later_records_out(one_rank, tmp_path, form, tool):
    first, said = one_rank({**HERE, "format": form}, {**HERE, "format": form, "begin": 3600})
    assert first == "" and "which is not later" in said and tool in said, said
    if form == "zarr":
        # `weir` appends to stores as it writes them: xarray's are for reading
        xarray.open_zarr(tmp_path / "o").isel(time=slice(1)).to_zarr(tmp_path / "x")
        assert one_rank({**HERE, "get": "x"}) == [""]
        return
    words = {"TIME1/TIME2": "0/30", "DATE": "20000101", "0,N": "0,0", "IN": "o", "OUT": "x"}
    for word, value in words.items():
        tool = tool.replace(word, value)
    if shutil.which(tool.split()[0]) is None:
        pytest.skip(f"{tool.split()[0]} is not installed")
    subprocess.run(tool.split(), cwd=tmp_path, check=True, timeout=300)
    assert one_rank({**HERE, "get": "x"}) == [""]
    if form == "grib2":
        assert one_rank({**HERE, "put": "x", "format": form, "begin": 3600}) == [""]
