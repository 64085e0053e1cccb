# SPDX-License-Identifier: Apache-2.0
"""weir.output on one rank without mpi4py, in a process of its own for each test. With mpi4py:
test_python_ranks.py."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.any_mpi

HEAD = """
import sys
sys.modules["mpi4py"] = None  # as if it were not installed
import numpy as np
import weir
from weir import output

def raised(kind, call, *arguments, says="", **keywords):
    try:
        call(*arguments, **keywords)
    except kind as error:
        assert isinstance(error, weir.Error), type(error)
        assert says in str(error), str(error)
    else:
        raise AssertionError(f"nothing raised; expected {kind}")

def begin(**keywords):
    context = output.init(**keywords)
    grid = context.lonlat_grid("globe", np.arange(8) * 45.0, np.linspace(-75, 75, 6))
    part = grid.block("all", 0, 8, 0, 6, halo=(1, 2, 0, 1))
    level = context.axis("level", [1.0, 2.0], bounds=[[0.5, 1.5], [1.5, 2.5]], positive="up")
    return context, part, part.field("u", np.float32, [level], units="m s-1", missing_value=-1)
"""


@pytest.fixture
def python(libweir, execute, tmp_path):
    def run(body: str, **env: str):
        variables = {**libweir.mpi.env, "WEIR_OUTPUT_LIBRARIES": str(libweir.libraries), **env}
        # choose_mpi: as if this MPI's launcher had started one rank
        variables["OMPI_COMM_WORLD_SIZE" if libweir.mpi.name == "openmpi" else "PMI_SIZE"] = "1"
        return execute([sys.executable, "-c", HEAD + body], cwd=tmp_path, env=variables, timeout=90)

    return run


def test_arrays_are_checked_and_come_back(python):
    python("""
context, part, u = begin()
context.stream("history", "u.nc", [u])
assert u.shape == (2, 7, 11) and part.size == 48
x = np.zeros(u.shape, np.float32)
x[:, :6, 1:9] = np.arange(96).reshape(2, 6, 8)
with context:
    raised(output.OrderError, u.put, x)
    with context.step(0.0):
        raised(output.ArgumentError, u.put, x.astype(np.float64), says="dtype float64; expected float32")
        raised(output.ArgumentError, u.put, x.astype(">f4"), says="expected float32")
        raised(output.ArgumentError, u.put, x[:, :6, 1:9], says="shape (2, 6, 8); expected (2, 7, 11)")
        raised(output.ArgumentError, u.put, x.tolist(), says="a list; expected a numpy array")
        u.put(np.asfortranarray(x))
assert context.costs.frames == 1 and context.costs.put_bytes == 96 * 4
raised(output.OrderError, context.step, 1.0, says="finalized")
context.finalize()
context, part, u = begin()
y = np.full(u.shape, 7, np.float32)
assert u.get("u.nc", out=y) is y
assert (y[:, :6, 1:9] == x[:, :6, 1:9]).all() and (y[:, 6] == 7).all() and (y[:, :, 9:] == 7).all()
assert (u.get("u.nc", 0)[:, :6, 1:9] == x[:, :6, 1:9]).all()
raised(output.FileError, u.get, "nowhere.nc", says="nowhere.nc")
raised(OSError, u.get, "nowhere.nc")
raised(output.ArgumentError, u.get, "u.nc", 3)
raised(output.ArgumentError, u.get, "u.nc", 0, y[:, :, ::-1], says="contiguous")
context.finalize()
""").ok()


@pytest.mark.parametrize("form", ["cdf5", "netcdf4", "zarr", "grib2"])
def test_a_block_left_by_an_exception_lets_its_files_go(python, form):
    """The next context of the process writes them anew; what is finished of the first one's stays
    under the temporary name until then."""
    python(f"""
import glob
grid = np.arange(8) * 45.0, np.linspace(-75, 75, 6)
def run(steps, stop):
    with output.init() as context:
        part = context.lonlat_grid("globe", *grid).block("all", 0, 8, 0, 6)
        u = part.field("ta", np.float32, units="K", standard_name="air_temperature")
        context.stream("history", "u", [u], format="{form}", every_steps=1)
        for step in range(steps):
            with context.step(3600.0 * step):
                u.put(np.full(u.shape, 250 + step, np.float32))
                if step == stop:
                    raise ZeroDivisionError("of the model")
for _ in range(2):
    try:
        run(3, 2)
    except ZeroDivisionError:
        pass
    assert glob.glob(".u.weir-part*") == [".u.weir-part"], glob.glob(".u*")
words = output.recover("u")
assert "2 finished steps" in words and words.endswith("to use it: mv .u.weir-part u\\n"), words
run(2, None)
assert glob.glob(".u*") == [] and "2 finished steps" in output.recover("u")
context = output.init()
context.abandon()
context.abandon()
raised(output.OrderError, context.step, 0.0, says="finalized")
context.finalize()
""").ok()


def test_wrong_definitions_raise_with_their_names(python):
    python("""
