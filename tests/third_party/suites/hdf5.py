# SPDX-License-Identifier: Apache-2.0
"""HDF5's own tests: its serial test programs, and the parallel ones on Open MPI with ROMIO."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite

_LAUNCH = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "io",
    "romio321")
_SERIAL = (
    *("cache_tagging", "lheap", "ohdr", "stab", "evict_on_close", "farray", "btree2", "hyperslab",
        "istore"),
    *("bittests", "page_buffer", "dtypes", "chunk_info", "cmpd_dset", "extend", "direct_chunk",
        "external", "links"),
    *("big", "mtime", "mount", "flush1", "flush2", "app_ref", "enum", "getname", "vfd", "ntypes",
        "dangle"),
    *("freespace", "mf", "vds", "file_image", "unregister", "swmr", "unlink"),
)
_PARALLEL = ("t_mpi", "testphdf5", "t_pread", "t_prestart", "t_init_term", "t_filters_parallel")


def _steps(place):
    # 3: the shortest of the forms in which a test can run
    environment = {"HDF5TestExpress": "3", "srcdir": str(place.tree / "test"),
        "HDF5_PARAPREFIX": str(place.work)}
    for name in _SERIAL:
        yield Step(name, (str(place.tree / "b" / "test" / name),), parse.hdf5, environment,
            time_limit_s=90)
    # t_prestart opens what t_pshutdown left without closing
    for name in ("t_pshutdown", *_PARALLEL):
        command = (*_LAUNCH, "-n", "2", str(place.tree / "b" / "testpar" / name))
        yield Step(name, command, env=environment, time_limit_s=240)


SUITE = Suite(
    name="hdf5",
    title=f"HDF5's own tests: {len(_SERIAL)} serial programs, {len(_PARALLEL) + 1} parallel ones, "
          f"2 ranks, Open MPI with ROMIO",
    steps=_steps,
    version=lambda place: next((line for line in (place.tree / "README.txt").read_text()
        .splitlines() if line), ""),
    packages=("openmpi-bin",),
    tree="hdf5",
    needs=("b/test/links", "b/testpar/testphdf5"),
)
