# SPDX-License-Identifier: Apache-2.0
"""A server sleeps for longer than the time limit, as when its disk stalls, and wakes after another
group has taken its file over."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytestmark = pytest.mark.any_mpi

STEPS = 24


def expected(field: int, step: int) -> np.ndarray:
    """As model.c has it: 3 levels of 10 x 24 points."""
    return (field * 100000 + np.arange(3)[:, None] * 10000 + np.arange(240)[None] + step
        * 0.25).reshape(3, 10, 24)


def values(path, field: str) -> np.ndarray:
    if path.suffix == ".zarr":
        import zarr

        return zarr.open(path, mode="r")[field][:]
    from netCDF4 import Dataset

    with Dataset(path) as file:
        file.set_auto_mask(False)
        return file[field][:]


def check_records(path) -> list[int]:
    """The steps that the file has, each field of each compared value by value."""
    steps = [round(time / 60) for time in values(path, "time")]
    for field in (0, 1):
        data = values(path, f"f{field}")
        for record, step in enumerate(steps):
            assert np.array_equal(data[record], expected(field, step)
                .astype("f4")), f"{path.name}: record {record} is not step {step}"
    return steps


def left_out(ran) -> set[int]:
    """Frames for which both slots waited for the sleeping server are named."""
    messages = [m for rank in (0, 1, 2) for _, _, m in ran.said[rank]]
    return {int(step) for m in messages
        for step in re.findall(r"step (\d+)(?: is lost on this rank|: field)", m)}


CASES = [("auto", "cdf5"), ("auto", "netcdf4"), ("auto", "zarr"), ("rma", "cdf5"),
    ("two-sided", "cdf5")]


@pytest.mark.parametrize(("transport", "form"), CASES)
def test_what_a_server_writes_that_was_given_up_gets_no_name(model, transport, form):
    """Group 0 has the only file; group 1 takes it over. The woken server ends, and so does the job.
    """
    name = "o.zarr" if form == "zarr" else "o.nc"
    ran = model(5, "servers", limit_s=2, WEIR_OUTPUT_GROUPS=2, WEIR_OUTPUT_TRANSPORT=transport,
        format=form, steps=STEPS, stop_step=6, stop_rank=3,
                go_on_step=12, pause_ms=10, path=name)  # fmt: skip
    for rank in (0, 1, 2):
        assert any("group 0 of the servers (head: rank 3) was silent for 2 s" in m
            and "take its files over" in m for _, _, m in ran.said.get(rank, [])), ran.done
    assert ran.codes(3) == ["WEIR_E_LOST"] and "given" in ran.said[3][0][2], ran.said[3]
    lost = left_out(ran)
    assert len(lost) <= 2
    assert check_records(model.directory / name) == [step for step in range(STEPS)
        if step not in lost]
    assert [path.name for path in model.directory.iterdir()] == [
        name], "what is left of the first group's file"
    # The model's own code: MPI has nothing left of which it complains at its end.
    assert ran.done.returncode == 1 and "signal" not in ran.done.stderr, ran.done


@pytest.mark.parametrize("transport", ["auto", "rma", "two-sided"])
def test_a_server_that_wakes_when_the_model_is_at_mpi_finalize(model, transport):
    """It has something under way for which it needs the other ranks."""
    ran = model(4, "servers", limit_s=2, WEIR_OUTPUT_TRANSPORT=transport, steps=8, stop_step=3,
        stop_rank=3, go_on_step=8, pause_ms=10, path="o.nc")
    assert any("no server is left" in m for _, _, m in ran.said[0])
    assert ran.codes(3) == ["WEIR_E_LOST"]
    assert ran.done.returncode == 1 and "signal" not in ran.done.stderr, ran.done


# before the first frame of its file, and between two of them
@pytest.mark.parametrize("stop_step", [4, 7])
def test_files_keep_their_own_groups(model, stop_step):
    """Three groups; those that are there keep the files that they have begun."""
    ran = model(6, "servers", limit_s=2, WEIR_OUTPUT_GROUPS=3, rotation=5, steps=30,
        stop_step=stop_step, stop_rank=4,
                go_on_step=stop_step + 7, pause_ms=10, path="o{file}.nc")  # fmt: skip
    lost = left_out(ran)
    found = [check_records(model.directory / f"o{file}.nc") for file in range(6)
        if (model.directory / f"o{file}.nc").exists()]
    assert sorted(sum(found, [])) == [step for step in range(30) if step not in lost]
    assert all(steps[0] // 5 == steps[-1] // 5 for steps in found)
    assert not list(model.directory.glob(".*"))


def test_the_only_server_wakes_and_ends(model):
    ran = model(4, "servers", limit_s=2, steps=20, stop_step=6, stop_rank=3, written=6,
        go_on_step=16, pause_ms=10, path="o.nc")
    assert any("no server is left" in m for _, _, m in ran.said[0])
    assert ran.codes(3) == ["WEIR_E_LOST"]
    assert not (model.directory / "o.nc").exists()
    steps = check_records(model.directory / ".o.nc.weir-part")
    assert steps[:6] == [0, 1, 2, 3, 4, 5]
