# SPDX-License-Identifier: Apache-2.0
"""Means, sums and extremes over a restart: the files of a run in parts are those of one run, or
there is an error."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

CASE = {"fields": 5, "mean": 2, "type": "double", "nx": 30, "ny": 7}


@pytest.fixture
def run(model):
    """``run("o.nc", first, steps, mode="serial", ranks=2, more="...")``: steps `first` to `steps`
    continue what is there."""

    def go(path: str, first: int, steps: int, mode: str = "serial", ranks: int = 2,
            more: str = "every_s = 240", **options):
        (model.directory / "o.toml").write_text(f'[stream.history]\nexisting = "append"\n{more}\n')
        return model(ranks, mode, path=path, first=first, steps=steps, WEIR_OUTPUT_CONFIG="o.toml",
            **(CASE | options))

    return go


def contents(directory, pattern: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob(pattern))}


WAYS = [("serial", 1, {}), ("collective", 3, {"kind": "scatter"}),
    ("servers", 4, {"WEIR_OUTPUT_GROUPS": 2, "kind": "cyclic"}),
        ("servers+parallel", 5, {"WEIR_OUTPUT_SERVERS_PER_GROUP": 2}),
        ("servers", 3, {"WEIR_OUTPUT_TRANSPORT": "two-sided"})]  # fmt: skip


@pytest.mark.parametrize(("every", "again"), [("every_s = 240", 0), ("every_steps = 4", 1)])
def test_a_run_in_parts_writes_what_one_run_writes(model, run, every, again):
    """Parts end at each of the steps of an interval; the first step of a part follows the last of
    the one before, or is it once more."""
    run("whole.nc", 0, 13, more=every).fine()
    (model.directory / "history.weir-state").unlink()
    whole = (model.directory / "whole.nc").read_bytes()
    with Dataset(model.directory / "whole.nc") as file:
        assert file["time"][:].tolist() == [240, 480, 720]
        assert file["time_bnds"][:].tolist() == [[0, 240], [240, 480], [480, 720]]
    begin = 0
    for part, end in enumerate((3, 4, 6, 8, 13)):
        mode, ranks, options = WAYS[part]
        run("parts.nc", begin, end, mode, ranks, every, **options).fine()
        begin = end - again
    # The path is a part of what a run must have in common with the one before; all else of the
    # files is the same.
    assert (model.directory / "parts.nc").read_bytes() == whole
    assert not [path.name for path in model.directory.iterdir() if path.name.startswith(".")]
    assert (model.directory / "history.weir-state").exists()


@pytest.mark.parametrize(("mode", "ranks"), [("serial", 2), ("servers", 3)])
def test_a_killed_run_goes_on_from_its_last_restart(model, run, mode, ranks):
    """The model ends its context and begins another when it writes a restart, at step 6, in the
    middle of an interval; kill -9 at step 9."""
    run("whole.nc", 0, 13).fine()
    (model.directory / "history.weir-state").unlink()
    killed = run("parts.nc", 0, 13, mode, ranks, restart_step=6, kill_step=9, kill_rank=1)
    assert killed.done.returncode != 0
    with Dataset(model.directory / "parts.nc") as file:
        assert file["time"][:].tolist() == [240]
    run("parts.nc", 6, 13, mode, ranks).fine()
    assert (model.directory / "parts.nc").read_bytes() == (model.directory
        / "whole.nc").read_bytes()


@pytest.mark.parametrize("form", ["netcdf4", "zarr"])
def test_other_formats_in_parts(model, run, form):
    for path, parts in (("whole", (9,)), ("parts", (3, 6, 9))):
        for begin, end in zip((0, *parts), parts, strict=False):
            run(path, begin, end, "servers", 3, f'every_s = 240\nformat = "{form}"').fine()
        (model.directory / "history.weir-state").unlink()
    opened = [xarray.open_zarr(model.directory / p, decode_times=False) if form == "zarr"
        else xarray.open_dataset(model.directory / p, decode_times=False)
              for p in ("whole", "parts")]  # fmt: skip
    for name in opened[0].variables:
        assert np.array_equal(opened[0][name].values, opened[1][name].values, equal_nan=True), name


@pytest.mark.parametrize("rotation", ["rotation = 2", 'rotation = "month"'])
def test_files_that_begin_between_restarts(model, run, rotation):
    """Steps of 6 hours, means of a day, from 1 January 2000: 31 January's mean is in January's
    file, and its name is January's."""
    more, names = f"every_s = 86400\n{rotation}", "%Y%m%d.nc" if "2" in rotation else "%Y%m.nc"
    files = {}
    for part, parts in enumerate([(140,), (3, 30, 123, 125, 140)]):
        (model.directory / f"{part}").mkdir()
        for number, (begin, end) in enumerate(zip((0, *parts), parts, strict=False)):
            mode, ranks, options = WAYS[number]
            (model.directory / "o.toml").write_text(
                f'[stream.history]\nexisting = "append"\n{more}\n')
            run(f"{part}/{names}", begin, end, mode, ranks, more, step_s=21600, **options).fine()
        files[part] = contents(model.directory / f"{part}", "*.nc")
    assert files[0].keys() == files[1].keys()
    for name in files[0]:
        assert files[0][name] == files[1][name], name
    if "month" in rotation:
        assert list(files[0]) == ["200001.nc", "200002.nc"]
        with Dataset(model.directory / "0" / "200001.nc") as file:
            assert file["time_bnds"][-1].tolist() == [30 * 86400,
                31 * 86400] and len(file["time"]) == 31


