# SPDX-License-Identifier: Apache-2.0
"""Finding definitions: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import pytest
from advised import MS, advised, the
from wait_trace import WaitTrace


@pytest.mark.parametrize(("path", "is_of_eccodes"), [
    ("/scratch/tables/grib1/{}.table", True), ("/scratch/an/namelist_{}", False)])
def test_tables_that_each_rank_reads_are_a_change_of_the_model(tmp_path, path, is_of_eccodes):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            for number in range(50):
                trace.io(rank, MS, path.format(number), "open")
                trace.io(rank, MS, path.format(number), "read", 500, 0)
                trace.io(rank, MS, path.format(number), "close")

    one = the(advised(tmp_path, program), "definitions")
    assert one.rule is None and "each of 2 ranks reads the same 50 small files" in one.sentence
    assert ("ecCodes" in one.change) == is_of_eccodes


@pytest.mark.parametrize("ranks", [1, 4])
def test_tables_of_eccodes_are_found_among_the_files_of_the_system(tmp_path, ranks):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            for number in range(50):
                path = f"/usr/share/eccodes/definitions/grib2/template.{number}.def"
                trace.io(rank, MS, path, "open")
                trace.io(rank, MS, path, "read", 500, 0)

    found = [one for one in advised(tmp_path, program, ranks=ranks).advices
        if one.finding == "definitions"]
    assert len(found) == (ranks > 1)
    if found:
        said = found[0].sentence.replace("\u00a0", " ")
        assert "each of 4 ranks reads the 50 tables that ecCodes decodes with: 200 opens" in said
        assert found[0].saving.critical.high == pytest.approx(0.1, rel=0.01)
        assert "MEMFS" in found[0].change
