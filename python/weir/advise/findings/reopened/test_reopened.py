# SPDX-License-Identifier: Apache-2.0
"""Finding reopened: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from advised import MS, Program, advise_run, advised, names, the
from wait_trace import WaitTrace

from weir.stage.suggest import fits
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


def test_queries_that_an_opening_for_writing_lies_between_remain(tmp_path):
    """As of a program that looks at its input before each of its outputs."""
    file, out = "/scratch/an/inputs/namelist", "/scratch/an/out.{}"

    def program(trace: WaitTrace, queries: int) -> None:
        for number in range(100):
            for _ in range(queries):
                trace.io(0, MS, file, "stat")
            for op, size in (("open", 0), ("write", 100), ("close", 0)):
                trace.io(0, MS, out.format(number), op, size)

    assert "reopened" not in names(advised(tmp_path / "1", partial(program, queries=1)))
    one = the(advised(tmp_path / "3", partial(program, queries=3)), "reopened")
    assert one.saving.requests == 200 and 0.1 < one.saving.io.low < 0.2 < one.saving.io.high


@pytest.mark.parametrize(("op", "is_found"), [("stat", True), ("statx", False)])
def test_the_layer_answers_no_statx(tmp_path, op, is_found):
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            trace.io(0, MS, "/scratch/an/inputs/C1.java", op)
        trace.io(0, MS, "/scratch/an/inputs/C1.java", "read", 100)

    assert ("reopened" in names(advised(tmp_path, program))) == is_found


@pytest.mark.parametrize(("is_input", "is_found"), [(True, True), (False, False)])
def test_files_that_fortran_writes_are_opened_each_time(tmp_path, is_input, is_found):
    """As cp2k opens its trajectories in each step: the runtime seeks to the end, and the layer
    holds files that are read or have O_APPEND. What it makes of a statement is counted once."""
    (tmp_path / "r" / "main").mkdir(parents=True)
    with TraceWriter(tmp_path / "r" / "main" / "n.weir") as writer:
        process = writer.process(100)
        file, at = process.name("/scratch/an/run.ener"), writer.created_ticks
        for number in range(200):
            for op, below in (("fortran_open", "open"), ("fortran_write", "write"),
                    ("fortran_close", "close")):
                if op == "fortran_write" and is_input:
                    continue
                at += 3 * MS
                process.events([event(below, at, MS, file=file, size=80 * (below == "write"),
                    below=True), event(op, at - 1000, MS + 2000, file=file)])
    report = advise_run(tmp_path / "r")
    assert ("reopened" in names(report)) == is_found
    if is_found:
        one = the(report, "reopened")
        assert 0.3 < one.saving.io.low and one.saving.io.high < 0.47
        assert "200 opens" in one.sentence


def test_the_rule_matches_no_file_of_another_use(tmp_path):
    """Beside tables that are opened over and over the restart files of a run."""

    def program(trace: WaitTrace) -> None:
        for _ in range(120):
            for name in ("h2o-1.ener", "h2o-1.frc", "h2o-1.pos", "h2o-1.vel"):
                for op, size in (("open", 0), ("read", 80), ("close", 0)):
                    trace.io(0, MS, f"/scratch/an/{name}", op, size)
        trace.io(0, MS, "/scratch/an/h2o-1.restart", "write", 4000)

    rules = [one.rule.path for one in advised(tmp_path, program).rules
        if one.finding == "reopened"]
    assert len(rules) == 4 and not any(fits("/scratch/an/h2o-1.restart", rule) for rule in rules)


def two_passes(first: tuple[str, ...], second: tuple[str, ...]) -> Program:
    """Over 150 files, each opened no more than twice."""

    def program(trace: WaitTrace) -> None:
        for number in range(150):
            for op in (*first, *second):
                trace.io(0, MS, f"/scratch/an/tree/{number}.txt", op, 100 * (op == "read"))

    return program


def test_files_that_are_opened_twice_have_keep(tmp_path):
    """As dar does: to look whether it may read a file, and to read it."""
    program = two_passes(("open", "close"), ("open", "read", "close"))
    one = the(advised(tmp_path, program), "reopened")
    assert one.rule.stack == "keep" and one.rule.path == "/scratch/an/tree/*.txt"
    # of 150 x 2 ms the layer's own fstat remains, as long as a close
    assert 0.1 < one.saving.io.low < one.saving.io.high < 0.36


@pytest.mark.parametrize("second", [("open", "read", "close"), ("access",)])
def test_files_of_which_the_layer_may_answer_nothing_have_not(tmp_path, second):
    """As genisoimage asks for them: access may ask for more than the layer knows after a stat."""
    assert "reopened" not in names(advised(tmp_path, two_passes(("stat", "lstat"), second)))
