# SPDX-License-Identifier: Apache-2.0
"""Every format in every mode, and a recorder in the process."""

from __future__ import annotations

import re

import pytest

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
