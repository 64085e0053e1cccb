# SPDX-License-Identifier: Apache-2.0
"""weir.output on several ranks, with mpi4py on Open MPI and on MPICH."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

pytest.importorskip("mpi4py", reason="needs the test extra")

# MISTAKE: points of rank 1 that no rank has; MISSING: rank 0 leaves a put out.
PROGRAM = """
import os

import numpy as np
from mpi4py import MPI
from weir import output

world = MPI.COMM_WORLD

def say(line):  # in one write: the ranks share the output
    os.write(1, line.encode() + bytes([10]))

def reported(call, *arguments):
    try:
        call(*arguments)
    except output.OutputError as error:
        say(f"rank {world.rank}: {call.__name__}: {error.name}: {error}")

context = output.init()
if context is not None:
    ranks, rank = context.comm.size, context.comm.rank
    mine = np.arange(rank, 60, ranks)[::-1]
    if rank == 1:
        mine = mine[MISTAKE:]
    u = context.unstructured_grid("mesh", 60).indices("mine", mine).field("u", np.float64, units="1")
    context.stream("history", "u.nc", [u])
    reported(context.end_definition)
    for step in range(0 if MISTAKE else 3):
        reported(context.step, 60.0 * step)
        if not (MISSING and rank == 0 and step == 1):
            reported(u.put, mine + 1000.0 * step)
        reported(context.end_step)
    reported(context.finalize)
