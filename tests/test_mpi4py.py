# SPDX-License-Identifier: Apache-2.0
"""mpi4py's wheel looks for the functions of MPI at run time and calls those that it finds.

All calls of MPI-IO work on each MPI, at each level, with and without the records of MPI, and under
layers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import decode
import numpy as np
import pytest

from weir.query import open_run

pytest.importorskip("mpi4py", reason="needs the test extra")

PROGRAM = Path(__file__).parent / "programs" / "mpi4py_io.py"
RANKS = 2


@pytest.fixture
def mpi4py(mpi, tmp_path):
    """``mpi4py(env, prefix)``: RANKS ranks run the program, or the ``arguments`` of Python, by way
    of the command in ``prefix``."""
    # Non-blocking collectives of Open MPI 4.1's ROMIO crash, without weir too.
    own = {"MPI4PY_MPIABI": mpi.name, "OMPI_MCA_io": "ompio"}
    mpich = next((path for path in Path("/usr/lib").glob("*/libmpich.so.12")), None)
    if mpi.name == "mpich" and mpich and not (mpich.parent / "libmpi.so.12").exists():
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "libmpi.so.12").symlink_to(mpich)
        own["LD_LIBRARY_PATH"] = f"{tmp_path / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"

    def run(env=None, prefix=(), arguments=(PROGRAM, "data"), ranks=RANKS):
        command = [*prefix, sys.executable, "-m", "mpi4py", *arguments]
        return mpi.run(ranks, *command, env={**os.environ, **own, **(env or {})}, cwd=tmp_path)

    return run


@pytest.mark.parametrize("level", ["summary", "detail", "trace"])
@pytest.mark.parametrize("more", [{}, {"WEIR_MPI": "0"}], ids=["mpi", "no-mpi"])
def test_all_accesses_work_when_traced(mpi4py, preload_env, level, more):
    env = preload_env(level=level, **more)
    done = mpi4py(env).ok()
    assert done.stdout.split() == ["right"] * RANKS
    if level == "trace" and not more:
        records = decode.read_trace(env["WEIR_TRACE_DIR"]).records
        accesses = [r for r in records if r.layer == "mpi_io" and "write" in r.op]
        # 14 ways to write, of which 3 have a second call that ends them
        assert len(accesses) == RANKS * (14 + 3)
        assert not any(r.failed for r in accesses)


@pytest.mark.parametrize("stack", ["bufa:16:2:always=1", "global:16:2:always=1"])
def test_all_accesses_work_under_layers(mpi4py, weir, tmp_path, stack):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "data"\nstack = "{stack}"\n')
    weir_command = Path(sys.executable).with_name("weir")
    done = mpi4py(prefix=(weir_command, "run", "--rules", rules, "--")).ok()
    assert done.stdout.split() == ["right"] * RANKS


def test_calls_by_function(mpi4py, preload_env):
    env = preload_env()
    mpi4py(env).ok()
    with open_run(env["WEIR_TRACE_DIR"]) as run:
        found = {tuple(row.values()) for row in run.sql(
            "SELECT function, collective FROM mpi_io_calls WHERE bytes > 0").to_pylist()}
    assert {("MPI_File_write_at_all", True), ("MPI_File_write_at", False)} <= found, found


COLUMNS = """
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
part = MPI.DOUBLE.Create_subarray([8, 8], [8, 2], [0, 2 * world.rank], MPI.ORDER_C).Commit()
file = MPI.File.Open(world, "columns", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(128, MPI.DOUBLE, part)
file.Write_all(np.full((8, 2), world.rank + 1.0))
file.Close()
"""


def test_file_views_of_columns_are_drawn(mpi4py, mpi, weir, preload_env, tmp_path):
    if mpi.name == "mpich":
        pytest.skip("ROMIO of MPICH 4.0 ends a program that views a file through a type with "
                    "counts of 64 bits, which mpi4py makes: without weir too")
    env = preload_env()
    mpi4py(env, arguments=("-c", COLUMNS), ranks=4).ok()
    assert np.fromfile(tmp_path / "columns")[16:].reshape(8, 8).tolist() == [[1, 1, 2, 2, 3, 3, 4,
        4]] * 8
    text = weir("report", env["WEIR_TRACE_DIR"], "--tables", "views").ok().stdout
    for rank in range(4):
        row = "." * rank + "#" + "." * (3 - rank)
        assert f"\n{rank}     {row * 8}\n" in text
    assert "a character: 16 bytes; # all of them, + some, . none" in text
    assert re.search(r"^ +3 +128 +8 +128 +512 +8 +48\+16\*8/64$", text, re.MULTILINE)
    drawn = text.partition("File view 1")[2].partition("\n\nNotes")[0]
    assert max(map(len, drawn.splitlines()[:-1])) <= 80
