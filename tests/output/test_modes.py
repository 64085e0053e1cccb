# SPDX-License-Identifier: Apache-2.0
"""Every mode, transport and decomposition writes the same bytes, and they are the right values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

WAYS = [
    # ranks, mode, options
    (4, "serial", {"kind": "block", "halo": 2}),
    (3, "serial", {"kind": "lopsided", "lend": 1}),
    (4, "serial", {"kind": "cyclic", "WEIR_NODE_RANKS": 2}),
    (4, "collective", {"kind": "scatter", "WEIR_OUTPUT_AGGREGATORS": 3}),
    (4, "collective", {"kind": "block", "WEIR_NODE_RANKS": 1, "WEIR_OUTPUT_AGGREGATORS": 2}),
    (5, "servers", {"kind": "block", "order": 1, "WEIR_OUTPUT_GROUPS": 1,
        "WEIR_OUTPUT_SERVERS_PER_GROUP": 2}),
    (6, "servers", {"kind": "scatter", "WEIR_OUTPUT_GROUPS": 3,
        "WEIR_OUTPUT_TRANSPORT": "two-sided"}),
    (4, "servers", {"kind": "cyclic", "WEIR_OUTPUT_PLACEMENT": "spread", "WEIR_NODE_RANKS": 2}),
    (6, "servers+parallel", {"kind": "scatter", "WEIR_OUTPUT_GROUPS": 1,
        "WEIR_OUTPUT_SERVERS_PER_GROUP": 3, "lend": 1}),
    (5, "servers+parallel", {"kind": "block", "WEIR_OUTPUT_SERVERS_PER_GROUP": 2,
        "WEIR_OUTPUT_TRANSPORT": "rma"}),
    # A window for one frame only.
    (4, "servers", {"kind": "rows", "WEIR_OUTPUT_CLIENT_MEMORY": 4000}),
]
CASE = {"rotation": 2, "every_steps": 2, "steps": 10, "lonlat": 1, "mean": 1, "path": "h{file}.nc"}


def value(field: int, points: int, level: int, step: int) -> np.ndarray:
    return field * 100000 + level * 10000 + np.arange(points) % 997 + step * 0.25


@pytest.fixture
def expected(model):
    """The files of one rank alone, and their values checked."""
    model(1, kind="rows", **CASE).fine()
    for number in (0, 1):
        with Dataset(model.directory / f"h{number}.nc") as file:
            assert file["time"][:].tolist() == [240 * number + 120, 240 * number + 240]
            assert file["time_bnds"][:].tolist() == [[240 * number, 240 * number + 120],
                [240 * number + 120, 240 * number + 240]]
            for record, step in enumerate((4 * number + 2, 4 * number + 4)):
                since = step - 1
                for level in range(3):
                    single = value(1, 240, level, step).astype("f4")
                    mean = np.mean([value(0, 240, level, s) for s in range(since, step + 1)],
                        axis=0).astype("f4")
                    assert (file["f1"][record, level].data.ravel() == single).all()
                    assert (file["f0"][record, level].data.ravel() == mean).all()
            assert (file["lat"][:].data.ravel() == 0.25 * (np.arange(240) // 24)).all()
    files = {p.name: p.read_bytes() for p in model.directory.glob("h*.nc")}
    # What comes after the last frame, step 9, is in no file, nor is the first step, before which
    # there is none.
    assert sorted(files) == ["h0.nc", "h1.nc"]
    return files


def test_all_ways_write_the_same_bytes(model, expected):
    for ranks, mode, options in WAYS:
        for path in model.directory.glob("h*"):
            path.unlink()
        model(ranks, mode, **CASE, **options).fine()
        assert sorted(p.name for p in model.directory.iterdir()) == sorted(expected), (mode,
            options)
        for name, content in expected.items():
            assert (model.directory / name).read_bytes() == content, (mode, options, name)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_what_is_written_is_read_back_by_other_numbers_of_ranks(model, kind):
    model(4, "collective", kind="scatter", type=kind, path="r.nc").fine()
    for ranks, options in ((1, {"kind": "rows"}), (3, {"kind": "block", "halo": 1}),
            (4, {"kind": "cyclic", "WEIR_NODE_RANKS": 2})):
        done = model(ranks, type=kind, path="r.nc", get=3, **options).fine().done
        assert done.stdout.count(" 0 values wrong of") == 2 * ranks


def test_models_of_one_job_fetch_from_their_own_ranks(model):
    """Two models start at once, on several nodes each. Open MPI's windows of both would have one
    name."""
    model(6, "servers", parts=2, path="whole.nc", WEIR_NODE_RANKS=1).fine()
    for number in (0, 1):
        with Dataset(model.directory / f"{number}.whole.nc") as file:
            for step in range(4):
                assert (file["f1"][step, 2].data.ravel() == value(1, 240, 2, step)
                    .astype("f4")).all()


def test_windows_that_would_be_confused_are_refused(model):
    ran = model(4, "servers", parts=2, path="whole.nc", WEIR_NODE_RANKS=1,
        WEIR_OUTPUT_TRANSPORT="rma")
    if model.mpi.name != "openmpi":
        ran.fine()
        return
    assert ran.done.returncode != 0
    printed = [said for rank in ran.said for said in ran.said[rank] if said[1] == "WEIR_E_MPI"]
    assert {call for call, _, _ in printed} == {"weir_context_end_definition"}
    assert all('transport = "auto"' in text for _, _, text in printed)


@pytest.mark.parametrize("transport", ["shared", "two-sided"])
def test_a_server_needs_no_more_memory_for_a_larger_step(model, transport):
    """24 MB beyond what MPI begins with, and its budget, of which slabs are an eighth. What it maps
    of the model's buffers, two frames, is the model's."""
    for n in (64, 768):
        options = {"nx": n, "ny": n, "levels": 4, "fields": 4, "steps": 3, "usage": 1,
            "path": f"m{n}.nc"}
        ran = model(4, "servers", WEIR_OUTPUT_SERVER_MEMORY="8MiB", WEIR_OUTPUT_TRANSPORT=transport,
            **options).fine()
        peak = int(re.search(r"peak (\d+) KiB", ran.done.stdout)[1]) * 1024
        mapped = 2 * 4 * 4 * n * n * 4 if transport == "shared" else 0
        assert 0 < peak - mapped <= 24_000_000 + (8 << 20), (n, peak)


def test_a_slow_writer_holds_the_model_back_and_nothing_is_lost(model):
    """More frames than slots without a pause, written by slabs much smaller than a level: the order
    in the file is that of time."""
    model(3, "servers", nx=256, ny=256, steps=12, path="s.nc",
        WEIR_OUTPUT_SERVER_MEMORY="1MiB").fine()
    with Dataset(model.directory / "s.nc") as file:
        assert file["time"][:].tolist() == [60.0 * s for s in range(12)]
        for step in range(12):
            assert (file["f1"][step, 2].data.ravel() == value(1, 65536, 2, step).astype("f4")).all()
