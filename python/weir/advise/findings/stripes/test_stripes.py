# SPDX-License-Identifier: Apache-2.0
"""Finding stripes: of files whose layout the trace has."""

from __future__ import annotations

import pytest
from advised import MIB, MS, advised, names, the
from wait_trace import WaitTrace

FILE = "/scratch/an/all.nc"
GIB = 1 << 30


def written(stripes: int, each: int, closes_ms: int = 0):
    """Two ranks write a file of `each` bytes a rank in 16 requests."""

    def program(trace: WaitTrace) -> None:
        for key, value in (("stripes", stripes), ("stripe_bytes", MIB)):
            trace.note(0, f"layout\n{FILE}\n{key}\n{value}")
        for rank in range(trace.ranks):
            trace.mpi_io(rank, "MPI_File_open", FILE, MS)
            for at in range(16):
                trace.io(rank, 30 * MS, FILE, "pwrite", each // 16, rank * each + at * each // 16)
            trace.io(rank, MS + closes_ms * MS, FILE, "close", 0)

    return program


def test_a_large_file_on_one_stripe_is_found_with_the_number_that_would_do(tmp_path):
    one = the(advised(tmp_path, written(1, 16 * GIB)), "stripes")
    assert "34.4 GB lie on 1 stripe" in one.sentence.replace("\u00a0", " ")
    assert "setstripe -c 32" in one.change
    assert one.saving.io.high == pytest.approx(31 / 32 * 2 * 16 * 0.03, rel=0.01)


def test_a_small_file_on_many_stripes_is_found(tmp_path):
    one = the(advised(tmp_path, written(16, MIB, closes_ms=100)), "stripes")
    assert "16 stripes of 1 MiB, of which 2 hold a byte" in one.sentence.replace("\u00a0", " ")
    assert "setstripe -c 1" in one.change and 0.15 < one.saving.io.high < 0.19


@pytest.mark.parametrize(("stripes", "each", "closes_ms"), [
    (8, 16 * GIB, 0), (1, 2 * GIB, 0), (2, MIB, 100), (16, GIB, 100)])
def test_stripes_that_fit_the_file_are_not(tmp_path, stripes, each, closes_ms):
    assert "stripes" not in names(advised(tmp_path, written(stripes, each, closes_ms)))
