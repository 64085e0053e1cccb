# SPDX-License-Identifier: Apache-2.0
"""Findings of programs whose calls are known: what each is found in, what it is worth, which rule
cures it; and what has just less than its limits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from wait_trace import WaitTrace

from weir.advise.advise import Report, advise
from weir.advise.findings.registry import BY_NAME, FINDINGS
from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import PARTS
from weir.advise.frame.grouping import groups
from weir.report import build

DOCS = Path(__file__).parents[4] / "docs"
US, MS, S = 1_000, 1_000_000, 1_000_000_000
KIB, MIB = 1 << 10, 1 << 20

Program = Callable[[WaitTrace], None]


@pytest.fixture
def advised(tmp_path):
    """What is found in programs, each a step of the run."""

    def made(*programs: Program, ranks: int = 2, compute_s: float = 1) -> Report:
        for number, program in enumerate(programs):
            trace = WaitTrace(ranks)
            trace.begin_ns = number * 100 * S
            trace.now = [trace.begin_ns] * ranks
            trace.barrier()
            program(trace)
            for rank in range(ranks):
                trace.compute(rank, int(compute_s * S))
            trace.barrier()
            trace.write(tmp_path / "run" / f"s{number}")
        return advise(Facts(build(str(tmp_path / "run"))))

    return made


def names(report: Report) -> list[str]:
    return [one.finding for one in report.advices]


def stream(count: int, size: int, us: int, file: str = "/scratch/an/out.{rank}", op: str = "pwrite",
        ranks: int | None = None) -> Program:
    """Each rank moves a file of its own from its beginning to its end."""

    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks if ranks is None else ranks):
            path = file.format(rank=rank)
            trace.io(rank, 10 * US, path, "open")
            for at in range(count):
                trace.io(rank, us * US, path, op, size, at * size)
            trace.io(rank, 10 * US, path, "close")

    return program


def test_small_requests_have_bufa_and_a_saving_near_their_time(advised):
    report = advised(stream(2000, 8 * KIB, 300))
    (one,) = [found for found in report.advices if found.finding == "small-requests"]
    assert one.rule.stack == "bufa:1MiB:4" and one.rule.path == "/scratch/an/out.*"
    assert one.what == "out.<N>" and len(one.paths) == 2
    assert "4,000 writes of 8.19 kB" in one.sentence.replace("\u202f", ",").replace("\u00a0", " ")
    # 2 x 0.6 s of I/O; both ranks at the same time, so 0.6 s of the run
    assert 0.65 < one.saving.io.low < one.saving.io.high < 1.21
    assert 0.3 < one.saving.critical.low < one.saving.critical.high < 0.61
    assert 3900 < one.saving.requests <= 4000


@pytest.mark.parametrize(("count", "size", "us"), [
    (200, 8 * KIB, 300),  # too few
    (2000, 512 * KIB, 1400),  # large enough
    (5000, 8 * KIB, 2),  # from the page cache
    (510, 8 * KIB, 21),  # less than 2 % of the run
])
def test_requests_that_are_not_small_many_and_slow_are_left(advised, count, size, us):
    assert "small-requests" not in names(advised(stream(count, size, us)))


def test_a_file_with_a_second_descriptor_has_no_rule(advised):
    def program(trace: WaitTrace) -> None:
        trace.io(0, US, "/scratch/an/out.0", "dup2", 0)
        stream(2000, 8 * KIB, 300, ranks=1)(trace)

    assert "small-requests" not in names(advised(program))


def test_output_that_is_renamed_has_a_rule_for_the_name_that_is_opened(advised, tmp_path, weir):
    """As ncks and rsync do, with the number of a process in it."""
    program = ("import os; f = os.open('out.pid98765.tmp', os.O_WRONLY | os.O_CREAT)\n"
        "for _ in range(3000): os.write(f, bytes(100))\nos.rename('out.pid98765.tmp', 'out')")
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    (group,) = groups(facts, [one for one in facts.bare if one.write.bytes])
    assert (group.paths, group.pattern) == ((str(tmp_path / "out"),),
        str(tmp_path / "out.pid*.tmp"))


@pytest.mark.parametrize("reads", [1, 2])
def test_a_buffer_merges_nothing_where_each_open_has_one_request(advised, reads):
    """As cp -r and tar do: a read, and one that finds the end of the file."""

    def program(trace: WaitTrace) -> None:
        for number in range(1000):
            path = f"/scratch/an/in/f{number}"
            trace.io(0, 10 * US, path, "open")
            for at in range(reads):
                trace.io(0, 300 * US, path, "read", 444 * (at == 0))
            trace.io(0, 300 * US, f"/scratch/an/out/f{number}", "creat")
            trace.io(0, 300 * US, f"/scratch/an/out/f{number}", "write", 444)

    assert "small-requests" not in names(advised(program))


def test_reads_at_random_places_have_no_rule_with_read_ahead(advised):
    def program(trace: WaitTrace) -> None:
        for number in range(2000):
            trace.io(0, 300 * US, "/scratch/an/in", "pread", 8 * KIB,
                (number * 7919 % 2003) * 64 * KIB)

    assert "small-requests" not in names(advised(program))


def test_pieces_of_ranks_in_turn_have_global(advised):
    def program(trace: WaitTrace) -> None:
        for number in range(1000):
            for rank in range(trace.ranks):
                trace.io(rank, 500 * US, "/scratch/an/matrix.dat", "pwrite", 4 * KIB,
                    (number * trace.ranks + rank) * 4 * KIB)

    report = advised(program)
    assert names(report) == ["interleaved-writes"]
    (one,) = report.rules
    assert one.rule.stack == "global:2MiB:2" and one.rule.path == "/scratch/an/matrix.dat"
    assert one.saving.io.high <= 1.01


def test_ranks_that_read_the_same_bytes_have_global(advised):
    report = advised(stream(1000, 64 * KIB, 700, "/scratch/an/climate.nc", "pread"), ranks=4)
    assert names(report)[0] == "same-bytes"
    (one,) = report.rules
    assert one.rule.stack.startswith("global:") and "4.0 times each byte" in one.sentence


def test_ranks_that_read_their_parts_have_not(advised):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            for at in range(100):
                trace.io(rank, 2 * MS, "/scratch/an/climate.nc", "pread", MIB,
                    (rank * 100 + at) * MIB)

    assert names(advised(program)) == []


def test_a_file_that_a_rank_reads_again_is_kept(advised):
    def program(trace: WaitTrace) -> None:
        for _ in range(4):
            for at in range(100):
                trace.io(0, MS, "/scratch/an/integrals", "pread", 192 * KIB, at * 192 * KIB)

    report = advised(program)
    (one,) = report.rules
    assert one.finding == "read-again" and one.rule.stack == "global:1MiB:20"


def small_files(count: int, size: int = 2 * KIB) -> Program:
    def program(trace: WaitTrace) -> None:
        for number in range(count):
            rank = number % trace.ranks
            path = f"/scratch/an/plots/p{number:05}"
            trace.io(rank, MS, path, "creat")
            trace.io(rank, MS // 2, path, "write", size)
            trace.io(rank, MS // 2, path, "close")

    return program


def test_many_small_files_have_pack_with_a_caution(advised):
    report = advised(small_files(400))
    (one,) = report.rules
    assert one.finding == "many-files" and one.rule.stack == "pack:name=weir-packed.zip"
    assert one.rule.path == "/scratch/an/plots/p*" and "weir pack extract" in one.rule.caution
    # 2 ms for each of 400 files
    assert 0.3 < one.saving.io.low < one.saving.io.high < 0.81


@pytest.mark.parametrize(("count", "size"), [(60, 2 * KIB), (400, 8 * MIB)])
def test_few_or_large_files_have_not(advised, count, size):
    assert "many-files" not in names(advised(small_files(count, size)))


def in_turn(size: int) -> Program:
    """400 files of which the ranks write the pieces in turn."""

    def program(trace: WaitTrace) -> None:
        for number in range(400):
            path = f"/scratch/an/base/{number:05}"
            for rank in range(trace.ranks):
                trace.io(rank, MS, path, "open")
            for piece in range(8):
                trace.io(piece % trace.ranks, MS // 8, path, "pwrite", size, piece * size)
            for rank in range(trace.ranks):
                trace.io(rank, MS // 2, path, "close")

    return program


def test_tiny_files_that_ranks_write_in_turn_have_pack(advised):
    (one,) = advised(in_turn(2 * KIB)).rules
    assert one.finding == "many-files"
    assert "many-files" not in names(advised(in_turn(16 * KIB)))


def test_a_file_that_is_opened_for_each_line_has_keep(advised):
    def program(trace: WaitTrace) -> None:
        for _ in range(200):
            for op, size in (("open", 0), ("write", 80), ("close", 0)):
                trace.io(0, MS, "/scratch/an/run.log", op, size)

    report = advised(program)
    (one,) = report.rules
    assert (one.finding, one.rule.stack) == ("reopened", "keep")
    assert 0.4 < one.saving.io.low < one.saving.io.high <= 0.61


def test_fsync_for_each_record_is_a_change_of_the_model(advised):
    def program(trace: WaitTrace) -> None:
        for number in range(50):
            trace.io(0, MS, "/scratch/an/restart", "pwrite", 64 * KIB, number * 64 * KIB)
            trace.io(0, 10 * MS, "/scratch/an/restart", "fsync", 0)

    (one,) = [found for found in advised(program).advices if found.finding == "frequent-fsync"]
    assert one.rule is None and "50 fsyncs" in one.sentence and one.saving.requests == 49


def test_what_only_a_later_step_reads_is_carried(advised):
    path = "/scratch/an/traj.{rank}"
    report = advised(stream(100, MIB, 9000, path), stream(100, MIB, 9000, path, "pread"))
    (one,) = [found for found in report.advices if found.finding == "carried"]
    assert one.rule.stack.endswith(":drain=async") and one.rule.path == "/scratch/an/traj.*"
    assert "at its place some seconds" in one.rule.caution and "2 files with" in one.sentence


@pytest.mark.parametrize(("count", "us"), [(2000, 300), (20_000, 30)])
def test_no_saving_is_larger_than_what_the_files_cost(advised, count, us):
    report = advised(stream(count, KIB, us), compute_s=0.1)
    assert report.advices
    for one in report.advices:
        files = [report.facts.files[path] for path in one.paths]
        assert one.saving.io.high <= sum(file.ns for file in files) / 1e9 + 1e-9
        assert one.saving.critical.high <= sum(file.critical_ns for file in files) / 1e9 + 1e-9
    assert report.expected.high <= report.facts.wall_s


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
def test_what_is_read_back_and_stays_is_a_result(advised, program):
    assert "carried" not in names(advised(program))


def test_only_what_the_run_removes_may_stay_on_the_tier(advised):
    report = advised(written_and_read("close", "unlink"))
    (one,) = [found for found in report.advices if found.finding == "carried"]
    assert one.rule.stack.endswith(":drain=never") and "1 file with" in one.sentence


def test_what_the_page_cache_moves_as_quickly_as_a_tier_is_left(advised):
    assert "carried" not in names(advised(written_and_read("close", "unlink", each_ms=2)))


def test_output_that_computing_could_hide_is_found_with_the_number_of_servers(advised):
    report = advised(stream(100, MIB, 8000, "/scratch/an/hist.nc", ranks=1), compute_s=3)
    assert "waited-output" in names(report)
    (one,) = [found for found in report.advices if found.finding == "waited-output"]
    assert one.rule.stack.startswith("stage:tier=") and "1 server would do" in one.change
    (serial,) = [found for found in report.advices if found.finding == "serial-io"]
    assert serial.what == "rank 0 in step s0" and serial.rule is None
    assert 0 < serial.saving.critical.low < serial.saving.critical.high <= 0.41


def test_output_without_computing_to_hide_behind_is_not(advised):
    report = advised(stream(100, MIB, 8000, "/scratch/an/hist.nc", ranks=1), compute_s=0.1)
    assert "waited-output" not in names(report)


def test_ranks_with_more_to_write_than_others_are_found(advised):
    def program(trace: WaitTrace) -> None:
        for rank in range(4):
            for at in range(10 * (1 + 3 * (rank == 3))):
                trace.io(rank, 5 * MS, f"/scratch/an/r{rank}", "pwrite", MIB, at * MIB)

    report = advised(program, ranks=4, compute_s=0.2)
    (one,) = [found for found in report.advices if found.finding == "uneven-io"]
    assert one.what == "rank 3 in step s0" and one.saving.critical.high < 0.13


@pytest.mark.parametrize(("path", "is_of_eccodes"), [
    ("/scratch/tables/grib1/{}.table", True), ("/scratch/an/namelist_{}", False)])
def test_tables_that_each_rank_reads_are_a_change_of_the_model(advised, path, is_of_eccodes):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            for number in range(50):
                trace.io(rank, MS, path.format(number), "open")
                trace.io(rank, MS, path.format(number), "read", 500, 0)
                trace.io(rank, MS, path.format(number), "close")

    (one,) = [found for found in advised(program).advices if found.finding == "definitions"]
    assert one.rule is None and "each of 2 ranks reads the same 50 small files" in one.sentence
    assert ("ecCodes" in one.change) == is_of_eccodes


@pytest.mark.parametrize(("path", "is_netcdf"), [
    ("/scratch/an/out.nc", True), ("/scratch/an/direct.dat", False)])
def test_blocks_that_are_written_again_have_bufa(advised, path, is_netcdf):
    def program(trace: WaitTrace) -> None:
        for at in range(200):
            for op in ("pread", "pwrite", "pwrite"):
                trace.io(0, MS, path, op, 8 * KIB, at * 8 * KIB)

    found = advised(program)
    (one,) = [advice for advice in found.advices if advice.finding == "written-again"]
    assert one.rule.stack == "bufa:1MiB:4" and "changes between" in one.sentence
    assert ("nc_enddef" in one.change) == is_netcdf


@pytest.mark.parametrize(("op", "path", "words"), [
    ("pwrite", "/scratch/an/out.{rank}", "a buffer of 1 MiB."),
    ("fwrite", "/scratch/an/out.{rank}", "(setvbuf)."),
    ("pwrite", "/scratch/an/{rank}.nc", "(the chunk size of nc__open and nc__create).")])
def test_words_on_buffers_are_of_the_library_that_makes_the_calls(advised, op, path, words):
    report = advised(stream(2000, 8 * KIB, 300, path, op))
    (one,) = [found for found in report.advices if found.finding == "small-requests"]
    assert one.change.endswith(words)


def test_independent_calls_of_mpi_io_are_found(advised):
    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks):
            trace.mpi_io(rank, "MPI_File_open", "/scratch/an/all.dat", MS)
        for number in range(600):
            for rank in range(trace.ranks):
                at = (number * trace.ranks + rank) * KIB
                trace.io(rank, 400 * US, "/scratch/an/all.dat", "pwrite", KIB, at)
                trace.now[rank] -= 400 * US
                trace.io(rank, 500 * US, "/scratch/an/all.dat", "MPI_File_write_at", KIB, at)

    (one,) = [found for found in advised(program).advices
        if found.finding == "independent-mpi-io"]
    assert "by 1,200 independent calls" in one.sentence.replace("\u202f", ",")
    assert "MPI_File_write_all" in one.change


def test_of_two_rules_for_a_file_the_one_that_is_worth_more_is_used(advised):
    """Reads of all ranks, and lines that are appended by opening the file anew."""
    path = "/scratch/an/climate.nc"

    def program(trace: WaitTrace) -> None:
        stream(1000, 64 * KIB, 700, path, "pread")(trace)
        for _ in range(100):
            trace.io(0, MS, path, "open")
            trace.io(0, MS, path, "close")

    report = advised(program, ranks=4)
    assert {"same-bytes", "reopened"} <= set(names(report))
    assert [one.finding for one in report.rules] == ["same-bytes"]


def test_what_no_finding_explains_is_listed_by_its_worth(advised):
    report = advised(stream(20, 8 * MIB, 20_000, "/scratch/an/in.{rank}", "pread"), compute_s=0.1)
    assert not report.advices and report.rest
    assert report.rest[0].group.name == "in.<N>" and 0.3 < report.rest[0].critical_s < 0.5


def test_a_writer_that_is_well_has_no_findings(advised):
    def program(trace: WaitTrace) -> None:
        for step in range(4):
            for rank in range(trace.ranks):
                trace.compute(rank, S)
                trace.io(rank, 5 * MS, "/scratch/an/out.nc", "pwrite", 16 * MIB,
                    (step * trace.ranks + rank) * 16 * MIB)

    report = advised(program, ranks=4)
    assert not report.advices and not report.rest


def test_each_is_declared_whole():
    assert len(BY_NAME) == len(FINDINGS)
    for one in FINDINGS:
        assert one.asks.endswith("?") and one.limits and one.shrinks in PARTS
        assert (DOCS / one.page).exists()
        assert all(limit.reason and limit.value > 0 for limit in one.limits)
