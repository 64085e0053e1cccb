# SPDX-License-Identifier: Apache-2.0
"""Finding reopened: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import sys

import pytest
from advised import MS, Program, advise_run, advised, names, the
from wait_trace import WaitTrace

from weir.trace._synthetic import TraceWriter, event


def test_a_file_that_is_opened_for_each_line_has_keep(tmp_path):
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            for op, size in (("open", 0), ("write", 80), ("close", 0)):
                trace.io(0, MS, "/scratch/an/run.log", op, size)

    report = advised(tmp_path, program)
    (one,) = report.rules
    assert (one.finding, one.rule.stack) == ("reopened", "keep")
    assert 0.4 < one.saving.io.low < one.saving.io.high <= 0.61


def queries(path: str, written: str = "") -> Program:
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            trace.io(0, MS, path, "stat")
        trace.io(0, MS, "/scratch/an/inputs/namelist", "read", 100)
        if written:
            trace.io(0, MS, written, "write", 100)

    return program


def test_a_directory_has_not(tmp_path):
    """An interpreter looks at the directory of its script at each import."""
    file, directory = "/scratch/an/inputs/namelist", "/scratch/an/inputs"
    assert "reopened" in names(advised(tmp_path / "file", queries(file)))
    for number, path in enumerate((directory, "/scratch/an", "/scratch")):
        assert "reopened" not in names(advised(tmp_path / str(number), queries(path)))


@pytest.mark.parametrize(("name", "is_found"), [("there", True), ("stop", False)])
def test_a_name_that_does_not_exist_has_not(weir, testfs, tmp_path, name, is_found):
    """A model that looks in each step whether somebody wants it to stop."""
    place = testfs("direct", round_trip_us=500)
    (place.backing / "there").write_text("x")
    program = f"import os\nfor _ in range(200): os.access({str(place.path / name)!r}, os.F_OK)"
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program).ok()
    assert ("reopened" in names(advise_run(tmp_path / "r"))) == is_found


def test_queries_of_a_program_that_writes_may_all_remain(tmp_path):
    file = "/scratch/an/inputs/namelist"
    reading = the(advised(tmp_path / "reads", queries(file)), "reopened").saving.io
    writing = the(advised(tmp_path / "writes", queries(file, "/scratch/an/out")), "reopened")
    assert 0.1 < reading.low < reading.high
    assert writing.saving.io.low == 0 < writing.saving.io.high == reading.high


@pytest.mark.parametrize(("op", "is_found"), [("stat", True), ("statx", False)])
def test_the_layer_answers_no_statx(tmp_path, op, is_found):
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            trace.io(0, MS, "/scratch/an/inputs/C1.java", op)
        trace.io(0, MS, "/scratch/an/inputs/C1.java", "read", 100)

    assert ("reopened" in names(advised(tmp_path, program))) == is_found


def test_what_a_runtime_makes_of_a_statement_is_counted_once(tmp_path):
    """As cp2k opens its trajectories in each step."""
    (tmp_path / "r" / "main").mkdir(parents=True)
    with TraceWriter(tmp_path / "r" / "main" / "n.weir") as writer:
        process = writer.process(100)
        file, at = process.name("/scratch/an/run.ener"), writer.created_ticks
        for number in range(200):
            for op, below in (("fortran_open", "open"), ("fortran_close", "close")):
                at += 3 * MS
                process.events([event(below, at, MS, file=file, below=True),
                    event(op, at - 1000, MS + 2000, file=file)])
    one = the(advise_run(tmp_path / "r"), "reopened")
    assert 0.3 < one.saving.io.low and one.saving.io.high < 0.47 and "200 opens" in one.sentence
