# SPDX-License-Identifier: Apache-2.0
"""Values that a field's type in files cannot hold are reported, with their places; definitions
that cannot be are refused; nothing crashes after the end."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

MODES = ["serial", "collective", "servers", "servers+parallel"]
AFTER = [("weir_put", "WEIR_E_ORDER"), ("weir_step", "WEIR_E_ORDER"),
    ("weir_finalize", "WEIR_E_ORDER")]


@pytest.fixture
def values(model):
    """``values(mode, ranks, path, format)``: the errors of each rank; see values.c."""
    from weir_process import run

    ran = type(model(1, steps=1, path="first.nc"))  # what conftest.py beside makes of a run

    flags = (f"-I{model.root / 'include'}", f"-L{model.libraries}",
        f"-Wl,-rpath,{model.libraries}", "-lweir", "-lm")
    program = model.mpi.cc(Path(__file__).parent / "values.c", *flags, name="values")

    def go(mode: str, ranks: int, *arguments: str):
        env = {**model.mpi.env, "WEIR_OUTPUT_MODE": mode, "WEIR_OUTPUT_TIME_LIMIT_S": "30",
            "WEIR_OUTPUT_SERVERS_PER_GROUP": "2"}
        return ran(run(model.mpi.launch(ranks, program, *arguments), timeout=90, env=env,
            cwd=model.directory).ok())

    return go


def expected(step: int) -> np.ndarray:
    g = np.arange(96, dtype=float)
    data = np.array([g + step, g + 100 + step])
    if step >= 1:
        data[1, np.arange(96) % 5 == 3] = np.nan
    if step >= 2:
        data[0, 90:] = 1e39
    return data


def check_contents(path) -> None:
    with Dataset(path) as file:
        file.set_auto_mask(False)
        for step in range(4):
            data = expected(step)
            lost = np.isnan(data) | (data > 1e38)
            for name, fill in (("plain", -32767), ("marked", -999)):
                assert np.array_equal(file[name][step].reshape(2, 96),
                    np.where(lost, fill, np.where(lost, 0, data))), (name, step)
            with np.errstate(over="ignore"):
                single = np.where(data > 1e38, np.float32(9.9692099683868690e36),
                    data.astype(np.float32))
            assert np.array_equal(file["single"][step].reshape(2, 96), single, equal_nan=True)
        g = np.arange(96)
        top = np.iinfo(np.int64).max
        whole = [top - 1 if i % 7 == 0 else top - 2 - int(i) for i in g]
        assert file["big"][3].reshape(2, 96).tolist() == [whole, whole]
        assert file["big"]._FillValue == top - 1
        added = file["added"][3].reshape(2, 96)
        assert added[1, 50] == -127 and (added.ravel() != 1).sum() == 1


@pytest.mark.parametrize("mode", MODES)
def test_values_that_a_type_cannot_hold_are_reported_once_for_each_field_and_file(values, model,
        mode):
    ran = values(mode, 5, "o.nc", "cdf5")
    clients = range(3 if mode.startswith("servers") else 5)
    for rank in clients:
        printed = [(call, code) for call, code, _ in ran.said[rank]]
        assert printed[-3:] == AFTER and f"rank {rank}: costs in all" in ran.done.stdout
        messages = [m for _, code, m in ran.said[rank] if code == "WEIR_E_VALUE"]
        assert len(messages) == len(printed) - 3, printed
        text = "\n".join(messages)
        assert [re.findall(rf"step (\d), file o.nc: (?:(?!step ).)*field '{name}'",
            text) for name in ("added", "plain", "single", "marked", "big")] == [
            ["1"], ["2"], ["3"], ["3"], []], text  # fmt: skip
        assert (
            "field 'plain': 19 values are outside of what int16 holds (the first: level 1, row 0, "
            "column 3, counted from 0, is nan), written as the fill value -32767" in text
        )
        assert (
            "field 'marked': 6 values are outside of what int16 holds (the first: level 0, row "
            "11, column 2, counted from 0, is 1e+39), written as the missing value -999" in text
        )
        assert "field 'single': 6 values are outside of what float32 holds" in text
        assert (
            "field 'added': 1 value is outside of what int8 holds (the first: level 1, row 6, "
            "column 2," in text
        )
    check_contents(model.directory / "o.nc")


def test_the_next_file_tells_of_its_own(values, model):
    ran = values("servers", 4, "o{file}.nc", "netcdf4", "2")
    text = "\n".join(m for _, code, m in ran.said[0] if code == "WEIR_E_VALUE")
    assert re.findall(r"step (\d), file (o\d.nc): (?:(?!step ).)*field 'plain': (\d+)",
        text) == [("2", "o0.nc", "19"), ("3", "o1.nc", "25")]
