# SPDX-License-Identifier: Apache-2.0
"""The examples in C, Fortran and Python write the same files to the byte, whoever writes them and
with any number of ranks."""

from __future__ import annotations

import re
import sys

SERVERS = '[output]\nmode = "servers"\ngroups = 2\n'
NAMELIST = (
    "&time_control io_form_history = 11 /\n&namelist_quilt nio_groups = 1, nio_tasks_per_group = 2 "
    "/\n"
)


def files(directory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix != ".toml"}


def test_three_languages_write_the_same_files(libweir, execute, tmp_path):
    for name in ("c", "fortran", "python"):
        (tmp_path / name).mkdir()
    (tmp_path / "servers.toml").write_text(SERVERS)
    (tmp_path / "namelist.input").write_text(NAMELIST)
    examples = libweir.root / "examples"
    libweir.run(4, libweir.cc(examples / "c" / "output.c"), cwd=tmp_path / "c").ok()
    fortran = libweir.fc(examples / "fortran" / "output.f90")
    libweir.run(5, fortran, tmp_path / "servers.toml", cwd=tmp_path / "fortran").ok()
    python = [sys.executable, examples / "python" / "output.py"]
    execute(python, cwd=tmp_path / "python",
        env={**libweir.mpi.env, "WEIR_OUTPUT_LIBRARIES": str(libweir.libraries)}).ok()
    written = files(tmp_path / "c")
    assert sorted(written) == ["history_2026112100.nc", "history_2026112103.nc",
        "history_2026112106.nc"]
    assert files(tmp_path / "fortran") == written
    assert files(tmp_path / "python") == written
    again = tmp_path / "namelist"
    again.mkdir()
    libweir.run(3, fortran, tmp_path / "namelist.input", cwd=again).ok()
    assert files(again) == written


def test_an_independent_reader_finds_the_values(libweir, execute, tmp_path):
    libweir.run(3, libweir.cc(libweir.root / "examples" / "c" / "output.c"), cwd=tmp_path).ok()
    text = execute(["ncdump", "-v", "ps,time", tmp_path / "history_2026112103.nc"]).ok().stdout
    times = re.search(r"\n time = ([^;]*);", text)[1]
    assert [float(t) for t in times.split(",")] == [10800, 14400, 18000]
    values = [float(v) for v in re.search(r"\n ps =([^;]*);", text)[1].split(",")]
    expected = [100250 + (n * 7 % 1013 + step * 3) / 8 for step in (3, 4, 5)
        for n in range(18 * 36)]
    assert values == expected
