# SPDX-License-Identifier: Apache-2.0
"""Finding written-again: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import pytest
from advised import KIB, MS, advised, the
from wait_trace import WaitTrace

from weir.advise.frame import openings
from weir.advise.frame.openings import calls_of


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


def test_what_fits_in_the_buffers_may_be_held_in_whichever_order_it_is_written(tmp_path):
    """Half of the writes go back to the header: at least the others are merged, at most all."""
    def program(trace: WaitTrace) -> None:
        for at in range(200):
            trace.io(0, MS, "/scratch/an/out.nc", "pwrite", 8 * KIB, at * 8 * KIB)
            trace.io(0, MS, "/scratch/an/out.nc", "pwrite", 8 * KIB, 0)

    io = the(advised(tmp_path, program), "written-again").saving.io
    assert io.low < 0.2 and 0.36 < io.high <= 0.4


@pytest.mark.parametrize(("back", "is_held"), [(0, True), (400 * 8 * KIB, False)])
def test_what_is_read_back_of_a_held_file_takes_no_request(tmp_path, back, is_held):
    """Reads out of order within what was written, or elsewhere in the file."""
    def program(trace: WaitTrace) -> None:
        for at in range(200):
            trace.io(0, MS, "/scratch/an/out.nc", "pwrite", 8 * KIB, at * 8 * KIB)
            trace.io(0, MS, "/scratch/an/out.nc", "pread", 4 * KIB,
                back + at * at * 7 % 197 * 8 * KIB)

    io = the(advised(tmp_path, program), "written-again").saving.io
    assert io.low < 0.25 and (io.high > 0.37) == is_held


def test_files_of_several_patterns_take_one_pass_over_the_records(tmp_path, monkeypatch):
    passes = []

    def counted(data, files, *rest):
        passes.append(len(files))
        return calls_of(data, files, *rest)

    def program(trace: WaitTrace) -> None:
        for path in ("/scratch/an/out.nc", "/scratch/other/direct.dat"):
            for _ in range(2):
                trace.io(0, MS, path, "open")
                for at in range(26):
                    for op in ("pread", "pwrite", "pwrite"):
                        trace.io(0, MS, path, op, 8 * KIB, at * 8 * KIB)
                trace.io(0, MS, path, "close")

    monkeypatch.setattr(openings, "calls_of", counted)
    found = [one for one in advised(tmp_path, program).advices
        if one.finding == "written-again"]
    assert len(found) == 2 and passes == [2]
