# SPDX-License-Identifier: Apache-2.0
"""Finding carried: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import pytest
from advised import MIB, MS, US, Program, advised, names, stream, the
from wait_trace import WaitTrace

from weir.advise.frame.facts import Facts
from weir.advise.frame.grouping import without_chance_below


def test_what_only_a_later_step_reads_is_carried(tmp_path):
    path = "/scratch/an/traj.{rank}"
    report = advised(tmp_path, stream(100, MIB, 9000, path), stream(100, MIB, 9000, path, "pread"))
    one = the(report, "carried")
    assert one.rule.stack.endswith(":drain=async") and one.rule.path == "/scratch/an/traj.*"
    assert "at its place some seconds" in one.rule.caution and "2 files with" in one.sentence


def written_and_read(*ends: str, beginning: str = "creat", each_ms: int = 9) -> Program:
    """One file of rank 0, with other calls at its beginning and end."""

    def program(trace: WaitTrace) -> None:
        path = "/scratch/an/work.dat"
        trace.io(0, US, path, beginning, 0)
        trace.io(0, US, path, "open", 0)
        for op in ("pwrite", "pread"):
            for at in range(100):
                trace.io(0, each_ms * MS, path, op, MIB, at * MIB)
        for op in ends:
            trace.io(0, US, path, op, 0)

    return program


@pytest.mark.parametrize("program", [
    written_and_read(), written_and_read(beginning="unlink"), written_and_read("unlink", "creat")])
def test_what_is_read_back_and_stays_is_a_result(tmp_path, program):
    assert "carried" not in names(advised(tmp_path, program))


def test_only_what_the_run_removes_may_stay_on_the_tier(tmp_path):
    report = advised(tmp_path, written_and_read("close", "unlink"))
    one = the(report, "carried")
    assert one.rule.stack.endswith(":drain=never") and "1 file with" in one.sentence


@pytest.mark.parametrize(("beginning", "is_found"), [("creat", True), ("mkstemp", False)])
def test_a_file_that_mkstemp_makes_has_no_tier(tmp_path, beginning, is_found):
    """As ar and ranlib write their output first: layer stage leaves it at its place."""
    report = advised(tmp_path, written_and_read("close", "unlink", beginning=beginning))
    assert ("carried" in names(report)) == is_found


def test_what_the_page_cache_moves_as_quickly_as_a_tier_is_left(tmp_path):
    assert "carried" not in names(advised(tmp_path, written_and_read("close", "unlink", each_ms=2)))


@pytest.mark.parametrize("is_local", [False, True])
def test_files_on_a_local_disk_are_left(tmp_path, monkeypatch, is_local):
    """Their calls are copies into memory as well, which a busy node makes slow on a tier, too."""
    monkeypatch.setattr(Facts, "is_local", lambda self, path: is_local)
    report = advised(tmp_path, written_and_read("close", "unlink"))
    assert ("carried" in names(report)) == (not is_local)


@pytest.mark.parametrize(("path", "rule"), [
    ("/scratch/an/tmpuqgT4p/0.bcf", "/scratch/an/tmp*/0.bcf"),
    ("/scratch/tmpuqgT4p/0.bcf", "/scratch/tmpuqgT4p/0.bcf"), ("/scratch/an/t/0", None)])
def test_a_directory_that_a_run_makes_has_another_name_in_the_next(path, rule):
    """As bcftools sort makes one; those above the run's own are the user's."""
    assert without_chance_below("/scratch/an", path) == (rule or path)