def test_a_state_that_is_missing_is_an_error(model, run):
    run("o.nc", 0, 7).fine()
    before = (model.directory / "o.nc").read_bytes()
    (model.directory / "history.weir-state").unlink()
    ran = run("o.nc", 7, 13)
    for rank in (0, 1):
        assert set(ran.codes(rank)) == {"WEIR_E_REMOTE"}
        assert "history.weir-state is not there" in ran.said[rank][0][2]
    assert (model.directory / "o.nc").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "call", "says"),
    [
        ({"first": 4, "steps": 6}, "weir_step", "is of 360 s, which is later"),
        ({"first": 9}, "weir_step", "steps between are missing"),
        ({"nx": 31}, "weir_context_end_definition",
            "where this run has 'field f0 mean float64 3 x 217'"),
        ({"more": "every_s = 120"}, "weir_context_end_definition",
            "where this run has 'every 120 s"),
    ],
)
def test_a_state_that_does_not_fit_is_an_error(model, run, options, call, says):
    run("o.nc", 0, 7).fine()
    before = contents(model.directory, "o.nc")
    ran = run(**({"path": "o.nc", "first": 7, "steps": 13} | options))
    for rank in (0, 1):
        assert ran.said[rank][0][0] == call and ran.said[rank][0][1] in ("WEIR_E_FILE",
            "WEIR_E_FORMAT"), ran.said[rank][:2]
        assert says in ran.said[rank][0][2], ran.said[rank][0][2]
    assert contents(model.directory, "o.nc") == before


def test_a_state_and_files_of_two_runs_are_an_error(model, run):
    run("o.nc", 0, 6).fine()
    kept = (model.directory / "o.nc").read_bytes()
    run("o.nc", 6, 10).fine()
    (model.directory / "o.nc").write_bytes(kept)
    ran = run("o.nc", 10, 14)
    assert any("o.nc has 1 records, and 2 when" in message
        for _, _, message in ran.said[0]), ran.said


def test_a_damaged_state_is_an_error(model, run):
    run("o.nc", 0, 6).fine()
    state = model.directory / "history.weir-state"
    whole = state.read_bytes()
    for cut in (0, 300, len(whole) - 1):
        state.write_bytes(whole[:cut])
        ran = run("o.nc", 6, 10)
        if cut == 0:
            assert any("is not there" in m or "cannot go on" in m
                for _, _, m in ran.said[0]), ran.said
        assert ran.said[0][0][1] in ("WEIR_E_FORMAT", "WEIR_E_REMOTE", "WEIR_E_FILE"), (cut,
            ran.said)
        assert ran.done.returncode != 0 and not re.search("signal", ran.done.stderr)
        with Dataset(model.directory / "o.nc") as file:
            assert file["time"][:].tolist() == [240]


def test_a_state_of_an_interval_that_lacks_a_step_is_not_saved(model, run):
    ran = run("o.nc", 0, 7, "servers", 3, skip_step=6, skip_rank=0)
    assert ran.codes(0)[0] == "WEIR_E_MISSING", ran.said
    assert not (model.directory / "history.weir-state").exists()
