# SPDX-License-Identifier: Apache-2.0
"""Finding waited-output: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

from advised import MIB, MS, advised, names, stream, the
from wait_trace import WaitTrace


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


def tiles(op: str, op_ns: int):
    """60 files of one write of 250 kB in 8 ms, each with two calls by name."""
    def program(trace: WaitTrace) -> None:
        for at in range(60):
            path = f"/scratch/an/t{at:03}.png"
            trace.io(0, 8 * MS, path, "write", 250_000, 0)
            for _ in range(2):
                trace.io(0, op_ns, path, op)
    return program


def test_files_whose_time_is_in_calls_by_name_gain_nothing_from_a_tier(tmp_path):
    """These stay at the file system, where the daemon's own requests come beside them."""
    report = advised(tmp_path / "few", tiles("chmod", MS), compute_s=3)
    io = the(report, "waited-output").saving.io
    whole_s, by_name_s = 60 * 10e-3, 60 * 2e-3
    assert io.high <= 1.15 * (whole_s - by_name_s) and io.low < whole_s - 2 * by_name_s
    assert "waited-output" not in names(advised(tmp_path / "most", tiles("chmod", 5 * MS),
        compute_s=3))
