# SPDX-License-Identifier: Apache-2.0
"""Definitions of netCDF-C and PnetCDF: each is recorded with its file, and does what it does
without weir."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from weir.query import open_run

TYPES = ("schar", "uchar", "short", "ushort", "int", "uint", "long", "float", "double", "longlong",
    "ulonglong")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#define DO(call) do { int e_ = (call); if (e_) { fprintf(stderr, "%s: %d\n", #call, e_); exit(1); } } while (0)
#ifdef PNETCDF
#include <pnetcdf.h>
#define N(name) ncmpi_##name
#else
#include <netcdf.h>
#define N(name) nc_##name
#endif
#define EACH(OF) OF(schar, signed char, NC_BYTE) OF(uchar, unsigned char, NC_UBYTE) \
  OF(short, short, NC_SHORT) OF(ushort, unsigned short, NC_USHORT) OF(int, int, NC_INT) \
  OF(uint, unsigned, NC_UINT) OF(long, long, NC_INT) OF(float, float, NC_FLOAT) \
  OF(double, double, NC_DOUBLE) OF(longlong, long long, NC_INT64) \
  OF(ulonglong, unsigned long long, NC_UINT64)
#define PUT(name, type, kind) { type v[2] = {1, 2}; DO(N(put_att_##name)(file, t, #name, kind, 2, v)); }
#define GET(name, type, kind) { type v[2]; DO(N(get_att_##name)(file, t, #name, v)); if (v[0] != 1 || v[1] != 2) return 2; }
int main(int argc, char **argv) {
  int file, dim, t, mode, id;
  double fill = -1, values[2] = {3, 4};
  char text[8] = {0};
#ifdef PNETCDF
  MPI_Init(&argc, &argv);
  DO(ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
#else
  DO(nc_create("out.nc", NC_NETCDF4, &file));
#endif
  DO(N(set_fill)(file, NC_NOFILL, &mode));
  DO(N(def_dim)(file, "y", 50, &dim));
  DO(N(rename_dim)(file, dim, "x"));
  DO(N(def_var)(file, "S", NC_DOUBLE, 1, &dim, &t));
  DO(N(rename_var)(file, t, "T"));
  DO(N(def_var_fill)(file, t, 0, &fill));
  DO(N(put_att)(file, t, "of_any", NC_DOUBLE, 2, values));
  DO(N(put_att_text)(file, t, "unit", 1, "K"));
  DO(N(rename_att)(file, t, "unit", "units"));
  DO(N(put_att_text)(file, NC_GLOBAL, "wrong", 1, "x"));
  DO(N(del_att)(file, NC_GLOBAL, "wrong"));
  EACH(PUT)
#ifndef PNETCDF
  const char *string = "text";
  size_t chunk = 10;
  int group;
  DO(nc_put_att_string(file, t, "string", 1, &string));
  unsigned char bytes[2] = {1, 2};
  DO(nc_put_att_ubyte(file, t, "ubyte", NC_UBYTE, 2, bytes));
  DO(nc_def_var_chunking(file, t, NC_CHUNKED, &chunk));
  DO(nc_def_var_deflate(file, t, 1, 1, 1));
  DO(nc_def_var_fletcher32(file, t, 1));
  DO(nc_def_var_endian(file, t, NC_ENDIAN_BIG));
  DO(nc_def_grp(file, "group", &group));
#endif
  DO(N(enddef)(file));
  if (N(def_dim)(file, "", 1, &dim) == NC_NOERR) return 3;  // no name: refused
  DO(N(close)(file));
#ifdef PNETCDF
  DO(ncmpi_open(MPI_COMM_WORLD, "out.nc", NC_NOWRITE, MPI_INFO_NULL, &file));
#else
  DO(nc_open("out.nc", NC_NOWRITE, &file));
#endif
  DO(N(inq_varid)(file, "T", &id));
  if (id != t) return 4;
  DO(N(get_att_text)(file, t, "units", text));
  DO(N(get_att_double)(file, t, "of_any", values));
  if (text[0] != 'K' || values[1] != 4) return 5;
  EACH(GET)
  DO(N(close)(file));
#ifdef PNETCDF
  MPI_Finalize();
#endif
  return 0;
}
"""

COMMON = ("set_fill", "rename_dim", "def_var", "rename_var", "def_var_fill", "put_att",
    "rename_att", "del_att", "enddef", *(f"put_att_{name}" for name in TYPES))
OF_NETCDF = ("put_att_string", "put_att_ubyte", "def_var_chunking", "def_var_deflate",
    "def_var_fletcher32", "def_var_endian", "def_grp")


def flags(execute, package: str) -> list[str]:
    found = execute(["pkg-config", "--cflags", "--libs", package]) if shutil.which(
        "pkg-config") else None
    if found is None or found.returncode != 0:
        pytest.skip(f"pkg-config does not know {package} here")
    return found.stdout.split()


def defined(weir, tmp_path, table: str, command: list, env: dict | None = None) -> Counter:
    """Calls of definitions by function: all on the file, one of them failed."""
    weir("trace", "--quiet", "-o", "run", "--", *command, cwd=tmp_path, env=env).ok()
    run = open_run(tmp_path / "run")
    try:
        rows = run.sql(f"SELECT function, file, error, variable, bytes FROM {table} "
            "WHERE function LIKE '%def%' OR function LIKE '%att%' OR function LIKE '%fill%' "
            "OR function LIKE '%rename%'").to_pylist()
    finally:
        run.close()
    assert {row["file"] for row in rows} == {str(tmp_path / "out.nc")}
    assert {(row["variable"], row["bytes"]) for row in rows} == {(None, 0)}
    assert sum(row["error"] is not None for row in rows) == 1
    return Counter(row["function"] for row in rows)


def test_definitions_of_netcdf(cc, weir, tmp_path, execute):
    found = defined(weir, tmp_path, "netcdf_calls", [cc(PROGRAM, *flags(execute, "netcdf"))])
    assert found == {**{f"nc_{name}": 1 for name in (*COMMON, *OF_NETCDF)}, "nc_def_dim": 2,
        "nc_put_att_text": 2}


def test_definitions_of_pnetcdf(mpi, weir, tmp_path, execute):
    if mpi.name != "openmpi":
        pytest.skip("packaged for Open MPI alone")
    program = mpi.cc(PROGRAM, "-DPNETCDF", *flags(execute, "pnetcdf"))
    found = defined(weir, tmp_path, "pnetcdf_calls", mpi.launch(1, program), dict(mpi.env))
    assert found == {**{f"ncmpi_{name}": 1 for name in COMMON}, "ncmpi_def_dim": 2,
        "ncmpi_put_att_text": 2}
