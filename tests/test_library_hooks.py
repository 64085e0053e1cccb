# SPDX-License-Identifier: Apache-2.0
"""PnetCDF, netCDF-C and HDF5: each call on a data set with its variable and bytes, from the
libraries as packaged."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from pathlib import Path

import decode
import pytest

from weir.query import open_run

HEAD = """
#include <stdio.h>
#include <stdlib.h>
#define DO(call) do { int e_ = (int)(call); if (e_ < 0 || (IS_ERROR && e_ != 0)) { fprintf(stderr, "%s: %d\\n", #call, e_); exit(1); } } while (0)
"""

PNETCDF = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <pnetcdf.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, file, dims[2], t, p, scalar;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  DO(ncmpi_create(MPI_COMM_WORLD, "out.nc", NC_CLOBBER, MPI_INFO_NULL, &file));
  DO(ncmpi_def_dim(file, "y", 8 * ranks, &dims[0]));
  DO(ncmpi_def_dim(file, "x", 100, &dims[1]));
  DO(ncmpi_def_var(file, "T", NC_FLOAT, 2, dims, &t));
  DO(ncmpi_def_var(file, "P", NC_DOUBLE, 2, dims, &p));
  DO(ncmpi_def_var(file, "time", NC_INT, 0, 0, &scalar));
  DO(ncmpi_enddef(file));
  MPI_Offset start[2] = {8 * rank, 0}, count[2] = {8, 100}, strides[2] = {1, 2}, half[2] = {8, 50};
  static float values[800];
  static double more[800];
  int one = 7, request, status;
  DO(ncmpi_put_vara_float_all(file, t, start, count, values));
  DO(ncmpi_put_vars_float_all(file, t, start, half, strides, values));
  DO(ncmpi_put_vara_all(file, p, start, count, more, 800, MPI_DOUBLE));
  DO(ncmpi_iput_vara_float(file, t, start, count, values, &request));
  DO(ncmpi_wait_all(file, 1, &request, &status));
  DO(ncmpi_put_var_int_all(file, scalar, &one));
  DO(ncmpi_get_vara_double_all(file, t, start, count, more));
  DO(ncmpi_begin_indep_data(file));
  if (rank == 0) DO(ncmpi_get_var1_float(file, t, start, values));
  DO(ncmpi_end_indep_data(file));
  DO(ncmpi_redef(file));
  DO(ncmpi__enddef(file, 0, 4, 0, 4));
  DO(ncmpi_flush(file));
  DO(ncmpi_sync_numrecs(file));
  DO(ncmpi_close(file));
  DO(ncmpi_create(MPI_COMM_WORLD, "left.nc", NC_CLOBBER, MPI_INFO_NULL, &file));
  ncmpi_abort(file);  // one rank deletes the file, which the other does not find
  MPI_Finalize();
}
"""
)

NETCDF = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <netcdf.h>
int main(void) {
  int file, dims[2], t, text;
  DO(nc_create("out.nc", FORMAT, &file));
  DO(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  DO(nc_def_dim(file, "x", 100, &dims[1]));
  DO(nc_def_var(file, "T", NC_DOUBLE, 2, dims, &t));
  DO(nc_def_var(file, "label", NC_CHAR, 1, &dims[1], &text));
  DO(nc_enddef(file));
  static double values[300];
  static char label[100];
  size_t start[2] = {0, 0}, count[2] = {2, 100}, at[2] = {2, 5};
  DO(nc_put_vara_double(file, t, start, count, values));
  DO(nc_put_vara(file, t, start, count, values));
  DO(nc_put_var1_double(file, t, at, values));
  DO(nc_put_var_text(file, text, label));
  DO(nc_sync(file));
  DO(nc_get_var_double(file, t, values));
  if (nc_get_vara_double(file, 99, start, count, values) == NC_NOERR) return 1;
  DO(nc_redef(file));
  DO(nc__enddef(file, 0, 4, 0, 4));
  DO(nc_close(file));
  DO(nc_create("left.nc", FORMAT, &file));
  DO(nc_abort(file));
  return 0;
}
"""
)

PARALLEL = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <mpi.h>
#include <netcdf.h>
int nc_create_par(const char *, int, MPI_Comm, MPI_Info, int *), nc_var_par_access(int, int, int);  // netcdf_par.h lies elsewhere everywhere
enum { NC_COLLECTIVE = 1 };
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, file, dim, t;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  DO(nc_create_par("out.nc", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  DO(nc_def_dim(file, "x", 1000 * ranks, &dim));
  DO(nc_def_var(file, "T", NC_FLOAT, 1, &dim, &t));
  DO(nc_enddef(file));
  DO(nc_var_par_access(file, t, NC_COLLECTIVE));
  size_t start = 1000 * rank, count = 1000;
  static float values[1000];
  DO(nc_put_vara_float(file, t, &start, &count, values));
  DO(nc_close(file));
  MPI_Finalize();
}
"""
)

