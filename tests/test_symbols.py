# SPDX-License-Identifier: Apache-2.0
"""What a process can find by name is the same with weir as without: functions of libraries that may
be there or not, by weak references, dlsym and dlvsym, from the start and after dlopen, with none,
one and all of the libraries, in any order."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path

import pytest

# One function of each library of native/hook/library/libraries.def, and names that are in some
# versions of them alone.
ONE_OF_EACH = ["MPI_Barrier", "mpi_barrier_", "MPI_File_write_at_c", "nc_open", "ncmpi_open",
    "H5Fopen", "_gfortran_st_open", "io_submit", "io_uring_submit"]

# Libraries that stand for the real ones: each defines some of the names, and a function of its own.
STANDINS = {
    "mpi": ["MPI_Barrier", "MPI_Init", "MPI_Finalize", "PMPI_Initialized"],
    "netcdf": ["nc_open", "nc_close", "nc_inq_varname"],
    "pnetcdf": ["ncmpi_open", "ncmpi_inq_varname"],
    "hdf5": ["H5Fopen", "H5Fclose", "H5Iget_type"],
    "aio": ["io_submit", "io_destroy", "io_queue_init"],
    "uring": ["io_uring_submit", "io_uring_queue_init", "io_uring_queue_exit"],
    "gfortran": ["_gfortran_st_open", "_gfortran_set_options"],
}

# Prints, for each name: whether it is there by a weak reference, from a table, by dlsym in several
# scopes.
PROBE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#define NAME(symbol) extern int symbol() __attribute__((weak));
#include "names.h"
#undef NAME
#define NAME(symbol) (int (*)())symbol,
int (*table[])() = {
#include "names.h"
};
#undef NAME
#define NAME(symbol) #symbol,
static const char *const names[] = {
#include "names.h"
};
#undef NAME
static char zero[8192];  // whatever a function takes: an empty path, a block without flags
#define ALL zero, zero, zero, zero, zero, zero
enum { COUNT = sizeof names / sizeof *names };
static int (*weak(int i))() {
  int n = 0;
#define NAME(symbol) if (n++ == i) return symbol;
#include "names.h"
  return 0;
}
static void look(const char *when, void *handle) {
  for (int i = 0; i < COUNT; ++i) {
    void *any = dlsym(RTLD_DEFAULT, names[i]);
    void *of = handle ? dlsym(handle, names[i]) : 0;
    int error = !of && handle && strlen(dlerror()) > 0;
    void *next = dlsym(RTLD_NEXT, names[i]);
    printf("%s %s weak=%d table=%d default=%d next=%d handle=%d same=%d,%d error=%d\n", when, names[i], weak(i) != 0, table[i] != 0, any != 0,
           next != 0, of != 0, (void *)weak(i) == any, (void *)table[i] == (void *)weak(i), error);
#ifdef CALLS
    if (weak(i)) printf("%s called %d %d\n", names[i], weak(i)(ALL), table[i](ALL));
    if (of) printf("%s found %d\n", names[i], ((int (*)())of)(ALL));
#endif
  }
  while (dlerror()) {}
}
int main(int count, char **arguments) {
  look("start", 0);
  for (int i = 1; i < count; ++i) {
    int global = arguments[i][0] == 'g', deep = arguments[i][0] == 'd';
    void *handle = dlopen(arguments[i] + 1, RTLD_LAZY | (global ? RTLD_GLOBAL : RTLD_LOCAL) | (deep ? RTLD_DEEPBIND : 0));
    if (!handle) return printf("%s\n", dlerror()), 1;
    look(arguments[i], handle);
    if (arguments[i][0] == 'c' && dlclose(handle) == 0) look("closed", 0);
  }
  return 0;
}
"""


def probe(names: list[str]) -> str:
    return PROBE.replace('#include "names.h"', "".join(f"NAME({name})\n" for name in names))


@pytest.fixture(scope="session")
def hooked(root) -> list[tuple[str, str]]:
    table = (root / "native" / "hook" / "table.def").read_text()
    return runpy.run_path(str(root / "tools" / "gen_docs.py"))["hooked"](table)


@pytest.fixture
def standins(cc) -> dict[str, Path]:
    """Small libraries of the real ones' file names."""
    return {
        library: cc(
            "".join(f"int {name}(void) {{ return {number}; }}\n"
                for number, name in enumerate(names)),
            "-shared", "-fPIC", name=f"lib{library}.so",
        )
        for library, names in STANDINS.items()
    }  # fmt: skip


@pytest.fixture
def same(execute, preload_env, tmp_path):
    """Runs a command without weir and with it, and gives what both print."""

    def run(command: list, **env: str) -> str:
        bare = execute(command, env=env, cwd=tmp_path).ok()
        weirs = preload_env("step", level="trace")
        if "LD_PRELOAD" in env:
            weirs["LD_PRELOAD"] = f"{weirs['LD_PRELOAD']}:{env['LD_PRELOAD']}"
        traced = execute(command, env={**env, **weirs}, cwd=tmp_path).ok()
        assert traced.stdout.splitlines() == bare.stdout.splitlines()
        assert traced.stderr == bare.stderr
        return bare.stdout

    return run


