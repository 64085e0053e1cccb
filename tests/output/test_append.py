# SPDX-License-Identifier: Apache-2.0
"""existing = "append": a run's frames follow those of a run before, when the file is what the run
would write; else it stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
import xarray

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
