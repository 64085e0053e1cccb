# SPDX-License-Identifier: Apache-2.0
"""Finding waited-output: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import MIB, advised, names, stream, the


def test_output_that_computing_could_hide_is_found_with_the_number_of_servers(tmp_path):
    report = advised(tmp_path, stream(100, MIB, 8000, "/scratch/an/hist.nc", ranks=1), compute_s=3)
    assert "waited-output" in names(report)
    one = the(report, "waited-output")
    assert one.rule.stack.startswith("stage:tier=") and "1 server would do" in one.change
    serial = the(report, "serial-io")
    assert serial.what == "rank 0 in step s0" and serial.rule is None
    assert 0 < serial.saving.critical.low < serial.saving.critical.high <= 0.41


def test_output_without_computing_to_hide_behind_is_not(tmp_path):
    report = advised(tmp_path, stream(100, MIB, 8000, "/scratch/an/hist.nc", ranks=1),
        compute_s=0.1)
    assert "waited-output" not in names(report)