say(f"rank {world.rank} ends")
"""


@pytest.fixture
def python(libweir, tmp_path):
    """``python(ranks, text or path, mode)``: the ranks of each MPI run it, with the library of that
    MPI."""
    env = {"WEIR_OUTPUT_LIBRARIES": str(libweir.libraries), "MPI4PY_MPIABI": libweir.mpi.name,
        "WEIR_OUTPUT_TIME_LIMIT_S": "20"}
    mpich = next((path for path in Path("/usr/lib").glob("*/libmpich.so.12")), None)
    if libweir.mpi.name == "mpich" and mpich and not (mpich.parent / "libmpi.so.12").exists():
        # mpi4py's wheels look for MPICH under the name that it has where it is built from its own
        # source.
        directory = tmp_path / "lib"
        directory.mkdir()
        (directory / "libmpi.so.12").symlink_to(mpich)
        env["LD_LIBRARY_PATH"] = f"{directory}:{os.environ.get('LD_LIBRARY_PATH', '')}"

    def run(ranks: int, program: str | Path, mode: str, directory: Path | None = None):
        command = [sys.executable, "-m", "mpi4py", *(["-c", program] if isinstance(program, str)
            else [program])]
        return libweir.run(ranks, *command, cwd=directory or tmp_path, WEIR_OUTPUT_MODE=mode, **env)

    return run


def program(mistake: int = 0, missing: bool = False) -> str:
    return f"MISTAKE, MISSING = {mistake}, {missing}\n{PROGRAM}"


def test_the_example_writes_the_same_files_on_one_rank_and_on_many(python, libweir, tmp_path):
    written = []
    for name, ranks, mode in (("alone", 1, "serial"), ("servers", 4, "servers"),
            ("collective", 3, "collective")):
        (tmp_path / name).mkdir()
        python(ranks, libweir.root / "examples" / "python" / "output.py", mode,
            tmp_path / name).ok()
        written.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert len(written[0]) == 3
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize(("ranks", "mode"), [(3, "serial"), (4, "servers")])
def test_lists_of_indices_of_each_rank_come_to_their_places(python, tmp_path, ranks, mode):
    done = python(ranks, program(), mode).ok()
    assert all(f"rank {rank} ends" in done.stdout for rank in range(ranks)), done.stdout
    with Dataset(tmp_path / "u.nc") as file:
        for step in range(3):
            assert file["u"][step].tolist() == [1000.0 * step + point for point in range(60)]


FAILING = """
import numpy as np
from mpi4py import MPI
from weir import output
comm = MPI.COMM_WORLD
for attempt in range(2):
    try:
        context = output.init(comm=comm)
    except output.OrderError as error:
        print(f"server: {error}", flush=True)
        continue
    if context is None:
        continue
    rank, ranks = context.comm.rank, context.comm.size
    try:
        with context:
            part = context.lonlat_grid("globe", np.arange(6) * 60.0, [45.0, -45.0]).block(
                "all", 6 * rank // ranks, 6 * (rank + 1) // ranks - 6 * rank // ranks, 0, 2)
            u = part.field("u", np.float32)
            context.stream("history", "u.nc", [u], every_steps=1)
            for step in range(3):
                with context.step(60.0 * step):
                    u.put(np.full(u.shape, step, np.float32))
                    if attempt == 0 and step == 2:
                        raise ZeroDivisionError
    except ZeroDivisionError:
        print(f"rank {rank} goes on", flush=True)
"""


@pytest.mark.parametrize(("ranks", "mode"), [(3, "collective"), (4, "servers")])
def test_after_an_exception_of_the_model_the_same_ranks_write_the_files_anew(python, tmp_path,
        ranks, mode):
    """Servers come back and say why; nobody waits for weir_finalize, or for the lock."""
    done = python(ranks, FAILING, mode).ok()
    assert all(f"rank {rank} goes on" in done.stdout for rank in range(3)), done.stdout
    assert ("of the model has called weir_abandon; files that are not complete keep their finished "
        "steps" in done.stdout) == (mode == "servers"), done.stdout
    with Dataset(tmp_path / "u.nc") as file:
        assert file["u"][:, 0, 0].tolist() == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.glob("*u.nc*")) == ["u.nc"]


@pytest.mark.parametrize(("ranks", "mode"), [(3, "collective"), (4, "servers")])
def test_an_exception_is_the_same_on_all_ranks(python, tmp_path, ranks, mode):
    done = python(ranks, program(mistake=2), mode)
    for rank in range(3):
        assert re.search(
            rf"rank {rank}: end_definition: WEIR_E_DECOMPOSITION: .*'mine'.*2 of 60 points belong "
            rf"to no rank", done.stdout), done.stdout
    assert not (tmp_path / "u.nc").exists()


@pytest.mark.parametrize(("ranks", "mode"), [(3, "serial"), (4, "servers")])
def test_a_put_that_one_rank_left_out_is_reported_on_all_and_ends_no_rank(python, tmp_path, ranks,
        mode):
    done = python(ranks, program(missing=True), mode).ok()
    for rank in range(3):
        assert re.search(
            rf"rank {rank}: \w+: WEIR_E_MISSING: stream 'history', step 1: field 'u'.*rank 0",
            done.stdout), done.stdout
    assert all(f"rank {rank} ends" in done.stdout for rank in range(ranks)), done.stdout
    with Dataset(tmp_path / "u.nc") as file:
        assert file["time"][:].tolist() == [0, 120]


REFUSED = """
import os

import numpy as np
from mpi4py import MPI
from weir import output

world = MPI.COMM_WORLD
rank = world.rank

def say(line):
    os.write(1, line.encode() + bytes([10]))

def reported(call, *arguments):
    try:
        call(*arguments)
        say(f"rank {rank}: {call.__name__}: fine")
    except output.ArgumentError as error:
        say(f"rank {rank}: {call.__name__}: {error}")

context = output.init()
grid = context.unstructured_grid("mesh", 3 * world.size)
part = grid.indices("mine", np.arange(3) + 3 * rank)
u = part.field("u", np.float64)
places = np.zeros(2 if rank == 1 else 3)
reported(grid.set_lonlat, part, places, places)
reported(grid.set_lonlat, part, np.zeros(3), np.zeros(3))
context.stream("history", "u.nc", [u])
context.step(0)
u.put(np.arange(3.0))
context.end_step()
context.finalize()
context = output.init()
u = context.unstructured_grid("mesh", 3 * world.size).indices("mine", np.arange(3) + 3 * rank).field("u", np.float64)
reported(u.get, "u.nc", 0, np.zeros(2 if rank == 1 else 3))
reported(u.get, "u.nc", 0, np.zeros(3))
context.finalize()
"""


def test_what_is_refused_on_one_rank_is_reported_to_those_that_would_wait_for_it(python):
    done = python(3, REFUSED, "serial").ok()
    said = {rank: re.findall(rf"^rank {rank}: (.*)$", done.stdout, re.M) for rank in range(3)}
    assert said[1] == [
        "set_lonlat: lon has 2 and lat 2 values; expected 3, this rank's points",
        "set_lonlat: fine",
        "get: get of field u: shape (2,); expected (3,) (halo included)",
        "get: fine",
    ]
    for rank in (0, 2):
        assert said[rank][1::2] == ["set_lonlat: fine", "get: fine"]
        assert said[rank][0].endswith(
            "lon and lat of grid 'mesh': lon of a rank is null, or was refused there; expected 3 "
            "values")
        assert said[rank][2].endswith(
            "field 'u': the array of a rank is null, or was refused there")
