# SPDX-License-Identifier: Apache-2.0
"""netCDF-C's own tests: classic files (nc_test, libsrc), netCDF-4 (nc_test4), HDF5 (h5_test)."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import tree_version

_CHOICE = {"nc_test": ("t_nc", "tst_*", "nc_test"), "nc_test4": ("tst_*",), "h5_test": ("tst_*",)}
# They take minutes, measure, or need another program's files.
_LEFT_OUT = ("tst_large*", "*bm*", "*perf*", "tst_nc4perf", "tst_create_files", "tst_h_files3",
    "tst_files3")
_LEFT_OUT += ("tst_chunks3", "tst_ar4*", "tst_files2", "tst_files6", "tst_elatefill_big",
    "tst_knmi", "tst_big*")
_LEFT_OUT += ("tst_mem*", "tst_utils", "tst_mode", "tst_h_files4", "tst_vars3", "tst_lar*",
    "tst_zarr*", "tst_filter*")


def _steps(place):
    for part, patterns in _CHOICE.items():
        directory = place.tree / "b" / part
        every = {p for pattern in patterns for p in directory.glob(pattern) if p.is_file()
            and "." not in p.name}
        every -= {p for pattern in _LEFT_OUT for p in directory.glob(pattern)}
        for program in sorted(every):
            # Some tests read files that others leave, so all of a part share a directory, in this
            # order.
            script = (
                f"mkdir -p {part} && cd {part} && cp -n {place.tree}/{part}/*.cdl "
                f"{place.tree}/{part}/ref* . 2>/dev/null;"
            )
            environment = {"srcdir": str(place.tree / part), "TOPSRCDIR": str(place.tree)}
            yield Step(f"{part}/{program.name}", ("bash", "-c", f"{script} exec {program}"),
                env=environment)


SUITE = Suite(
    name="netcdf-c",
    title="netCDF-C's own test programs: classic, 64-bit offset, CDF-5, netCDF-4, and HDF5 below "
          "it",
    steps=_steps,
    version=tree_version,
    tree="netcdf-c",
    needs=("b/nc_test4", "b/nc_test"),
    outputs=("nc_test/*.nc",),
)
