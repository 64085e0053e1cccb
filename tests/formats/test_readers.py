# SPDX-License-Identifier: Apache-2.0
"""Files that weir-write-stream wrote (the formula is
native/output/format/programs/write_stream.cc's) as other people's programs see them: netCDF4,
xarray, zarr, ncdump, CDO, and the CF checker."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

NX, NY, LEVELS = 12, 6, 4
STREAMS = ["lonlat", "gaussian", "plane", "curvilinear", "unstructured", "mean", "two"]
FORMATS = ["cdf2", "cdf5", "netcdf4", "zarr"]
MISSING = -999.0

netCDF4 = pytest.importorskip("netCDF4", reason="needs the test extra, on Python 3.11 or newer")
xarray = pytest.importorskip("xarray", reason="needs the test extra, on Python 3.11 or newer")


@pytest.fixture(scope="session")
def write_stream(native_build, execute):
    """``write_stream(format, stream, path, records=3, owners=2, compression=None)`` writes a file
    and returns its path."""
    program = native_build / "native" / "output" / "weir-write-stream"
    if not program.exists():
        pytest.skip("weir-write-stream is not built (needs libnetcdf-dev, libhdf5-dev)")

    def call(format, stream, path, records=3, owners=2, compression=None, fails=False):
        extra = [compression] if compression else []
        done = execute([program, format, stream, path, str(records), str(owners), *extra],
            timeout=60)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else Path(path)

    return call


def expected(records, shape, missing=False):
    """The values of a field, [record][shape]."""
    element = np.arange(np.prod(shape))
    values = np.stack([200.0 + (record * 31 + element) % 97 for record in range(records)])
    if missing:
        values[:, element % 10 == 3] = np.nan
    return values.reshape(records, *shape)


def open_dataset(path, **keywords):
    if path.is_dir():
        pytest.importorskip("zarr", reason="needs the test extra, on Python 3.11 or newer")
        return xarray.open_dataset(path, engine="zarr", **keywords)
    return xarray.open_dataset(path, engine="netcdf4", **keywords)


def check_values(path, stream, records):
    horizontal = (NX * NY,) if stream == "unstructured" else (NY, NX)
    with open_dataset(path) as data:
        np.testing.assert_array_equal(data["ta"].values, expected(records, (LEVELS, *horizontal)))
        np.testing.assert_array_equal(data["ps"].values,
            expected(records, horizontal, missing=True))
        assert data["ta"].dtype == np.float32 and data["ps"].dtype == np.float64
        hours = np.datetime64("2026-11-21T00:00:00") + np.arange(1, records + 1) * np.timedelta64(1,
            "h")
        np.testing.assert_array_equal(data["time"].values, hours)
        assert data.attrs["Conventions"] == "CF-1.11" and data.attrs[
            "title"] == "weir's test of formats"
        assert data["ta"].attrs["standard_name"] == "air_temperature" and data["ta"].attrs[
            "units"] == "K"
        np.testing.assert_array_equal(data["plev"].values, [100000, 85000, 50000, 20000])
        if stream in ("curvilinear", "unstructured"):
            assert {"lon", "lat"} <= set(data["ta"].coords)
            assert data["lon"].values.ravel()[13] == 30 and data["lat"].values.ravel()[13] == 45
        elif stream != "two":
            assert data["ta"].dims == ("time", "plev",
                *(("y", "x") if stream == "plane" else ("lat", "lon")))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("format", FORMATS)
def test_xarray_reads_every_kind_of_grid(write_stream, tmp_path, format, stream):
    check_values(write_stream(format, stream, tmp_path / f"{stream}.{format}", owners=3), stream, 3)


@pytest.mark.parametrize(("format", "compression"),
    [("netcdf4", "deflate:3"), ("netcdf4", "zstd:3"), ("zarr", "zstd:3"), ("zarr", "deflate:3")])
def test_compressed_files_read_back_by_others(write_stream, tmp_path, format, compression):
    path = write_stream(format, "mean", tmp_path / "packed", records=4, owners=3,
        compression=compression)
    check_values(path, "mean", 4)
    if format == "netcdf4":
        with netCDF4.Dataset(path) as data:
            filters = data["ta"].filters()
            assert filters["shuffle"] and filters[{"deflate:3": "zlib",
                "zstd:3": "zstd"}[compression]], filters


def test_bounds_and_methods_of_means(write_stream, tmp_path):
    for format in FORMATS:
        path = write_stream(format, "mean", tmp_path / f"mean.{format}")
        with open_dataset(path, decode_times=False) as data:
            assert data["time"].attrs["bounds"] == "time_bnds"
            np.testing.assert_array_equal(data["time_bnds"].values,
                [[0, 3600], [3600, 7200], [7200, 10800]])
            assert data["plev_bnds"].shape == (4, 2)
            methods = {name: data[name].attrs.get("cell_methods")
                for name in ("ta", "ps", "ps_max")}
            assert methods == {"ta": "time: mean", "ps": "time: point", "ps_max": "time: maximum"}


def test_formats_are_what_their_names_say(write_stream, tmp_path, execute):
    kinds = {"cdf2": "64-bit offset", "cdf5": "cdf5", "netcdf4": "netCDF-4"}
    for format, kind in kinds.items():
        path = write_stream(format, "lonlat", tmp_path / format)
        assert execute(["ncdump", "-k", path]).stdout.strip() == kind
        header = execute(["ncdump", "-h", path]).stdout
        assert "time = UNLIMITED ; // (3 currently)" in header
        assert "float ta(time, plev, lat, lon) ;" in header


def test_ncdump_prints_the_same_of_all_netcdf_formats(write_stream, tmp_path, execute):
    texts = set()
    for format in ("cdf2", "cdf5", "netcdf4"):
        path = write_stream(format, "mean", tmp_path / f"{format}.nc")
        texts.add(re.sub(r"^netcdf \w+", "", execute(["ncdump", path]).stdout))
    assert len(texts) == 1 and len(texts.pop()) > 5000


def test_zarr_alone_reads_the_store(write_stream, tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs the test extra, on Python 3.11 or newer")
    path = write_stream("zarr", "mean", tmp_path / "store", compression="zstd:1")
    group = zarr.open_consolidated(path)
    assert group.metadata.zarr_format == 3 and sorted(group.keys()) == sorted(
        ["lat", "lon", "plev", "plev_bnds", "time", "time_bnds", "ta", "ps", "ps_max"]
    )
    np.testing.assert_array_equal(group["ta"][:], expected(3, (LEVELS, NY, NX)))
    assert group["ta"].shards is not None and group["ps"].fill_value == MISSING
    assert group["ta"].metadata.dimension_names == ("time", "plev", "lat", "lon")
    single = zarr.open_array(path / "ta", mode="r")  # the array's own metadata, not the group's
    assert single.shape == (3, LEVELS, NY, NX)


def test_cdo_knows_grid_levels_and_time(write_stream, tmp_path, execute):
    if not shutil.which("cdo"):
        pytest.skip("cdo is not installed (Debian: cdo)")
    path = write_stream("cdf5", "mean", tmp_path / "a.nc")
    text = execute(["cdo", "-s", "sinfon", path]).stdout
    assert "lonlat" in text and "points=72 (12x6)" in text and "pressure" in text
    assert "3 steps" in text and "2026-11-21 03:00:00" in text
    curvilinear = execute(["cdo", "-s", "sinfon", write_stream("netcdf4", "curvilinear",
        tmp_path / "b.nc")]).stdout
    assert "curvilinear" in curvilinear
    mean = execute(["cdo", "-s", "outputf,%.6f", "-fldmean", "-seltimestep,1", "-sellevidx,1",
        "-selname,ps", path]).stdout
    values = expected(1, (NY, NX), missing=True)[0]
    weights = np.cos(np.deg2rad(75 - 30 * np.arange(NY)))[:, None] * np.isfinite(values)
    assert float(mean) == pytest.approx(np.nansum(values * weights) / weights.sum(), rel=1e-3)


@pytest.mark.parametrize("stream", STREAMS)
def test_cf_checker_finds_no_error(write_stream, tmp_path, execute, stream):
    pytest.importorskip("compliance_checker",
        reason="needs the test extra, on Python 3.11 or newer")
    path = write_stream("cdf5", stream, tmp_path / f"{stream}.nc")
    checker = Path(sys.executable).parent / "compliance-checker"
    done = execute([checker, "--test", "cf:1.11", path], timeout=120)
    assert "cf:1.11" in done.stdout, done.stderr
    assert re.search(r"^ +Errors *$", done.stdout, re.M) is None, done.stdout
    # The order is T Z Y X. The checker guesses the kinds of dimensions by coordinate variables,
    # which y, x and cell of such grids lack.
    complaints = re.findall(r"^\* .*|^§.*", done.stdout, re.M)
    guessed = [c for c in complaints if "recommended order" in c or c.startswith("§2.4")]
    assert complaints == guessed and (stream in ("plane", "curvilinear", "unstructured")
        or not complaints), done.stdout


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_reported_with_path_and_cause(write_stream, tmp_path, format):
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "none", small]).returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        said = write_stream(format, "lonlat", small / "full", records=400, fails=True)
    finally:
        subprocess.run(["umount", small], check=True)
    assert re.search(rf"cannot write \d+ bytes [a-z0-9 ]+ {small}/full\S*: No space left on "
        r"device; free space on that file system \(\d+ of 196608 bytes are free\)", said), said


@pytest.mark.parametrize("format", FORMATS)
def test_a_directory_that_refuses_is_reported_with_path_and_cause(write_stream, tmp_path, format):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a directory")
    said = write_stream(format, "lonlat", blocked / "x", fails=True)
    assert str(blocked / "x") in said and "Not a directory" in said


@pytest.mark.parametrize("format", FORMATS)
def test_a_killed_writer_leaves_a_file_that_is_complete_up_to_a_record(write_stream, native_build,
        tmp_path, format):
    program = native_build / "native" / "output" / "weir-write-stream"
    seen = 0
    for attempt in range(6):
        path = tmp_path / f"killed{attempt}"
        process = subprocess.Popen([program, format, "lonlat", path, "100000", "2"])
        # Killed when the file has grown to a different length each time.
        while process.poll() is None and size_of(path) < 60_000 + 45_000 * attempt:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        complete_from_journal(path)
        with open_dataset(path, decode_times=False) as data:
            records = data.sizes["time"]
            np.testing.assert_array_equal(data["ta"].values, expected(records, (LEVELS, NY, NX)))
            np.testing.assert_array_equal(data["time"].values, 3600.0 * np.arange(1, records + 1))
            seen += records
    assert seen > 20


def complete_from_journal(path: Path) -> None:
    """What weir does when it goes on with a netCDF-4 file whose writer died: see
    native/output/format/netcdf/journal.h."""
    journal = Path(f"{path}.journal")
    if not journal.exists():
        return
    data = journal.read_bytes()
    magic, size, checksum = struct.unpack_from("<8sQQ", data.ljust(24, b"\0"))
    body = data[24 : 24 + size]
    found = 0xCBF29CE484222325
    for byte in body:
        found = (found ^ byte) * 0x100000001B3 % 2**64
    if magic != b"weirjrn1" or len(body) != size or found != checksum:
        return
    with open(path, "r+b") as file:
        at = 0
        while at < size:
            address, length = struct.unpack_from("<QQ", body, at)
            file.seek(address)
            file.write(body[at + 16 : at + 16 + length])
            at += 16 + length


def size_of(path: Path) -> int:
    if path.is_dir():
        return 2_000 * sum(1 for _ in os.scandir(path / "ta")) if (path / "ta").is_dir() else 0
    return path.stat().st_size if path.exists() else 0
