# SPDX-License-Identifier: Apache-2.0
"""PnetCDF's own parallel tests, on Open MPI with ROMIO (OMPIO writes wrong bytes below PnetCDF)."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import tree_version

_LAUNCH = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "io",
    "romio321")
_PARTS = ("testcases", "nonblocking", "cdf_format", "header", "C")
# They take minutes with three ranks on two cores, or read files that other tests leave.
_LEFT_OUT = ("tst_data_move", "tst_grow_data", "tst_grow_header", "tst_multi_redefine",
    "tst_redefine")
_LEFT_OUT += ("iput_all_kinds", "test_inq_format", "tst_corrupt", "mcoll_perf")


def _steps(place):
    for part in _PARTS:
        directory = place.tree / "b" / "test" / part
        programs = {p for p in directory.iterdir() if p.is_file() and "." not in p.name
            and p.stat().st_mode & 0o100}
        for program in sorted(p for p in programs if p.name not in (*_LEFT_OUT, "Makefile")):
            command = (*_LAUNCH, "-n", "3", str(program), "-q", "-o", f"{program.name}.nc")
            yield Step(f"{part}/{program.name}", command, time_limit_s=90)


SUITE = Suite(
    name="pnetcdf",
    title="PnetCDF's own parallel tests: blocking, nonblocking, varn, header, formats; 3 ranks, "
          "Open MPI with ROMIO",
    steps=_steps,
    version=tree_version,
    packages=("openmpi-bin",),
    tree="PnetCDF",
    needs=("b/test/testcases/record", "b/test/nonblocking/interleaved"),
    outputs=("*.nc*",),
)
