# SPDX-License-Identifier: Apache-2.0
"""Names of files: none is written twice, by one run or by two at a time; where relative ones begin;
what may be replaced."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from netCDF4 import Dataset
from weir_process import clean_environment

pytestmark = pytest.mark.any_mpi

MODES = [(2, "serial"), (3, "servers")]


def times(path) -> list[float]:
    with Dataset(path) as file:
        return file["time"][:].tolist()


def config(model, text: str):
    path = model.directory / "c.toml"
    path.write_text(text)
    return {"WEIR_OUTPUT_CONFIG": path}


def files(model, pattern: str = "*.nc") -> dict[str, list[float]]:
    return {str(path.relative_to(model.directory)): times(path)
        for path in sorted(model.directory.rglob(pattern))}


@pytest.mark.parametrize(("ranks", "mode"), MODES)
def test_a_name_that_repeats_is_reported_at_its_step_and_the_file_stays(model, ranks, mode):
    ran = model(ranks, mode, steps=7, rotation=2, path="out/%Y%m%d.nc")
    for rank in range(ranks - (mode == "servers")):
        assert [call for call, _, _ in ran.said[rank]] == ["weir_end_step"] * 5
        assert set(ran.codes(rank)) == {"WEIR_E_FILE"}
        assert (
            "step 2, file out/20000101.nc: this run has written a file of that name already"
            in ran.said[rank][0][2]
        )
    assert files(model) == {"out/20000101.nc": [0, 60]}


@pytest.mark.parametrize(("ranks", "mode"), MODES)
def test_rotation_by_the_calendar(model, ranks, mode):
    """420 s a step, a frame at the first step at or after each half hour; a day's frames are in a
    file of its own."""
    env = config(model, '[stream.history]\npath = "%Y%m%d.nc"\nevery_s = 1800\nrotation = "day"\n')
    model(ranks, mode, steps=600, nx=6, ny=4, step_s=420, WEIR_OUTPUT_GROUPS=1, **env).fine()
    due = [next(420.0 * s for s in range(600) if 420 * s >= multiple)
        for multiple in range(0, 599 * 420, 1800)]
    by_day: dict[str, list[float]] = {}
    for number, time_s in enumerate(due):
        by_day.setdefault(f"2000010{1 + number // 48}.nc", []).append(time_s)
    assert files(model) == by_day and len(by_day) == 3


def test_check_refuses_what_the_job_refuses(model, weir):
    text = '[stream.history]\npath = "%Y%m%d.nc"\nevery_s = 3600\nrotation = 2\n'
    (model.directory / "c.toml").write_text(text)
    env = {"WEIR_OUTPUT_LIBRARIES": str(model.libraries.parent)}
    done = weir("output", "check", model.directory / "c.toml", env=env)
    assert (
        done.returncode == 3
        and "c.toml:2:8" in done.stderr
        and "do not differ so soon" in done.stderr
    )
    ran = model(1, steps=3, **config(model, text))
    assert ran.codes(0)[0] == "WEIR_E_CONFIG"


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "zarr"])
def test_two_jobs_do_not_write_one_file(model, form):
    """The first has its file open until the test lets it go on."""
    pipe = model.directory / "go"
    os.mkfifo(pipe)
    options = ["steps=4", "path=out/o", f"format={form}", "levels=5", f"wait={pipe}"]
    env = clean_environment({**model.mpi.env, "WEIR_OUTPUT_MODE": "servers"})
    command = model.mpi.launch(3, model.program, "", *options)
    first = subprocess.Popen(command, cwd=model.directory, env=env, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    try:
        with open(pipe, "w"):  # opens when the model has ended its second step and reads
            second = model(3, "servers", steps=4, path="out/o", format=form)
            for rank in (0, 1):
                assert set(second.codes(rank)) == {"WEIR_E_REMOTE"}
                assert "out/o: another process writes this file (process" in second.said[rank][0][2]
        said = first.communicate(timeout=300)[0]
        assert first.returncode == 0 and not re.search(r"^rank \d+: \w+: ", said, re.M), said
    finally:
        first.kill()
    assert sorted(path.name for path in (model.directory / "out").iterdir()) == ["o"]
    model(2, "serial", format=form, levels=5, path="out/o", get=4).fine()


def test_two_streams_of_one_file_are_reported_before_the_first_step(model):
    (model.directory / "real").mkdir()
    (model.directory / "link").symlink_to("real")
    for path in ("./x.nc", "a/../x.nc", f"{model.directory}/x.nc", "link/x.nc"):
        ran = model(2, path="real/x.nc" if "link" in path else "x.nc", second=path)
        for rank in (0, 1):
            assert ran.said[rank][0][:2] == ("weir_context_end_definition", "WEIR_E_ARGUMENT"), path
            assert "stream 'second': stream 'history' writes to the same path" in ran.said[rank][0][
                2]
    assert not files(model)


@pytest.mark.parametrize(("ranks", "mode"), [*MODES, (3, "collective")])
def test_relative_paths_begin_where_the_program_was_at_weir_init(model, ranks, mode):
    (model.directory / "sub").mkdir()
    model(ranks, mode, steps=3, rotation=1, path="out/{step}.nc", chdir="sub").fine()
    assert sorted(files(model)) == ["out/0.nc", "out/1.nc", "out/2.nc"]
    model(ranks, "serial", steps=3, path="out/1.nc", chdir="sub", get=1, check_step=1).fine()


def test_what_is_no_file_is_not_replaced(model):
    directory = model.directory
    os.mkfifo(directory / "pipe")
    (directory / "kept.nc").write_text("precious")
    (directory / "kept.nc").chmod(0o444)
    (directory / "link.nc").symlink_to("kept.nc")
    (directory / "directory").mkdir()
    before = {path.name: path.lstat() for path in directory.iterdir()}
    for path, says in (("pipe", "no regular file"), ("kept.nc", "write-protected"),
            ("link.nc", "a symbolic link"), ("directory", "a directory that is no Zarr store")):
        ran = model(3, "servers", path=path)
        for rank in (0, 1):
            assert ran.said[rank][0][:2] == ("weir_context_end_definition", "WEIR_E_FILE"), path
            assert f"stream 'history': {directory}/{path} is there already: {says}" in ran.said[
                rank][0][2]
    assert {path.name: path.lstat() for path in directory.iterdir()} == before
    ran = model(2, path="directory/..")
    assert ran.said[0][0][:2] == ("weir_stream_create",
        "WEIR_E_ARGUMENT") and "is a directory" in ran.said[0][0][2]


def test_existing_files_are_replaced_or_refused(model):
    def job(existing: str, path: str, steps: int):
        return model(3, "servers", steps=steps, rotation=1,
            **config(model, f'[stream.history]\npath = "{path}"\nexisting = "{existing}"\n'))

    job("refuse", "a{step}.nc", 2).fine()
    job("replace", "a{step}.nc", 2).fine()
    # The name of the first file is known before the first step, that of the others when they begin.
    ran = job("refuse", "a{step}.nc", 2)
    assert ran.said[0][0][:2] == ("weir_context_end_definition",
        "WEIR_E_FILE") and 'existing = "refuse"' in ran.said[0][0][2]
    (model.directory / "a0.nc").unlink()
    kept = (model.directory / "a1.nc").stat().st_ino
    ran = job("refuse", "a{step}.nc", 3)
    assert ran.codes(0) == ["WEIR_E_REMOTE"] and "a1.nc is there already" in ran.said[0][0][2]
    assert sorted(files(model)) == ["a0.nc", "a1.nc", "a2.nc"] and (model.directory / "a1.nc").stat(
        ).st_ino == kept
