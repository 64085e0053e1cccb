# SPDX-License-Identifier: Apache-2.0
"""All findings together: their ranking, what no finding explains, a healthy program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from advised import KIB, MIB, MS, S, advised, names, stream
from wait_trace import WaitTrace

from weir.advise.advise import BEHIND_A_REQUEST, OF_A_RUN, parts, together
from weir.advise.findings.registry import BY_NAME, FINDINGS
from weir.advise.frame.finding import PARTS, STARTS
from weir.advise.frame.saving import NOTHING
from weir.advise.text import headline
from weir.report.registry import KINDS


DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize(("count", "us"), [(2000, 300), (20_000, 30)])
def test_no_saving_is_larger_than_what_the_files_cost(tmp_path, count, us):
    report = advised(tmp_path, stream(count, KIB, us), compute_s=0.1)
    assert report.advices
    for one in report.advices:
        files = [report.facts.files[path] for path in one.paths]
        assert one.saving.io.high <= sum(file.ns for file in files) / 1e9 + 1e-9
        assert one.saving.critical.high <= sum(file.critical_ns for file in files) / 1e9 + 1e-9
    assert report.expected.high <= report.facts.wall_s


def test_of_two_rules_for_a_file_the_one_that_is_worth_more_is_used(tmp_path):
    """Reads of all ranks, and lines that are appended by opening the file anew."""
    path = "/scratch/an/climate.nc"

    def program(trace: WaitTrace) -> None:
        stream(1000, 64 * KIB, 700, path, "pread")(trace)
        for _ in range(100):
            trace.io(0, MS, path, "open")
            trace.io(0, MS, path, "close")

    report = advised(tmp_path, program, ranks=4)
    assert {"same-bytes", "reopened"} <= set(names(report))
    assert [one.finding for one in report.rules] == ["same-bytes"]


def test_what_no_finding_explains_is_listed_by_its_worth(tmp_path):
    report = advised(tmp_path, stream(20, 8 * MIB, 20_000, "/scratch/an/in.{rank}", "pread"),
        compute_s=0.1)
    assert not report.advices and report.rest
    assert report.rest[0].group.name == "in.<N>" and 0.3 < report.rest[0].critical_s < 0.5


def test_a_writer_that_is_well_has_no_findings(tmp_path):
    def program(trace: WaitTrace) -> None:
        for step in range(4):
            for rank in range(trace.ranks):
                trace.compute(rank, S)
                trace.io(rank, 5 * MS, "/scratch/an/out.nc", "pwrite", 16 * MIB,
                    (step * trace.ranks + rank) * 16 * MIB)

    report = advised(tmp_path, program, ranks=4)
    assert not report.advices and not report.rest


def test_each_is_declared_whole():
    assert len(BY_NAME) == len(FINDINGS)
    for one in FINDINGS:
        assert one.asks.endswith("?") and one.limits and one.shrinks in (*PARTS, STARTS)
        assert (DOCS / one.page).exists() and one.table in {kind.name for kind in KINDS}
        assert all(limit.reason and limit.value > 0 for limit in one.limits)
        assert one.decides and not one.decides.endswith(".")


def test_many_small_costs_are_no_smoking_gun(tmp_path):
    """Six kinds of files, each with some per cent of the run."""

    def program(trace: WaitTrace) -> None:
        for number in range(6):
            stream(600, 8 * KIB, 300, f"/scratch/an/{'abcdef'[number]}/{'abcdef'[number]}.out",
                ranks=1)(trace)

    report = advised(tmp_path, program, compute_s=4)
    said = headline(report).replace("\u00a0", " ")
    count = len(report.advices) + len(report.rest)
    assert count >= 3 and said.startswith(f"No smoking gun, {count} costs of which none stands out")
    assert report.together_s <= sum(one.ns for one in report.facts.files.values()) / 1e9 + 1e-6


def test_two_findings_on_the_same_files_are_worth_the_larger_one(tmp_path):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            trace.mpi_io(rank, "MPI_File_open", "/scratch/an/all.dat", MS)
        for number in range(600):
            for rank in range(trace.ranks):
                at = (number * trace.ranks + rank) * KIB
                trace.io(rank, 400_000, "/scratch/an/all.dat", "pwrite", KIB, at)
                trace.now[rank] -= 400_000
                trace.io(rank, 500_000, "/scratch/an/all.dat", "MPI_File_write_at", KIB, at)

    report = advised(tmp_path, program)
    assert len(names(report)) == 2
    assert report.together_s == max(one.saving.worth for one in report.advices)


def test_of_files_that_two_findings_are_about_the_second_counts_none(tmp_path):
    report = advised(tmp_path, stream(20_000, KIB, 300), stream(20_000, KIB, 200,
        "/scratch/an/in.{rank}", "pread"))
    facts, (first, second) = report.facts, report.advices
    assert [part for _, part in parts(facts, [second, first])] == [1, 1]
    shared = first.paths[0]
    wider = replace(second, paths=(*second.paths, shared))
    own, of_both = (facts.files.critical_of(paths) for paths in (second.paths, wider.paths))
    (_, whole), (_, part) = parts(facts, [first, wider])
    assert (whole, part) == (1, pytest.approx(own / of_both))
    assert 0 < part < 1
    alike = replace(second, paths=first.paths)
    assert [part for _, part in parts(facts, [first, alike])] == [1, 0]
    assert replace(report, advices=(first, alike)).together_s == first.saving.worth


def test_what_a_run_with_rules_costs_is_taken_off_once(tmp_path):
    report = advised(tmp_path, stream(20_000, KIB, 300), stream(20_000, KIB, 300,
        "/scratch/an/in.{rank}", "pread"))
    ranges = [one.saving.critical for one in report.rules]
    assert len(ranges) == 2
    low, high = sum(one.low for one in ranges), sum(one.high for one in ranges)
    assert report.expected.low == pytest.approx(low - OF_A_RUN.high)
    behind = BEHIND_A_REQUEST.high / report.facts.movers * sum(
        one.saving.requests * part for one, part in parts(report.facts, report.rules))
    assert behind > 0 and report.expected.high == pytest.approx(
        min(high + behind - OF_A_RUN.low, report.facts.wall_s))
    assert together(report.facts, []) == NOTHING
