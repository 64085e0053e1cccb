# SPDX-License-Identifier: Apache-2.0
"""Wrapper libraries of other tools, of the shape that Darshan and MPI profilers have: each defines
the functions that it watches and calls the next definition (dlsym(RTLD_NEXT)). With one, two and
three of them, before and behind weir: weir's records are those of a run without them, and each
wrapper sees each call once."""

from __future__ import annotations

import shutil

import decode
import pytest

# result, name, parameters, arguments
WRAPPED = """
W(int, open64, (const char *p, int f, unsigned m), (p, f, m))
W(ssize_t, write, (int f, const void *b, size_t n), (f, b, n))
W(ssize_t, pwrite64, (int f, const void *b, size_t n, off_t o), (f, b, n, o))
W(size_t, fwrite, (const void *b, size_t s, size_t n, FILE *f), (b, s, n, f))
W(int, nc_create, (const char *p, int m, int *f), (p, m, f))
W(int, nc_put_vara_float, (int f, int v, const size_t *s, const size_t *c, const float *d), (f, v, s, c, d))
W(int, nc_close, (int f), (f))
W(int, ncmpi_create, (void *c, const char *p, int m, void *i, int *f), (c, p, m, i, f))
W(int, ncmpi_put_vara_float_all, (int f, int v, const long long *s, const long long *c, const float *d), (f, v, s, c, d))
W(int, ncmpi_close, (int f), (f))
W(long, H5Fcreate, (const char *p, unsigned f, long c, long a), (p, f, c, a))
W(int, H5Dwrite, (long d, long t, long m, long s, long x, const void *b), (d, t, m, s, x, b))
W(int, H5Fclose, (long f), (f))
W(int, MPI_Init, (int *c, char ***v), (c, v))
W(int, MPI_Barrier, (void *c), (c))
W(int, MPI_File_open, (void *c, const char *p, int m, void *i, void **f), (c, p, m, i, f))
W(int, MPI_File_write_at, (void *f, long o, const void *b, int n, void *t, void *s), (f, o, b, n, t, s))
W(int, MPI_File_close, (void **f), (f))
W(int, MPI_Finalize, (void), ())
"""

