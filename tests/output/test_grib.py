# SPDX-License-Identifier: Apache-2.0
"""GRIB under the engine: every mode writes the same messages, strangers' tools read them, and
weir_get gets the values back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from weir_tools import tool

pytestmark = pytest.mark.any_mpi

MODES = {"serial": 2, "collective": 4, "servers": 3, "servers+parallel": 5}
STEPS, LEVELS = 3, 3
LEVELS_HPA = ("850", "500", "250")


@pytest.fixture
def grib(mpi, native_build, root, tmp_path, execute):
    """``grib(mode, kind, more)``: the path of what grib.c wrote and what it printed; with ``other``
    it reads that file alone. ``grib.stderr``: what the last one said there."""
    libraries = native_build / "lib" / mpi.name
    if not (libraries / "libweir.so").exists():
        pytest.skip(f"libweir is not built for {mpi.name}")
    if not (native_build / "lib" / "weir-format-grib.so").exists():
        pytest.skip("libweir is built without ecCodes")
    flags = (f"-I{root / 'include'}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lweir", "-lm")
    program = mpi.cc(Path(__file__).parent / "grib.c", *flags, name="grib")

    def call(mode: str, kind: str, more: str = "", name: str = "o.grib", fails: bool = False,
            other: Path | None = None):
        servers = 2 if mode == "servers+parallel" else 1
        (tmp_path / "output.toml").write_text(
            f'[output]\nmode = "{mode}"\nservers_per_group = {servers}\naggregators = 2\n'
            f"time_limit_s = 60\n{more}")
        (tmp_path / "serial.toml").write_text('[output]\nmode = "serial"\n')
        done = mpi.run(MODES[mode], program, "output.toml", kind, STEPS, name,
            *([other] if other else []), timeout=120, cwd=tmp_path)
        call.stderr = done.stderr
        error = tmp_path / "error.txt"
        printed = done.stdout + (error.read_text() if error.exists() else "")
        error.unlink(missing_ok=True)
        if not fails:
            assert done.returncode == 0 and "error" not in printed, printed + done.stderr
        return tmp_path / name, printed

    return call


def keys(path: Path, names: str) -> list[list[str]]:
    return [line.split() for line in tool("grib_get", "-f", "-p", names, path).splitlines()]


def worst(printed: str) -> dict[str, float]:
    return {name: float(value)
        for name, value in re.findall(r"^read back (\w+): (\S+)$", printed, re.M)}


def test_every_mode_writes_the_same_messages_and_they_read_back(grib):
    first = None
    for mode in MODES:
        path, printed = grib(mode, "gaussian", name=mode.replace("+", "-"))
        first = first or path.read_bytes()
        assert path.read_bytes() == first, mode
        # 16 bits over a range below 1100: half a step of 2^-5, and the rounding of float32
        assert worst(printed).keys() == {"ta", "skt"} and max(worst(printed).values()) < 0.02
    assert first.count(b"GRIB") >= (STEPS - 1) * (LEVELS + 2)


@pytest.mark.parametrize(("kind", "more", "grid"), [
    ("lonlat", "", "regular_ll"),
    ("gaussian", "", "regular_gg"),
    ("octahedral", '[stream.history.grib]\ngridName = "O4"\n', "reduced_gg"),
    ("cells", "[stream.history.grib]\nnumberOfGridUsed = 42\n", "unstructured_grid"),
])
def test_headers_say_what_the_fields_are(grib, kind, more, grid):
    path, _ = grib("servers", kind, more)
    rows = keys(path, "shortName,typeOfLevel,level,stepRange,stepType,dataDate,dataTime,gridType")
    # the stream has a mean: its first frame ends the first interval
    fixed = 2 if kind == "cells" else 0
    assert len(rows) == (STEPS - 1) * (LEVELS + 2) + fixed
    assert {row[7] for row in rows} == {grid}
    assert [row[:7] for row in rows[fixed:fixed + 5]] == [
        ["t", "isobaricInhPa", "850", "0", "instant", "20000101", "100"],
        ["t", "isobaricInhPa", "500", "0", "instant", "20000101", "100"],
        ["t", "isobaricInhPa", "250", "0", "instant", "20000101", "100"],
        ["skt", "surface", "0", "0", "instant", "20000101", "100"],
        ["prate", "surface", "0", "0-1", "avg", "20000101", "0"],
    ]
    assert tool("grib_count", path).strip() == str(len(rows))
    assert "GRIB2" in tool("cdo", "-s", "sinfon", path)


def test_steps_since_the_begin_of_the_run(grib):
    path, _ = grib("serial", "lonlat", '[stream.history.grib]\nreference_time = "run"\n')
    assert keys(path, "stepRange,dataDate,dataTime")[-5:] == [
        ["2", "20000101", "0"]] * 4 + [["1-2", "20000101", "0"]]


@pytest.mark.parametrize(("kind", "levels", "rows"), [
    ("lonlat+hybrid", "typeOfLevel,level,NV", [["hybrid", n, "8"] for n in "123"]),
    ("lonlat+height", "typeOfLevel,level",
     [["heightAboveGround", n] for n in ("2", "10", "100")]),
    ("lonlat+soil", "typeOfLevel,topLevel:d,bottomLevel:d",
     [["depthBelowLandLayer", *n] for n in (("0", "0.07"), ("0.07", "0.28"), ("0.28", "1"))]),
    ("gaussian+members", "number,numberOfForecastsInEnsemble", [[n, "3"] for n in "012"]),
    ("named+pressure", "gridType,gridName,level", [["reduced_gg", "N32", n] for n in LEVELS_HPA]),
    ("harmonics+pressure", "gridType,J,packingType,level",
     [["sh", "15", "spectral_complex", n] for n in LEVELS_HPA]),
])
def test_levels_members_and_spectral_fields(grib, kind, levels, rows):
    path, printed = grib("servers+parallel", kind)
    # ecCodes has a parameter of its own for 2 m
    assert [row[1:] for row in keys(path, f"shortName,{levels}") if row[0] in ("t", "2t")
        ] == rows * (STEPS - 1)
    assert "GRIB2" in tool("cdo", "-s", "sinfon", path)
    assert max(worst(printed).values()) < 0.02


def test_hybrid_levels_have_their_coefficients(grib):
    for format in ("grib2", "grib1"):
        path, _ = grib("serial", "lonlat+hybrid", f'[stream.history]\nformat = "{format}"\n',
            name=format)
        messages = json.loads(tool("grib_dump", "-j", path))["messages"]
        lists = [[key["value"] for key in message if key["key"] == "pv"] for message in messages]
        # the fields of the surface have none
        assert [bool(one) for one in lists] == [True] * 3 + [False] * 2 + [True] * 3 + [False] * 2
        assert lists[0][0] == pytest.approx([0, 2000, 1000.5, 0, 0, 0.25, 0.75, 1], rel=1e-6)


@pytest.mark.parametrize("kind", ["lonlat", "gaussian", "octahedral", "named", "harmonics",
    "lonlat+hybrid", "lonlat+height"])
def test_edition_1_through_the_engine(grib, kind):
    """Its reference time has no seconds and its steps have 255 units: hours do."""
    path, printed = grib("servers", kind, '[stream.history]\nformat = "grib1"\n')
    rows = keys(path, "edition,shortName,stepRange,stepType,dataDate,dataTime,typeOfLevel")
    surface = [["1", "skt", "0", "instant", "20000101", "100", "surface"]] * (kind != "harmonics")
    levels = {"hybrid": "hybrid", "height": "heightAboveGround"}.get(kind.split("+")[-1],
        "isobaricInhPa")
    first = [["1", "t", "0", "instant", "20000101", "100", levels]] * LEVELS
    assert rows[:4 + len(surface)] == [
        *first, *surface, ["1", "prate", "0-1", "avg", "20000101", "0", "surface"]]
    assert tool("grib_count", path).strip() == str(len(rows))
    assert "GRIB" in tool("cdo", "-s", "sinfon", path)
    assert max(worst(printed).values()) < 0.02


def test_minima_of_edition_1_are_parameters_that_are_minima(grib):
    path, _ = grib("serial", "lonlat", '[stream.history]\nformat = "grib1"\n'
        '[[stream.history.field]]\nname = "skt"\noperation = "minimum"\n'
        'grib = { paramId = 202 }\n', fails=True)
    assert {tuple(row) for row in keys(path, "shortName,timeRangeIndicator")} == {("mn2t", "2")}


@pytest.mark.parametrize("change", ["edition=1", "packingType=grid_second_order",
    "packingType=grid_ieee", "packingType=grid_ccsds"])
def test_files_of_others_are_read(grib, change, tmp_path):
    path, _ = grib("serial", "gaussian", "[stream.history.grib]\ncentre = 98\n")
    other = tmp_path / "other.grib"
    tool("grib_set", "-r", "-s", change, path, other)
    for mode in ("serial", "collective"):
        _, printed = grib(mode, "gaussian", other=other)
        assert worst(printed).keys() == {"ta", "skt"} and max(worst(printed).values()) < 0.03


def test_several_threads_encode_the_same_bytes(grib):
    one, _ = grib("servers", "gaussian", name="one")
    four, _ = grib("servers", "gaussian", "encode_threads = 4\n", name="four")
    assert one.read_bytes() == four.read_bytes()


@pytest.mark.parametrize("mode", ["servers", "servers+parallel", "collective"])
def test_threads_that_share_a_processor_are_warned_of_once(grib, mode):
    """On each machine at most so many processors are there for a rank."""
    threads = os.cpu_count() + 1
    grib(mode, "gaussian", f"encode_threads = {threads}\n")
    (said,) = [line for line in grib.stderr.splitlines() if "encode_threads" in line]
    assert re.match(rf"weir: encode_threads is {threads}, and rank \d+, which writes, may use \d+ "
        "of the node's processors: threads that share one are no faster", said)


def test_threads_are_not_warned_of_where_nothing_is_encoded_by_them(grib):
    grib("servers", "gaussian")
    assert "encode_threads" not in grib.stderr
    grib("servers", "gaussian", f"encode_threads = {os.cpu_count() + 1}\n"
        '[stream.history]\nformat = "netcdf4"\n')
    assert "encode_threads" not in grib.stderr


@pytest.mark.parametrize(("packing", "precision"), [("grid_ccsds", 0.02),
    ("grid_second_order", 0.02),
    ("grid_ieee", 0.0001)])
def test_packings_keep_values_within_their_precision(grib, packing, precision):
    path, printed = grib("servers", "lonlat", f'[stream.history.grib]\npackingType = "{packing}"\n')
    assert {row[0] for row in keys(path, "packingType")} <= {packing, "grid_simple"}
    assert keys(path, "packingType")[0] == [packing]
    assert max(worst(printed).values()) < precision


def test_missing_values_are_a_bitmap(grib):
    path, printed = grib("collective", "lonlat")
    rows = {tuple(row) for row in keys(path, "shortName,bitmapPresent,numberOfMissing")}
    assert rows == {("t", "0", "0"), ("prate", "0", "0"), ("skt", "1", "58")}
    assert worst(printed)["skt"] < 0.02


@pytest.mark.parametrize(("more", "says"), [
    ("[stream.history.grib]\ncolour = 3\n",
        r"output\.toml:7:10: field 'ta': colour = 3: ecCodes: "),
    ('[[stream.history.field]]\nname = "ta"\ngrib = { shortName = "nothing_such" }\n',
     r"output\.toml:8:\d+: field 'ta': shortName = 'nothing_such': ecCodes: Concept no match"),
    ('[stream.history]\nformat = "netcdf4"\ngrib = { centre = 78 }\n',
     r"output\.toml:7:10: format 'netcdf4' has no keys of GRIB"),
    ("[stream.history]\ngrib = 5\n", r"output\.toml:7:8: grib is '5'; expected a table of keys"),
    ('[stream.history.grib]\nreference_time = "noon"\n',
     r"output\.toml:7:18: field 'ta': reference_time is 'noon'; expected \"record\" or \"run\""),
    ("[stream.history.grib]\ndecimalScaleFactor = 2\n",
     r"output\.toml:7:22: field 'ta': decimalScaleFactor follows from the values"),
    ('[stream.history]\nformat = "grib1"\n[[stream.history.field]]\nname = "ta"\n'
     'operation = "minimum"\n', r"field 'ta': edition 1 of GRIB cannot say that values of "
     r"parameter 130 \('Temperature'\) are minima, and they would be read as maxima; use "),
    ('[stream.history]\ncompression = "zstd:1"\n',
     r"output\.toml:7:15: stream 'history': grib2: variable ta asks for compression, which "
     "GRIB has not"),
    ('[stream.history.grib]\npackingType = "grid_png"\n',
     r"output\.toml:7:15: field 'ta': packingType 'grid_png' is not written in edition 2"),
    ('[stream.history]\nformat = "grib1"\ngrib = { packingType = "spectral_complex" }\n',
     r"field 'ta': packingType 'spectral_complex' is not written in edition 1 of GRIB for a grid; "
     "expected grid_simple, grid_second_order"),
    ("[stream.history.grib]\nbitsPerValue = 33\n",
     r"output\.toml:7:16: field 'ta': bitsPerValue is 33; expected a whole number from 1 to 32"),
    ('[stream.history.grib]\ngridName = "O5"\n', r"field 'ta': the rows of its reduced Gaussian"),
])
def test_a_mistake_in_the_keys_is_named_with_its_place(grib, more, says):
    _, printed = grib("serial", "lonlat", more, fails=True)
    assert re.search(says, printed), printed


def test_a_run_goes_on_with_a_file(grib):
    more = '[stream.history]\nexisting = "append"\n'
    path, _ = grib("serial", "lonlat")
    whole = path.read_bytes()
    # the same times again are refused, and the file stays as it is
    _, printed = grib("serial", "lonlat", more, fails=True)
    assert "is not later" in printed and path.read_bytes() == whole


def test_cfgrib_opens_the_file(grib):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("cfgrib", reason="cfgrib is not installed", exc_type=ImportError)
    path, _ = grib("servers", "lonlat")
    with xarray.open_dataset(path, engine="cfgrib", decode_timedelta=False,
            backend_kwargs={"filter_by_keys": {"shortName": "t"}, "indexpath": ""}) as data:
        assert data["t"].shape == (STEPS - 1, LEVELS, 12, 24)
        assert data["isobaricInhPa"].values.tolist() == [850, 500, 250]
