# SPDX-License-Identifier: Apache-2.0
"""Which calls layer keep would answer, of programs whose calls are known."""

from __future__ import annotations

import numpy as np
import pytest
from advised import MS, S, Program
from wait_trace import WaitTrace

from weir.advise.findings.reopened.served import Answered, answered
from weir.report import build

TABLE, LOG, OUT = "/scratch/an/table", "/scratch/an/log", "/scratch/an/out"


def replayed(directory, program: Program, path: str = TABLE, *, written=(OUT,), is_held=True,
        ranks: int = 2) -> Answered:
    trace = WaitTrace(ranks)
    program(trace)
    trace.write(directory / "run" / "s0")
    report = build(str(directory / "run"))
    numbers = np.array([report.names.number(one) for one in written], np.int64)
    return answered(report.steps, {path: report.names.number(path)}, numbers,
        {path: is_held})[path]


def cycles(*ops: str, path: str = TABLE, times: int = 100, rank: int = 0) -> Program:
    def program(trace: WaitTrace) -> None:
        for _ in range(times):
            for op in ops:
                trace.io(rank, MS, path, op, 0)

    return program


def test_all_opens_of_a_process_but_the_first_are_answered(tmp_path):
    one = replayed(tmp_path, cycles("open", "read", "close"))
    assert one.opens == 99 and one.whole_ns == 200 * MS
    assert one.ns == pytest.approx((198 * MS, 198 * MS))


def test_a_name_is_compared_by_a_stat_before_a_late_open(tmp_path):
    """Which takes as long as the open; the close is saved."""

    def program(trace: WaitTrace) -> None:
        for _ in range(10):
            cycles("open", "close", times=1)(trace)
            trace.compute(0, 2 * S)

    one = replayed(tmp_path, program)
    assert one.opens == 9 and one.ns == pytest.approx((10 * MS, 10 * MS), abs=2 * MS)


def test_each_process_opens_a_file_itself(tmp_path):
    def program(trace: WaitTrace) -> None:
        for rank in (0, 1):
            cycles("open", "close", rank=rank)(trace)

    assert replayed(tmp_path, program).opens == 198


def test_of_opens_at_once_the_layer_answers_as_many_less(tmp_path):
    ops = (*["open"] * 3, *["close"] * 3)
    assert replayed(tmp_path, cycles(*ops)).opens == 297


def test_a_file_that_is_not_held_is_opened_each_time(tmp_path):
    assert replayed(tmp_path, cycles("open", "write", "close", path=LOG), LOG, written=(LOG,),
        is_held=False) == Answered(0, (0, 0), (0.0, 0.0), 200 * MS)


@pytest.mark.parametrize(("ops", "least", "most"), [
    (("stat", "stat"), 199, 199), (("lstat", "stat"), 199, 199), (("stat", "access"), 198, 199),
    (("access", "access"), 199, 199), (("fstatat",), 99, 99), (("statx",), 0, 0),
    (("faccessat",), 0, 0)])
def test_a_query_is_answered_that_an_earlier_one_tells(tmp_path, ops, least, most):
    assert replayed(tmp_path, cycles(*ops)).queries == (least, most)


def test_lstat_is_not_answered_by_stat(tmp_path):
    def program(trace: WaitTrace) -> None:
        cycles("stat", times=10)(trace)
        cycles("lstat", times=10)(trace)

    assert replayed(tmp_path, program).queries == (18, 18)


@pytest.mark.parametrize(("op", "path", "answers"), [
    ("open", OUT, 100), ("close", OUT, 100), ("open", LOG, 199), ("unlink", LOG, 100),
    ("chmod", LOG, 100)])
def test_what_is_known_is_forgotten_when_any_process_changes_files(tmp_path, op, path, answers):
    """Two queries, then an open for writing (or for reading) or a change of any name."""

    def program(trace: WaitTrace) -> None:
        for _ in range(100):
            cycles("stat", "stat", times=1)(trace)
            trace.now[1] = trace.now[0]
            trace.io(1, MS, path, op)
            trace.now[0] = trace.now[1]

    assert replayed(tmp_path, program).queries == (answers, answers)


def test_what_is_known_is_asked_for_again_after_a_second(tmp_path):
    def program(trace: WaitTrace) -> None:
        for _ in range(10):
            trace.io(0, MS, TABLE, "stat")
            trace.compute(0, 2 * S)

    assert replayed(tmp_path, program).queries == (0, 0)


def test_a_file_that_is_open_for_writing_is_asked_for_each_time(tmp_path):
    def program(trace: WaitTrace) -> None:
        trace.io(1, MS, LOG, "open")
        trace.now[0] = trace.now[1]
        cycles("stat", path=LOG)(trace)

    assert replayed(tmp_path, program, LOG, written=(LOG,)).queries == (0, 0)


def test_a_call_that_failed_tells_nothing(tmp_path):
    def program(trace: WaitTrace) -> None:
        for _ in range(100):
            trace.io(0, MS, TABLE, "stat", error=2)

    assert replayed(tmp_path, program).queries == (0, 0)