HDF5 = (
    HEAD
    + r"""
#define IS_ERROR 0
#include <hdf5.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
  DO(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  DO(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  hid_t file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  hid_t group = H5Gcreate2(file, "step", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t scalar = H5Screate(H5S_SCALAR);
  hid_t units = H5Acreate2(group, "step", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
  DO(H5Awrite(units, H5T_NATIVE_INT, &ranks));
  DO(H5Aclose(units));
  hsize_t all = 500 * ranks, start = 500 * rank, mine = 500;
  hid_t in_file = H5Screate_simple(1, &all, 0), in_memory = H5Screate_simple(1, &mine, 0);
  hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(chunked, 1, &mine));
  hid_t set = H5Dcreate2(group, "T", H5T_NATIVE_FLOAT, in_file, H5P_DEFAULT, chunked, H5P_DEFAULT);
  DO(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, 0, &mine, 0));
  double *values = calloc(all, sizeof *values);
  DO(H5Dwrite(set, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, values));
  DO(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  hid_t before = H5Eget_current_stack();
  H5Eset_auto2(H5E_DEFAULT, 0, 0);
  if (H5Dwrite(-1, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, values) >= 0) return 1;
  printf("%d\n", H5Eget_num(H5E_DEFAULT) > 0);
  H5Eclose_stack(before);
  DO(H5Fflush(set, H5F_SCOPE_LOCAL));
  DO(H5Dset_extent(set, &all));
  DO(H5Dclose(set)); DO(H5Sclose(in_memory)); DO(H5Sclose(in_file)); DO(H5Gclose(group)); DO(H5Pclose(access)); DO(H5Pclose(transfer));
  DO(H5Fclose(file));
  MPI_Finalize();
}
"""
)


def flags(execute, package: str) -> list[str]:
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config here")
    found = execute(["pkg-config", "--cflags", "--libs", package])
    if found.returncode != 0:
        pytest.skip(f"{package} is not installed here")
    return found.stdout.split()


def called(trace, layer: str, rank: int | None = None) -> list[tuple]:
    """Operation, what it was on and bytes of the records of a layer, in their order."""
    numbers = {p.number for p in trace.processes.values() if rank is None or p.rank == rank}
    return [
        (r.op.removeprefix("library_"), r.file.rpartition("/")[2], r.size) for r in trace.records
        if r.layer == layer and r.process in numbers
    ]


def openmpi(mpi):
    if mpi.name != "openmpi":
        pytest.skip("packaged for Open MPI alone")
    return mpi


