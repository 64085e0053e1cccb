# SPDX-License-Identifier: Apache-2.0
"""Finding written-again: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import pytest
from advised import KIB, MS, advised, the
from wait_trace import WaitTrace


@pytest.mark.parametrize(("path", "is_netcdf"), [
    ("/scratch/an/out.nc", True), ("/scratch/an/direct.dat", False)])
def test_blocks_that_are_written_again_have_bufa(tmp_path, path, is_netcdf):
    def program(trace: WaitTrace) -> None:
        for at in range(200):
            for op in ("pread", "pwrite", "pwrite"):
                trace.io(0, MS, path, op, 8 * KIB, at * 8 * KIB)

    found = advised(tmp_path, program)
    one = the(found, "written-again")
    assert one.rule.stack == "bufa:1MiB:4" and "changes between" in one.sentence
    assert ("nc_enddef" in one.change) == is_netcdf
