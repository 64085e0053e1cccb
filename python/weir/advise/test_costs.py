# SPDX-License-Identifier: Apache-2.0
"""What is said of files with much I/O time that no finding is about."""

from __future__ import annotations

import pytest
from advised import KIB, MIB, MS, Program, advised
from wait_trace import WaitTrace

from weir.advise.costs import change_of, operations_text, waits_for_io
from weir.advise.text import as_json, headline, lines_of


def each_once(trace: WaitTrace) -> None:
    """50 files, as mcopy reads them."""
    for number in range(50):
        path = f"/scratch/an/tree/{number}.txt"
        for op, ms, size in (("open", 3, 0), ("read", 2, 20_000), ("close", 1, 0)):
            trace.io(0, ms * MS, path, op, size)


def calls(op: str, count: int, size: int) -> Program:
    def program(trace: WaitTrace) -> None:
        for number in range(count):
            trace.io(0, 5 * MS, "/scratch/an/file", op, size, number * 7919 % 101 * MIB)

    return program


@pytest.mark.parametrize(("program", "operations", "change"), [
    (each_once, "50 open 150 ms, 50 read 100 ms, 50 close 50.0 ms",
        "the program needs fewer, larger files, or files in memory"),
    (calls("stat", 60, 0), "60 stat 300 ms", "opened, closed or queried 60 times; once would do"),
    (calls("pread", 60, 8 * KIB), "60 pread 300 ms", "larger calls, in the order of the file"),
    (calls("pread", 60, 4 * MIB), "60 pread 300 ms", "fewer bytes (compression, precision)"),
    (calls("fsync", 10, 0), "10 fsync 50.0 ms", "one fsync after the last write")],
    ids=["names", "one name", "small", "large", "syncs"])
def test_calls_that_take_the_time_and_what_would_help(tmp_path, program, operations, change):
    report = advised(tmp_path, program, ranks=1, compute_s=0.01)
    (one,) = report.rest
    assert not report.advices
    assert operations_text(report, one).replace("\u00a0", " ") == operations
    assert change in change_of(report, one)
    (said,) = as_json(report)["rest"]
    assert said["change"] == change_of(report, one) and said["operations"]


@pytest.mark.parametrize(("compute_s", "waits"), [(0.05, True), (0.5, False)])
def test_a_run_that_no_rule_shortens_is_said_to_wait(tmp_path, compute_s, waits):
    report = advised(tmp_path, each_once, ranks=1, compute_s=compute_s)
    said = headline(report).replace("\u00a0", " ")
    assert said.startswith("No finding: no rule of weir shortens this run, which waits 300 ms of ")
    assert waits_for_io(report) == waits
    text = " ".join(" ".join(lines_of(report, 100)).split())
    assert "tree/<N>.txt, 150 calls (50 open 150 ms, " in text
    assert "would help: the program needs fewer, larger files" in text