def test_pnetcdf(mpi, preload_env, tmp_path, execute):
    mpi, env = openmpi(mpi), preload_env()
    mpi.run(2, mpi.cc(PNETCDF, *flags(execute, "pnetcdf")), env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(2):
        assert called(trace, "pnetcdf", rank) == [
            ("create", "out.nc", 0), *[("define", "out.nc", 0)] * 6, ("put", "out.nc:T", 3200),
            ("put", "out.nc:T", 1600), ("put", "out.nc:P", 6400),
            ("start_put", "out.nc:T", 3200), ("wait", "out.nc", 0), ("put", "out.nc:time", 4),
            ("get", "out.nc:T", 6400),
            ("sync", "out.nc", 0), *([("get", "out.nc:T", 4)] if rank == 0 else []),
            ("sync", "out.nc", 0), ("define", "out.nc", 0), ("define", "out.nc", 0),
            ("sync", "out.nc", 0), ("sync", "out.nc", 0), ("close", "out.nc", 0),
            ("create", "left.nc", 0), ("close", "left.nc", 0),
        ]  # fmt: skip
    assert {r.file for r in trace.of(layer="pnetcdf", op="library_put")} >= {
        f"pnetcdf:{tmp_path}/out.nc:T"}
    assert trace.of(layer="mpi_io", op="MPI_File_open", file="out.nc")


# Both Fortran interfaces of PnetCDF: they call the C one within its library.
PNETCDF_F = """
program write
  use mpi
  use pnetcdf
  implicit none
  integer :: ierr, file, x, t, p, request(1), status(1)
  integer(MPI_OFFSET_KIND) :: start(1), count(1)
  real :: values(100) = 1.0
  call MPI_Init(ierr)
  ierr = nf90mpi_create(MPI_COMM_WORLD, "out.nc", NF90_CLOBBER, MPI_INFO_NULL, file)
  ierr = nf90mpi_def_dim(file, "x", 100_MPI_OFFSET_KIND, x)
  ierr = nf90mpi_def_var(file, "T", NF90_FLOAT, [x], t)
  ierr = nf90mpi_def_var(file, "P", NF90_DOUBLE, [x], p)
  ierr = nf90mpi_enddef(file)
  start = 1; count = 100
  ierr = nf90mpi_put_var_all(file, t, values, start, count)
  ierr = nfmpi_put_vara_real_all(file, t, start, count / 2, values)
  ierr = nf90mpi_iput_var(file, p, values, request(1), start, count)
  ierr = nf90mpi_wait_all(file, 1, request, status)
  ierr = nf90mpi_get_var_all(file, p, values, start, count)
  ierr = nf90mpi_close(file)
  if (ierr /= NF90_NOERR) error stop
  call MPI_Finalize(ierr)
end program
"""


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_pnetcdf_from_fortran(mpi, preload_env, tmp_path, execute, binding):
    mpi, env = openmpi(mpi), preload_env()
    modules = [f"-I{path.parent}" for path in Path("/usr").glob("lib/*/fortran/*/pnetcdf.mod")]
    program = mpi.fc(PNETCDF_F, *flags(execute, "pnetcdf"), *modules, f"-Wl,-z,{binding}")
    mpi.run(2, program, env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(2):
        assert called(trace, "pnetcdf", rank) == [
            ("create", "out.nc", 0), *[("define", "out.nc", 0)] * 4, ("put", "out.nc:T", 400),
            ("put", "out.nc:T", 200), ("start_put", "out.nc:P", 400), ("wait", "out.nc", 0),
            ("get", "out.nc:P", 400), ("close", "out.nc", 0)]  # fmt: skip


@pytest.mark.parametrize("form", ["NC_CLOBBER", "NC_NETCDF4"])
def test_netcdf(cc, preload_env, tmp_path, execute, form):
    env = preload_env()
    execute([cc(NETCDF, f"-DFORMAT={form}", *flags(execute, "netcdf"))], env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    assert called(trace, "netcdf") == [
        ("create", "out.nc", 0), *[("define", "out.nc", 0)] * 5, ("put", "out.nc:T", 1600),
        ("put", "out.nc:T", 1600), ("put", "out.nc:T", 8),
        ("put", "out.nc:label", 100), ("sync", "out.nc", 0), ("get", "out.nc:T", 2400),
        ("get", "", 0),
        ("define", "out.nc", 0), ("define", "out.nc", 0), ("close", "out.nc", 0),
        ("create", "left.nc", 0), ("close", "left.nc", 0),
    ]  # fmt: skip
    assert [r.failed for r in trace.of(layer="netcdf", op="library_get")] == [False, True]
    assert not called(trace, "hdf5")  # what netCDF does with HDF5 is its own


SHAPES = Path(__file__).parent / "programs" / "netcdf_shapes.c"
TYPE_BYTES = (1, 1, 2, 2, 4, 4, 8, 4, 8, 8, 8)  # of the program's types
ELEMENTS = {"vara": 24, "vars": 4, "varm": 24, "var1": 1, "var": 24, "varn": 12}


def sums(trace, layer: str) -> dict[str, tuple[int, int]]:
    """Calls and bytes by operation."""
    found: dict[str, tuple[int, int]] = {}
    for op, on, size in called(trace, layer):
        if on == "shapes.nc:V":
            calls, total = found.get(op, (0, 0))
            found[op] = calls + 1, total + size
    return found


def test_every_shape_and_type_of_netcdf(cc, preload_env, tmp_path, execute):
    env = preload_env()
    done = execute([cc(SHAPES, *flags(execute, "netcdf"))], env=env, cwd=tmp_path).ok()
    assert done.stdout == ""
    each = sum(ELEMENTS.values()) - ELEMENTS["varn"]
    # ubyte, too, and any type
    expected = 5 * (len(TYPE_BYTES) + 2), each * (sum(TYPE_BYTES) + 1 + 8)
    assert sums(decode.read_trace(env["WEIR_TRACE_DIR"]), "netcdf") == {"put": expected,
        "get": expected}


def test_every_shape_and_type_of_pnetcdf(mpi, preload_env, tmp_path, execute):
    mpi, env = openmpi(mpi), preload_env()
    done = mpi.run(1, mpi.cc(SHAPES, "-DPNETCDF", *flags(execute, "pnetcdf")), env=env,
        cwd=tmp_path).ok()
    assert done.stdout == ""
    calls, size = 6 * len(TYPE_BYTES), sum(ELEMENTS.values()) * sum(TYPE_BYTES)
    twice = 2 * calls, 2 * size  # together and alone; iput and bput, each read back by iget
    found = sums(decode.read_trace(env["WEIR_TRACE_DIR"]), "pnetcdf")
    assert found == {"put": twice, "get": twice, "start_put": twice, "start_get": twice}


OPENINGS = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <netcdf.h>
int main(void) {
  int file;
  size_t chunk = 4096;
  DO(nc__create("classic.nc", NC_CLOBBER, 0, &chunk, &file));
  DO(nc_enddef(file));
  DO(nc_close(file));
  DO(nc__open("classic.nc", NC_NOWRITE, &chunk, &file));
  DO(nc_close(file));
  DO(nc_open("classic.nc", NC_WRITE, &file));
  DO(nc_sync(file));
  DO(nc_close(file));
  return nc_open("missing.nc", NC_NOWRITE, &file) == NC_NOERR;
}
"""
)

PARALLEL_OPENINGS = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <hdf5.h>
#include <pnetcdf.h>
int nc_create_par(const char *, int, MPI_Comm, MPI_Info, int *), nc_open_par(const char *, int, MPI_Comm, MPI_Info, int *), nc_close(int);
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int file, x, variable, value = 3, request, status;
  DO(ncmpi_create(MPI_COMM_WORLD, "p.nc", NC_CLOBBER, MPI_INFO_NULL, &file));
  DO(ncmpi_def_dim(file, "x", 1, &x));
  DO(ncmpi_def_var(file, "V", NC_INT, 1, &x, &variable));
  DO(ncmpi_enddef(file));
  DO(ncmpi_close(file));
  DO(ncmpi_open(MPI_COMM_WORLD, "p.nc", NC_WRITE, MPI_INFO_NULL, &file));
  DO(ncmpi_begin_indep_data(file));
  DO(ncmpi_iput_var_int(file, variable, &value, &request));
  DO(ncmpi_wait(file, 1, &request, &status));
  DO(ncmpi_end_indep_data(file));
  DO(ncmpi_sync(file));
  DO(ncmpi_close(file));
  DO(nc_create_par("n.nc", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  DO(nc_close(file));
  DO(nc_open_par("n.nc", 0, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  DO(nc_close(file));
  hid_t opened = H5Fopen("n.nc", H5F_ACC_RDONLY, H5P_DEFAULT);
  if (opened < 0 || H5Fclose(opened) < 0) return 1;
  MPI_Finalize();
  return 0;
}
"""
)


GROUPS = (
    HEAD
    + r"""
#define IS_ERROR 1
#include <netcdf.h>
int main(void) {
  int file, first, inner, x, at_root, in_first, in_inner, observed;
  nc_type observation;
  DO(nc_create("groups.nc", NC_NETCDF4, &file));
  DO(nc_def_dim(file, "x", 100, &x));
  DO(nc_def_grp(file, "ensemble", &first));
  DO(nc_def_grp(first, "member:1", &inner));
  DO(nc_def_compound(file, 24, "observation_t", &observation));
  DO(nc_insert_compound(file, observation, "value", 0, NC_DOUBLE));
  DO(nc_def_var(file, "T", NC_FLOAT, 1, &x, &at_root));
  DO(nc_def_var(first, "T", NC_DOUBLE, 1, &x, &in_first));
  DO(nc_def_var(inner, "T", NC_SHORT, 1, &x, &in_inner));
  DO(nc_def_var(file, "obs", observation, 1, &x, &observed));
  DO(nc_enddef(file));
  static char values[2400];
  DO(nc_put_var_float(file, at_root, (float *)values));
  DO(nc_put_var_double(first, in_first, (double *)values));
  DO(nc_put_var_short(inner, in_inner, (short *)values));
  DO(nc_put_var(file, observed, values));
  DO(nc_get_var_float(file, at_root, (float *)values));
  DO(nc_close(file));
  return 0;
}
"""
)


def test_variables_of_groups_and_types_of_the_file(cc, weir, preload_env, tmp_path, execute):
    env = preload_env()
    execute([cc(GROUPS, *flags(execute, "netcdf"))], env=env, cwd=tmp_path).ok()
    report = json.loads(weir("report", env["WEIR_TRACE_DIR"], "--json").ok().stdout)
    found = {one["variable"]: (one["puts"], one["put_bytes"], one["gets"], one["get_bytes"])
        for one in report["variables"]}
    assert found == {"T": (1, 400, 1, 400), "ensemble/T": (1, 800, 0, 0),
        "ensemble/member:1/T": (1, 200, 0, 0), "obs": (1, 2400, 0, 0)}
    assert {one["file"] for one in report["variables"]} == {str(tmp_path / "groups.nc")}


UNNAMED = (
    HEAD
    + r"""
#define IS_ERROR 0
#include <hdf5.h>
int main(void) {
  hsize_t size = 100;
  hid_t file = H5Fcreate("later.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(1, &size, 0);
  hid_t set = H5Dcreate_anon(file, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT);
  static double values[100];
  DO(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  DO(H5Olink(set, file, "a:b", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  DO(H5Fclose(file));
  return 0;
}
"""
)


def test_data_sets_that_get_their_name_later(cc, weir, preload_env, tmp_path, execute):
    """As h5py makes them of `file[name] = values`; the name has a colon."""
    env = preload_env()
    execute([cc(UNNAMED, *flags(execute, "hdf5-serial"))], env=env, cwd=tmp_path).ok()
    report = json.loads(weir("report", env["WEIR_TRACE_DIR"], "--json").ok().stdout)
    found = {one["variable"]: (one["put_bytes"], one["get_bytes"], one["file"])
        for one in report["variables"]}
    path = str(tmp_path / "later.h5")
    assert found == {"(unnamed when written)": (800, 0, path), "/a:b": (0, 800, path)}


def test_files_of_netcdf_are_opened_in_every_way(cc, preload_env, tmp_path, execute):
    env = preload_env()
    execute([cc(OPENINGS, *flags(execute, "netcdf"))], env=env, cwd=tmp_path).ok()
    trace, on = decode.read_trace(env["WEIR_TRACE_DIR"]), "classic.nc"
    assert called(trace, "netcdf") == [
        ("create", on, 0), ("define", on, 0), ("close", on, 0), ("open", on, 0), ("close", on, 0),
        ("open", on, 0), ("sync", on, 0),
        ("close", on, 0), ("open", "missing.nc", 0),
    ]  # fmt: skip
    assert [r.failed for r in trace.of(layer="netcdf", op="library_open")] == [False, False, True]


def test_files_are_opened_in_parallel(mpi, preload_env, tmp_path, execute):
    mpi, env = openmpi(mpi), preload_env()
    libraries = [flag for package in ("pnetcdf", "netcdf-mpi", "hdf5-openmpi")
        for flag in flags(execute, package)]
    mpi.run(2, mpi.cc(PARALLEL_OPENINGS, *libraries), env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(2):
        assert called(trace, "pnetcdf", rank) == [
            ("create", "p.nc", 0), *[("define", "p.nc", 0)] * 3, ("close", "p.nc", 0),
            ("open", "p.nc", 0),
            ("sync", "p.nc", 0), ("start_put", "p.nc:V", 4), ("wait", "p.nc", 0),
            ("sync", "p.nc", 0), ("sync", "p.nc", 0), ("close", "p.nc", 0),
        ]  # fmt: skip
        assert called(trace, "netcdf", rank) == [("create", "n.nc", 0), ("close", "n.nc", 0),
            ("open", "n.nc", 0), ("close", "n.nc", 0)]
        assert called(trace, "hdf5", rank) == [("open", "n.nc", 0), ("close", "n.nc", 0)]


@pytest.mark.parametrize("package, library", [("netcdf-mpi", "netcdf"), ("pnetcdf", "pnetcdf"),
    ("hdf5-openmpi", "hdf5")])
def test_every_row_of_the_table_is_a_function_of_its_library(cc, execute, root, package, library):
    """Each is named in a program that is linked to the library."""
    linked = [flag for flag in flags(execute, package) if flag[:2] in ("-L", "-l")]
    table = (root / "native" / "hook" / "table.def").read_text()
    names = [name for name, of in runpy.run_path(str(root / "tools" / "gen_docs.py"))["hooked"](
        table) if of == library]
    assert len(names) >= {"netcdf": 130, "pnetcdf": 540, "hdf5": 5}[library]
    lines = "".join(f"void {name}(void);\n" for name in names)
    addresses = ", ".join(names)
    cc(f"{lines}void (*all[])(void) = {{{addresses}}};\nint main(void) {{ return !all[0]; }}\n",
        "-fno-builtin", *linked)


FORTRAN = """
program p
  use netcdf
  integer :: f, d(2), v, e(8)
  real :: x(10, 20) = 1
  integer :: status
  e(1) = nf90_create('f.nc', nf90_clobber, f)
  e(2) = nf90_def_dim(f, 'x', 10, d(1))
  e(3) = nf90_def_dim(f, 'y', 20, d(2))
  e(4) = nf90_def_var(f, 'T', nf90_float, d, v)
  status = nf90_put_att(f, v, 'units', 'K')
  status = nf90_put_att(f, v, 'valid_min', 150.0)
  status = nf90_put_att(f, nf90_global, 'levels', [1, 2, 3])
  e(5) = nf90_enddef(f)
  e(6) = nf90_put_var(f, v, x)
  e(7) = nf90_put_var(f, v, x(1:5, :), start=[1, 1], count=[5, 20])
  e(8) = nf90_close(f)
  if (any(e /= nf90_noerr)) error stop 1
end program
"""


def test_netcdf_from_fortran(fc, preload_env, tmp_path, execute):
    flags(execute, "netcdf-fortran")
    env = preload_env()
    execute([fc(FORTRAN, "-I/usr/include", "-lnetcdff")], env=env, cwd=tmp_path).ok()
    assert called(decode.read_trace(env["WEIR_TRACE_DIR"]), "netcdf") == [
        ("create", "f.nc", 0), *[("define", "f.nc", 0)] * 7, ("put", "f.nc:T", 800),
        ("put", "f.nc:T", 400), ("close", "f.nc", 0),
    ]  # fmt: skip


def test_netcdf4_parallel_in_the_report(mpi, weir, tmp_path, execute):
    mpi = openmpi(mpi)
    run = tmp_path / "run"
    weir("trace", "-o", run, "--", *mpi.launch(3, mpi.cc(PARALLEL, *flags(execute, "netcdf-mpi"))),
        env=dict(mpi.env), cwd=tmp_path, timeout=90).ok()
    report = json.loads(weir("report", run, "--json").ok().stdout)
    (variable,) = report["variables"]
    assert (variable["library"], variable["variable"], variable["file"]) == ("netcdf", "T",
        f"{tmp_path}/out.nc")
    assert (variable["puts"], variable["put_bytes"], variable["gets"], variable["ranks"]) == (3,
        12000, 0, 3)
    (file,) = [one for one in report["mpi_io"] if one["file"] == f"{tmp_path}/out.nc"]
    assert file["writes"]["collective"] >= 3
    table = weir("report", run, "--tables", "variables").ok().stdout
    assert "out.nc" in table and "netcdf" in table


def test_hdf5(mpi, preload_env, tmp_path, execute):
    env = preload_env()
    done = mpi.run(2, mpi.cc(HDF5, *flags(execute, f"hdf5-{mpi.name}")), env=env, cwd=tmp_path).ok()
    assert done.stdout == "1\n1\n"
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(2):
        assert called(trace, "hdf5", rank) == [
            ("create", "out.h5", 0), *[("define", "out.h5", 0)] * 5, ("put", "T", 4000),
            ("get", "T", 4000), ("put", "", 0), ("sync", "out.h5", 0), ("define", "T", 0),
            ("close", "T", 0), ("close", "out.h5", 0),
        ]  # fmt: skip
    assert {r.file for r in trace.of(layer="hdf5", op="library_get")} == {
        f"hdf5:{tmp_path}/out.h5:/step/T"}


def test_two_copies_of_a_library_are_kept_apart(cc, preload_env, tmp_path, execute):
    """netCDF-C in two copies in one process, as Python's packages bring them: each caller reaches
    its own, whose numbers the other does not know."""
    flags(execute, "netcdf")
    copy = tmp_path / "libnetcdf_b.so"
    listed = execute(["ldconfig", "-p"]).ok().stdout
    original = next(line.split("=> ")[1] for line in listed.splitlines()
        if "libnetcdf.so.19 " in line or "libnetcdf.so.18 " in line)
    shutil.copy(original, copy)
    execute(["python3", "-c", RENAME, copy, "libnetcdf_b.so"]).ok()
    source = r"""
#include <netcdf.h>
int NAME(const char *path) {
  int file, dim, t, value = 5;
  if (nc_create(path, NC_CLOBBER, &file) || nc_def_dim(file, "x", 1, &dim) || nc_def_var(file, "T", NC_INT, 1, &dim, &t)) return 1;
  if (nc_enddef(file) || nc_put_var_int(file, t, &value)) return 2;
  int other = OPEN_ONLY ? 0 : nc_close(file);
  return other;
}
"""
    first = cc(source, "-DNAME=first", "-DOPEN_ONLY=1", "-shared", "-fPIC", "-lnetcdf",
        name="libfirst.so")
    second = cc(source, "-DNAME=second", "-DOPEN_ONLY=0", "-shared", "-fPIC", str(copy),
        name="libsecond.so")
    main = r"""
#include <dlfcn.h>
int main(int argc, char **argv) {
  int (*first)(const char *) = dlsym(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), "first");
  int (*second)(const char *) = dlsym(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL), "second");
  return first("a.nc") || second("b.nc") || second("c.nc");
}
"""
    env = preload_env()
    execute([cc(main, "-ldl"), first, second], env={**env, "LD_LIBRARY_PATH": str(tmp_path)},
        cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    puts = [(r.file.rpartition("/")[2], r.size) for r in trace.of(layer="netcdf", op="library_put")]
    assert puts == [("a.nc:T", 4), ("b.nc:T", 4), ("c.nc:T", 4)]


# Gives a shared library another name of its own: the first of its strings that is its DT_SONAME, in
# place.
RENAME = """
import sys
path, name = sys.argv[1:]
data = bytearray(open(path, 'rb').read())
at = data.index(b'\\0libnetcdf.so.') + 1
end = data.index(b'\\0', at)
short = name.encode()[: end - at]
data[at:end] = short + b'\\0' * (end - at - len(short))
open(path, 'wb').write(data)
"""


@pytest.fixture
def traced(weir, tmp_path):
    """``traced(*command)``: run it under `weir trace` and open the run."""
    opened = []

    def go(*command: object, env=None):
        weir("trace", "--quiet", "-o", "run", "--", *command, env=env, cwd=tmp_path).ok()
        opened.append(open_run(tmp_path / "run"))
        return opened[-1]

    yield go
    for run in opened:
        run.close()


def functions(run, table: str, rank: int = 0) -> list[tuple]:
    """Function, whether collective, variable and bytes of a rank's calls, in their order."""
    rows = run.sql(f"SELECT function, collective, variable, bytes FROM {table} "
        f"WHERE rank = {rank} ORDER BY start_ns").to_pylist()
    return [tuple(row.values()) for row in rows]


def test_calls_of_pnetcdf_by_function(mpi, traced, execute):
    mpi = openmpi(mpi)
    run = traced(*mpi.launch(2, mpi.cc(PNETCDF, *flags(execute, "pnetcdf"))), env=mpi.env)
    assert functions(run, "pnetcdf_calls") == [
        ("ncmpi_create", True, None, 0), *[("ncmpi_def_dim", True, None, 0)] * 2,
        *[("ncmpi_def_var", True, None, 0)] * 3, ("ncmpi_enddef", True, None, 0),
        ("ncmpi_put_vara_float_all", True, "T", 3200),
        ("ncmpi_put_vars_float_all", True, "T", 1600), ("ncmpi_put_vara_all", True, "P", 6400),
        ("ncmpi_iput_vara_float", False, "T", 3200), ("ncmpi_wait_all", True, None, 0),
        ("ncmpi_put_var_int_all", True, "time", 4),
        ("ncmpi_get_vara_double_all", True, "T", 6400),
        ("ncmpi_begin_indep_data", True, None, 0), ("ncmpi_get_var1_float", False, "T", 4),
        ("ncmpi_end_indep_data", True, None, 0), ("ncmpi_redef", True, None, 0),
        ("ncmpi__enddef", True, None, 0), ("ncmpi_flush", None, None, 0),
        ("ncmpi_sync_numrecs", None, None, 0), ("ncmpi_close", True, None, 0),
        ("ncmpi_create", True, None, 0), ("ncmpi_abort", True, None, 0),
    ]  # fmt: skip
    below = functions(run, "mpi_io_calls")
    assert ("MPI_File_open", True) in {row[:2] for row in below}
    assert any(name.startswith("MPI_File_write") and size > 0 for name, _, _, size in below)
    calls = run.library_calls.to_pandas()
    assert set(calls.library) == {"pnetcdf", "mpi_io"} and (calls.end_ns >= calls.start_ns).all()
    assert {Path(path).name for path in calls.file.dropna()} == {"out.nc", "left.nc"}
    assert calls[calls.error.notna()].function.isin(["ncmpi_abort", "MPI_File_delete"]).all()


@pytest.mark.parametrize("form", ["NC_CLOBBER", "NC_NETCDF4"])
def test_calls_of_netcdf_by_function(cc, traced, execute, form):
    run = traced(cc(NETCDF, f"-DFORMAT={form}", *flags(execute, "netcdf")))
    found = functions(run, "netcdf_calls")
    assert [row[0] for row in found] == ["nc_create", "nc_def_dim", "nc_def_dim",
        "nc_def_var", "nc_def_var", "nc_enddef", "nc_put_vara_double", "nc_put_vara", "nc_put_var1_double", "nc_put_var_text", "nc_sync", "nc_get_var_double",
        "nc_get_vara_double", "nc_redef", "nc__enddef", "nc_close", "nc_create", "nc_abort"]
    assert found[6] == ("nc_put_vara_double", None, "T", 1600)
    assert found[0][1] is False
    failed = run.sql("SELECT function, bytes FROM netcdf_calls WHERE error IS NOT NULL")
    assert failed.to_pylist() == [{"function": "nc_get_vara_double", "bytes": 0}]
    assert run.sql("SELECT * FROM hdf5_calls").num_rows == 0


def test_calls_of_parallel_hdf5_by_function(mpi, traced, execute):
    """Of a transfer of HDF5 its property list tells whether it is collective."""
    mpi = openmpi(mpi)
    run = traced(*mpi.launch(2, mpi.cc(HDF5, *flags(execute, "hdf5-openmpi"))), env=mpi.env)
    assert functions(run, "hdf5_calls") == [
        ("H5Fcreate", None, None, 0), ("H5Gcreate2", None, None, 0),
        ("H5Acreate2", None, None, 0), ("H5Awrite", None, None, 0), ("H5Aclose", None, None, 0),
        ("H5Dcreate2", None, None, 0),
        ("H5Dwrite", True, "/step/T", 4000), ("H5Dread", False, "/step/T", 4000),
        ("H5Dwrite", True, None, 0), ("H5Fflush", None, None, 0),
        ("H5Dset_extent", None, "/step/T", 0), ("H5Dclose", None, "/step/T", 0),
        ("H5Fclose", None, None, 0),
    ]  # fmt: skip
    assert run.sql("SELECT count(*) AS n FROM events WHERE offset_bytes IS NOT NULL "
        "AND layer = 'hdf5'").to_pylist() == [{"n": 0}]


def test_calls_of_netcdf4_python_by_function(traced, tmp_path):
    program = tmp_path / "write.py"
    program.write_text(
        "import netCDF4, numpy\n"
        "with netCDF4.Dataset('wrfout_d01_2026-01-01_00:00:00', 'w') as file:\n"
        "    file.createDimension('x', 100)\n"
        "    file.createVariable('T', 'f4', ('x',))[:] = numpy.arange(100, dtype='f4')\n")
    run = traced(sys.executable, program)
    (row,) = run.sql("SELECT function, file, variable, bytes FROM netcdf_calls "
        "WHERE bytes > 0").to_pylist()
    assert row == {"function": "nc_put_vara", "variable": "T", "bytes": 400,
        "file": str(tmp_path / "wrfout_d01_2026-01-01_00:00:00")}