context, part, u = begin()
raised(output.ArgumentError, part.field, "u", np.float32, says="field 'u': there is a field of this name already")
raised(ValueError, part.field, "2t", np.float32, says="field '2t'")
raised(output.ArgumentError, part.field, "z", np.complex64, says="dtype complex64: expected one of float32")
raised(output.ArgumentError, context.stream, "s", "a_%q.nc", says="'%q'")
raised(output.ArgumentError, context.stream, "s", "a.nc", [(u, "average")], says="expected one of instant, mean")
raised(output.ArgumentError, context.stream, "w", "w.nc", rotation="week", says="rotation 'week': expected a number of frames, 0 for one file, or day")
raised(output.ArgumentError, context.stream, "e", "e.nc", existing="keep", says="existing 'keep': expected replace, refuse or append")
raised(output.ArgumentError, context.axis, "bad", [1, 3, 2], says="not monotonic")
raised(output.ArgumentError, context.set_time, "2026-02-30", says="reference of time")
raised(output.ArgumentError, context.lonlat_grid, "g", [[1.0]], [0.0], says="dimensions")
context.finalize()
""").ok()


def test_grid_mappings_are_variables_that_exist_or_are_refused(python):
    python("""
from netCDF4 import Dataset
def mapped(attributes, first="crs", second="crs", radius=6371229.0, **late):
    context = output.init()
    fields = []
    for name, mapping in (("a", first), ("b", second)):
        grid = context.plane_grid("grid_" + name, [0.0, 1.0], [0.0, 1.0, 2.0])
        part = grid.block("part_" + name, 0, 2, 0, 3)
        more = {"attributes": {"grid_mapping": attributes}} if attributes and name == "b" else {}
        fields.append(part.field(name, np.float32, units="1", **more))
        if mapping:
            grid.set_mapping(mapping, "rotated_latitude_longitude", grid_north_pole_latitude=39.25,
                             **({"earth_radius": radius} if name == "b" else {"earth_radius": 6371229.0}))
    context.stream("s", "s.nc", fields)
    return context, fields, grid

def written(*arguments, **keywords):
    context, fields, grid = mapped(*arguments, **keywords)
    with context, context.step(0.0):
        for field in fields:
            field.put(np.zeros(field.shape, np.float32))
    with Dataset("s.nc") as file:
        scalars = [name for name, v in file.variables.items() if v.dimensions == ()]
        return scalars, [getattr(file[name], "grid_mapping", None) for name in "ab"], file["x_grid_a"].ncattrs(), file["x_grid_a"].units

def refused(says, *arguments, **keywords):
    context, fields, grid = mapped(*arguments, **keywords)
    raised(output.ArgumentError, context.end_definition, says=says)
    context.finalize()

assert written(None) == (["crs"], ["crs", "crs"], ["standard_name", "units", "axis"], "degrees")
assert written(None, second="other")[:2] == (["crs", "other"], ["crs", "other"])
assert written("crs", second=None)[:2] == (["crs"], ["crs", "crs"])
assert written(None, None, None) == ([], [None, None], ["long_name", "units"], "m")
assert written("a")[:2] == (["crs"], ["crs", "a"])  # a field of the program, as it may be
refused("field 'b': grid_mapping 'nothing' names neither a grid mapping nor a field of the program", "nothing")
refused("its attributes differ between grids 'grid_b' and 'grid_a'", None, radius=1.0)

context = output.init()
grid = context.plane_grid("g", [0.0, 1.0], [0.0])
raised(output.ArgumentError, grid.set_mapping, "2d", "mercator", says="grid mapping '2d': the name begins with something else than a letter")
raised(output.ArgumentError, grid.set_mapping, "time", "mercator", says="weir writes the variable of this name itself")
raised(output.ArgumentError, grid.set_mapping, "crs", "latitude_longitude", says="x and y of a plane are no longitudes and latitudes")
raised(output.ArgumentError, grid.set_mapping, "crs", "mercator", standard_parallel=[], says="0 numbers; expected 1 to 64")
context.finalize()
""").ok()


def test_a_second_run_goes_on_with_the_file(python):
    python("""
from netCDF4 import Dataset
for first in (0, 3):
    context, part, u = begin()
    context.stream("history", "u.nc", [u], existing="append", format="netcdf4")
    with context:
        for step in range(first, first + 3):
            with context.step(60.0 * step):
                u.put(np.full(u.shape, step, np.float32))
with Dataset("u.nc") as file:
    assert file["time"][:].tolist() == [0, 60, 120, 180, 240, 300]
    assert file["u"][:, 1, 5, 7].tolist() == [0, 1, 2, 3, 4, 5]
""").ok()


def test_configurations_are_taken_and_mistakes_in_them_raised(python, tmp_path):
    (tmp_path / "o.toml").write_text(
        '[stream.history]\npath = "{stream}_{step:03}.nc"\nrotation = 1\n')
    (tmp_path / "wrong.toml").write_text("[output]\nmod = 1\n")
    python("""
import os
raised(output.ConfigError, output.init, "wrong.toml", says="wrong.toml:2:1: [output] has no key 'mod'; did you mean 'mode'?")
raised(output.ConfigError, output.check, "wrong.toml", says="wrong.toml:2:1")
context, part, u = begin(config="o.toml")
context.stream("history", "other.nc", [u])
with context:
    for step in range(2):
        with context.step(60.0 * step):
            u.put(np.ones(u.shape, np.float32))
assert sorted(n for n in os.listdir() if n.endswith(".nc")) == ["history_000.nc", "history_001.nc"], os.listdir()
""").ok()


def test_ranks_without_mpi4py_are_refused(python):
    python("""
import os
os.environ["PMI_SIZE"] = "4"
raised(weir.Error, output.init, says="install mpi4py")
""").ok()