# Ways to link: they differ in who binds when, and in where the addresses stand.
WAYS = {
    "lazy": ["-Wl,-z,lazy"],
    "now": ["-Wl,-z,now", "-Wl,-z,relro"],
    "no-plt": ["-fno-plt", "-fPIE", "-pie"],
    "fixed": ["-no-pie", "-fno-pie", "-Wl,-z,lazy"],
    "no-relro": ["-Wl,-z,norelro"],
    "old-hash": ["-Wl,--hash-style=sysv"],
}


@pytest.mark.parametrize("way", WAYS)
def test_one_function_of_each_library_with_none_one_and_all_of_them_linked(cc, standins, same, way):
    for linked in [[], *([one] for one in standins), list(standins)]:
        libraries = [str(standins[one]) for one in linked]
        directories = [f"-Wl,-rpath,{standins[one].parent}" for one in linked]
        program = cc(probe(ONE_OF_EACH), "-DCALLS", *WAYS[way], "-Wl,--no-as-needed", *libraries,
            *directories, name=f"probe-{way}-{'-'.join(linked)}")
        said = same([program])
        there = {line.split()[1] for line in said.splitlines() if line.startswith("start")
            and "default=1" in line}
        assert there == {name for one in linked for name in STANDINS[one] if name in ONE_OF_EACH}


@pytest.mark.parametrize("how", "glcd")
def test_one_function_of_each_library_loaded_later_in_every_order(cc, standins, same, how):
    program = cc(probe(ONE_OF_EACH), "-DCALLS", name="probe-later")
    orders = [list(standins), list(reversed(standins)), *itertools.permutations(list(standins)[:3])]
    for order in orders:
        said = same([program, *(f"{how}{standins[one]}" for one in order)])
        assert said.count("handle=1") == sum(name in ONE_OF_EACH for one in order
            for name in STANDINS[one])


def real_libraries() -> list[str]:
    """Packaged libraries that this machine has, of those that may be loaded together."""
    found = []
    for names in ("libmpi.so.40", "libnetcdf.so.19", "libpnetcdf.so.0d libpnetcdf.so.4",
            "libhdf5_openmpi.so.103 libhdf5_serial.so.103", "libgfortran.so.5"):
        for name in names.split():
            paths = [Path(f"/usr/lib/{machine}-linux-gnu/{name}")
                for machine in ("x86_64", "aarch64")] + [Path(f"/usr/lib64/{name}")]
            there = [str(p) for p in paths if p.exists()]
            if there:
                found.append(there[0])
                break
    return found


def test_every_hooked_name_is_there_when_the_real_one_is_and_absent_when_it_is_not(cc, same,
        hooked):
    """All names that weir exports or hooks, in a program alone and with the packaged libraries,
    loaded in both orders."""
    names = [name for name, _ in hooked]
    assert len(names) == len(set(names)) > 1900
    # Names that the compiler knows with other arguments are looked up, not referred to.
    program = cc(probe([name for name, of in hooked if of != "c"]), "-w", name="probe-all")
    real = real_libraries()
    for order in ([], real, real[::-1]):
        said = same([program, *(f"g{path}" for path in order)])
        if not order:
            assert "=1 " not in said.replace("same=1,1", "")
    if len(real) >= 3:
        assert said.count("default=1") > 500
    assert all(f" {name} " in said for name, of in hooked if of != "c")


LOOKUPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  char name[200];
  while (fgets(name, sizeof name, stdin)) {
    for (char *c = name; *c; ++c) if (*c == '\n') *c = 0;
    printf("%s %d %d\n", name, dlsym(RTLD_DEFAULT, name) != 0, dlsym(RTLD_NEXT, name) != 0);
  }
}
"""


def test_every_exported_name_is_one_that_the_c_library_has(cc, execute, preload_env, tmp_path,
        hooked):
    program = cc(LOOKUPS, name="lookups")
    text = "".join(f"{name}\n" for name, _ in hooked)
    (tmp_path / "names").write_text(text)
    command = ["sh", "-c", 'exec "$0" < "$1"', program, tmp_path / "names"]
    bare = execute(command).ok().stdout
    assert execute(command, env=preload_env("step", level="trace")).ok().stdout == bare


def test_nothing_of_optional_libraries_is_found_where_weir_does_nothing(cc, execute, preload,
        tmp_path):
    program = cc(LOOKUPS, name="lookups")
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in ONE_OF_EACH))
    done = execute(["sh", "-c", 'exec "$0" < "$1"', program, tmp_path / "names"],
        env={"LD_PRELOAD": str(preload)}).ok()
    assert done.stdout.splitlines() == [f"{name} 0 0" for name in ONE_OF_EACH]
