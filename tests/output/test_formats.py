# SPDX-License-Identifier: Apache-2.0
"""Every format in every mode, a recorder in the process, and kills at any instant."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time

import pytest
from netCDF4 import Dataset
from weir_process import clean_environment

MODES = [(1, "serial", {}), (4, "collective", {}), (5, "servers+parallel", {"WEIR_OUTPUT_TASKS_PER_GROUP": 2}), (3, "servers", {})]


def content(path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


@pytest.mark.parametrize("form", ["cdf2", "netcdf4", "zarr"])
def test_a_format_has_the_same_bytes_in_every_mode(model, form):
    first = None
    for ranks, mode, options in MODES:
        path = model.folder / mode
        model(ranks, mode, format=form, kind="scatter", nx=100, ny=50, steps=3, mean=1, lonlat=1, path=mode, **options).fine()
        first = first or content(path)
        assert content(path) == first, mode


def test_a_recorder_is_told_what_output_does(model, cc):
    recorder = cc((model.program_source.parent / "recorder.c"), "-shared", "-fPIC", name="recorder.so")
    ran = model(3, "servers", steps=6, path="o.nc", LD_PRELOAD=str(recorder)).fine()
    events: dict[str, tuple[int, int]] = {}
    for name, count, size in re.findall(r"^event (\w+) (\d+) (\d+)$", ran.done.stdout, re.M):
        before = events.get(name, (0, 0))
        events[name] = (before[0] + int(count), before[1] + int(size))
    total = 6 * 2 * 3 * 240 * 4  # steps, fields, levels, points, bytes
    assert events["put"] == (6 * 2 * 2, total)
    assert events["write"][1] == events["transpose"][1] == total
    assert (events["frame"][0], events["end_step"][0], events["serve"][0], events["finalize"][0]) == (6, 12, 1, 2)
    assert "wrong" not in events


def test_kills_at_any_instant_leave_no_incomplete_file_under_its_final_name(model):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    chance = random.Random(seed)
    complete = 0
    for instant in range(5):
        folder = model.folder / str(instant)
        folder.mkdir()
        command = model.mpi.launch(4, model.program, "", "steps=5000", "rotation=1", "nx=64", "ny=64", "path=h{step}.nc")
        env = clean_environment({**model.mpi.env, "WEIR_OUTPUT_MODE": "servers", "WEIR_OUTPUT_GROUPS": "2"})
        with subprocess.Popen(command, cwd=folder, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            deadline = time.monotonic() + 60
            while not any(folder.glob("h*.nc")) and job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.random())
            everybody = subprocess.run(["ps", "-s", str(job.pid), "-o", "pid="], capture_output=True, text=True).stdout.split()
            for pid in everybody:
                os.kill(int(pid), signal.SIGKILL)
        for path in folder.glob("h*.nc"):
            with Dataset(path) as file:
                step = int(path.stem[1:])
                assert file["time"][:].tolist() == [60.0 * step]
                assert file["f1"][0, 2, 0, 0] == 120000 + step * 0.25
                assert file["f1"][0, 2, -1, -1] == 120000 + 4095 % 997 + step * 0.25
            complete += 1
    assert complete > 5
