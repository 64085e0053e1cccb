# SPDX-License-Identifier: Apache-2.0
"""The module weir: what programs/faces.F90 says of itself, and what the file it writes has."""

from __future__ import annotations

import re


def test_halos_sections_kinds_lent_places_reading_and_errors(libweir, execute, tmp_path):
    done = libweir.run(3, libweir.fc(libweir.root / "tests" / "faces" / "programs" / "faces.F90"),
        cwd=tmp_path)
    assert "WRONG" not in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("yes") == 11, done.stdout + done.stderr
    assert done.returncode != 0, "an error without stat ends the program"
    assert re.search(
        r"weir: rank \d: stream create: stream 'other': path 'x_%q.nc': '%q': expected one of",
        done.stderr), done.stderr

    text = execute(["ncdump", tmp_path / "faces.nc"]).ok().stdout

    def values(name: str) -> list[float]:
        return [float(v) for v in re.search(rf"\n {name} =([^;]*);", text)[1].split(",")]

    assert values("u") == [i + 100 * j + 10000 * k for k in (1, 2, 3) for j in range(1, 11)
        for i in range(1, 13)]
    assert values("n") == [1001 + i for i in range(120)]
    first_row = [1] * 4 + [5] * 6  # of the rank that has the row; rank 1 has none
    assert values("k") == [first_row[j] for j in range(10) for _ in range(12)]
    assert values("lent") == [{1: 0, 5: 2}[first_row[j]] for j in range(10) for _ in range(12)]
    assert values("k_again") == values("k")
    assert "u:_FillValue = -999. ;" in text


def test_coordinates_and_fields_of_any_dimensions_and_errors_that_name_them(libweir, execute,
        tmp_path):
    done = libweir.run(3, libweir.fc(libweir.root / "tests" / "faces" / "programs" / "shapes.F90"),
        cwd=tmp_path).ok()
    assert "WRONG" not in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("yes") == 3 * 11, done.stdout + done.stderr

    text = execute(["ncdump", tmp_path / "shapes.nc"]).ok().stdout

    def values(name: str) -> list[float]:
        return [float(v) for v in re.search(rf"\n {name} =([^;]*);", text)[1].split(",")]

    lons, lats = re.findall(r"double (lon\w*)\(", text), re.findall(r"double (lat\w*)\(", text)
    assert len(lons) == len(lats) == 2, text[:2000]
    rows = [(i, j + 1) for j in range(9) for i in range(1, 7)]
    assert sorted(map(tuple, map(values, lats)))[0] != sorted(map(tuple, map(values, lats)))[1]
    assert [float(j) for _, j in rows] in [values(name) for name in lats]
    assert [float(10 * i + j) for i, j in rows] in [values(name) for name in lons]
    assert values("flat") == [j for _, j in rows]