WRAPPER = (
    r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#define W(R, name, parameters, arguments) \
  static long calls_##name; \
  R name parameters { \
    static R (*next) parameters; \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name); \
    if (!next) { fprintf(stderr, "no " #name "\n"); abort(); } \
    ++calls_##name; \
    return next arguments; \
  }
"""
    + WRAPPED
    + r"""
#undef W
#define W(R, name, parameters, arguments) fprintf(to, #name " %ld\n", calls_##name);
__attribute__((destructor)) static void say(void) {
  if (strncmp(program_invocation_short_name, "interposed", 10) != 0) return;  // MPI starts others
  FILE *to = fopen(NUMBER, "w");
"""
    + WRAPPED
    + r"""
  fclose(to);
}
"""
)

SERIAL = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <netcdf.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int file, x, t;
  static float values[100];
  size_t start = 0, count = 100;
  for (int i = 0; i < 2; ++i) {
    if (nc_create(i ? "four.nc" : "classic.nc", i ? NC_NETCDF4 : NC_CLOBBER, &file) || nc_def_dim(file, "x", 100, &x)) return 1;
    if (nc_def_var(file, "T", NC_FLOAT, 1, &x, &t) || nc_enddef(file)) return 2;
    for (int k = 0; k < 3; ++k) if (nc_put_vara_float(file, t, &start, &count, values)) return 3;
    if (nc_close(file)) return 4;
  }
  int plain = open64("plain", O_WRONLY | O_CREAT, 0600);
  if (write(plain, values, 100) != 100 || pwrite64(plain, values, 50, 200) != 50 || close(plain)) return 5;
  FILE *stream = fopen("stream", "w");
  if (fwrite(values, 4, 25, stream) != 25 || fclose(stream)) return 6;
  return 0;
}
"""

PARALLEL = r"""
#include <hdf5.h>
#include <pnetcdf.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int file, x, t;
  static float values[100];
  MPI_Offset start = 0, count = 100;
  if (ncmpi_create(MPI_COMM_WORLD, "p.nc", NC_CLOBBER, MPI_INFO_NULL, &file) || ncmpi_def_dim(file, "x", 100, &x)) return 1;
  if (ncmpi_def_var(file, "P", NC_FLOAT, 1, &x, &t) || ncmpi_enddef(file)) return 2;
  for (int i = 0; i < 3; ++i) if (ncmpi_put_vara_float_all(file, t, &start, &count, values)) return 3;
  if (ncmpi_close(file)) return 4;
  MPI_Barrier(MPI_COMM_WORLD);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t h = H5Fcreate("h.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  hsize_t all = 100;
  hid_t space = H5Screate_simple(1, &all, 0);
  hid_t set = H5Dcreate2(h, "H", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 5;
  H5Dclose(set); H5Sclose(space); H5Pclose(access);
  if (H5Fclose(h) < 0) return 6;
  MPI_File m;
  MPI_File_open(MPI_COMM_WORLD, "m", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &m);
  for (int i = 0; i < 4; ++i) MPI_File_write_at(m, 40 * i, values, 10, MPI_FLOAT, MPI_STATUS_IGNORE);
  MPI_File_close(&m);
  MPI_Finalize();
  return 0;
}
"""

# w: weir's library, 1 to 3: wrappers
ORDERS = ["w1", "1w", "w12", "1w2", "12w", "w123", "1w23", "123w"]
FILES = ("classic.nc", "four.nc", "plain", "stream", "p.nc", "h.h5", "m")


def flags(execute, *packages: str) -> list[str]:
    found = execute(["pkg-config", "--cflags", "--libs", *packages]) if shutil.which(
        "pkg-config") else None
    if found is None or found.returncode != 0:
        pytest.skip(f"{' '.join(packages)} are not installed here")
    return found.stdout.split()


@pytest.fixture
def preloaded(cc, preload, tmp_path):
    """The libraries of an order, and the directory that they run in."""
    wrappers = {n: cc(WRAPPER, "-shared", "-fPIC", "-w", f'-DNUMBER="{n}.calls"',
        name=f"libwrapper{n}.so") for n in "123"}

    def make(order: str) -> tuple[dict[str, str], object]:
        directory = tmp_path / order
        (directory / "trace").mkdir(parents=True)
        libraries = [str(preload) if one == "w" else str(wrappers[one]) for one in order]
        env = {"LD_PRELOAD": ":".join(libraries), "WEIR_TRACE_DIR": str(directory / "trace"),
            "WEIR_LEVEL": "trace"}
        return (env if "w" in order else {"LD_PRELOAD": env["LD_PRELOAD"]}), directory

    return make


def records(directory) -> list[tuple]:
    """What the trace says of the program's files and variables, without times."""
    found = []
    for r in decode.read_trace(directory / "trace").records:
        name = r.file.removeprefix(str(directory) + "/").replace(f"{directory}/", "")
        if name.rpartition(":")[0].rpartition(":")[2] in FILES or name in FILES or (r.layer
                == "mpi" and r.op in ("mpi_init", "MPI_Barrier")):
            found.append((r.layer, r.op, name, r.size, r.offset, r.nested, r.below))
    return found


def calls_of(directory, number: str, skipped: tuple[str, ...]) -> dict[str, int]:
    """How often a wrapper was called, by function."""
    lines = (line.split() for line in (directory / f"{number}.calls").read_text().splitlines())
    return {name: int(calls) for name, calls in lines if name not in skipped}


def compare(preloaded, run, skipped: tuple[str, ...] = ()) -> tuple[list[tuple], dict[str, int]]:
    """weir's records and the wrappers' calls, found to be the same in every order."""
    env, alone = preloaded("w")
    run(env, alone)
    expected = records(alone)
    for order in ["1", *ORDERS]:
        env, directory = preloaded(order)
        run(env, directory)
        if order == "1":
            counted = calls_of(directory, "1", skipped)
            continue
        assert records(directory) == expected, order
        for number in order.replace("w", ""):
            assert calls_of(directory, number, skipped) == counted, (order, number)
    return expected, counted


def test_netcdf_and_the_c_library(cc, execute, preloaded):
    program = cc(SERIAL, *flags(execute, "netcdf"), name="interposed")
    expected, counted = compare(preloaded, lambda env, directory: execute([program], env=env,
        cwd=directory).ok())
    puts = [(r[2].rpartition("/")[2], r[3]) for r in expected if r[1] == "library_put"]
    assert puts == [("netcdf:classic.nc:T", 400)] * 3 + [("netcdf:four.nc:T", 400)] * 3
    assert counted["nc_put_vara_float"] == 6


@pytest.mark.mpi
def test_pnetcdf_hdf5_and_mpi(mpi, execute, preloaded):
    if mpi.name != "openmpi":
        pytest.skip("packaged for Open MPI alone")
    program = mpi.cc(PARALLEL, *flags(execute, "pnetcdf", "hdf5-openmpi"), name="interposed_mpi")
    # One rank needs no launcher.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_io": "romio321"}
    skipped = ("open64", "write", "pwrite64", "fwrite")  # the library wakes its threads by writing
    expected, counted = compare(preloaded, lambda env, directory: execute([program],
        env={**allowed, **env}, cwd=directory).ok(), skipped)
    puts = [(r[2], r[3]) for r in expected if r[1] == "library_put"]
    assert puts == [("pnetcdf:p.nc:P", 400)] * 3 + [("hdf5:h.h5:/H", 400)]
    assert sum(r[:2] == ("mpi_io", "MPI_File_write_at") and r[2] == "m" for r in expected) == 4
    assert {"H5Dwrite": 1, "ncmpi_put_vara_float_all": 3, "MPI_Init": 1}.items() <= counted.items()
