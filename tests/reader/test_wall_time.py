# SPDX-License-Identifier: Apache-2.0
"""Where the wall time of ranks goes, on programs whose answer is known: the parts add up exactly.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from wait_trace import BEGIN, WaitTrace
from wall_sums import split_exactly

from weir.report import build, report_json
from weir.report.frame.kind import ALL, Options
from weir.report.frame.table import text_lines
from weir.report.registry import report_tables
from weir.report.wall.compute import PARTS
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.table import by_rank, shares
from weir.trace._synthetic import TraceWriter, event

SECOND = 10**8  # of the program: records of longer calls than 2**32 ns are rounded


def split(program: WaitTrace, directory: Path):
    """Rows of the ranks of a program's only step: computing, I/O, I/O wait, imbalance and
    communication in s, after a check of the sums."""
    step = build(program.write(directory / "run" / "s")).steps[0]
    return checked(step)


def checked(step):
    split_exactly(step)
    return [tuple(round(row[part] / SECOND, 6) for part in PARTS) for row in by_rank(step)]


def test_one_rank_writes_while_the_others_wait(tmp_path):
    program = WaitTrace(4)
    for rank in range(4):
        program.compute(rank, 2 * SECOND)
    program.io(0, SECOND)
    program.barrier()
    assert split(program, tmp_path) == [(2, 1, 0, 0, 0)] + 3 * [(2, 0, 1, 0, 0)]


def test_a_rank_that_computes_longer_is_imbalance(tmp_path):
    program = WaitTrace(2)
    program.compute(0, 3 * SECOND)
    program.compute(1, SECOND)
    program.barrier()
    assert split(program, tmp_path) == [(3, 0, 0, 0, 0), (1, 0, 0, 2, 0)]


def test_a_wait_is_divided_by_what_the_awaited_rank_does_in_it(tmp_path):
    program = WaitTrace(2)
    program.compute(0, SECOND)
    program.io(0, 2 * SECOND)
    program.compute(0, 3 * SECOND)
    program.barrier()
    assert split(program, tmp_path) == [(4, 2, 0, 0, 0), (0, 0, 2, 4, 0)]


def test_what_a_collective_costs_after_the_last_rank_came_is_communication(tmp_path):
    program = WaitTrace(3, cost=SECOND)
    program.compute(2, SECOND)
    program.barrier()
    assert split(program, tmp_path) == [(0, 0, 0, 1, 1), (0, 0, 0, 1, 1), (1, 0, 0, 0, 1)]


def test_a_chain_of_three_ranks_leads_to_the_one_that_writes(tmp_path):
    program = WaitTrace(3)
    program.io(2, 5 * SECOND)
    program.compute(2, 3 * SECOND)
    program.receive(1, 2, 8 * SECOND)
    program.compute(1, 2 * SECOND)
    program.receive(0, 1, 10 * SECOND)
    assert split(program, tmp_path) == [(0, 0, 5, 5, 0), (2, 0, 5, 3, 0), (3, 5, 0, 0, 0)]


def test_a_chain_that_begins_in_the_middle_of_a_wait(tmp_path):
    """Rank 0 comes when rank 1 has waited for 4 of the 5 s in which rank 2 writes."""
    program = WaitTrace(3)
    program.io(2, 5 * SECOND)
    program.compute(2, 3 * SECOND)
    program.receive(1, 2, 8 * SECOND)
    program.compute(0, 4 * SECOND)
    program.cost = 0
    program.message(1, 0)
    program.compute(0, SECOND)
    assert split(program, tmp_path) == [(5, 0, 1, 3, 0), (0, 0, 5, 3, 0), (3, 5, 0, 0, 0)]


def test_the_critical_path_and_the_split_agree_on_what_ranks_did(tmp_path):
    """Calls of MPI and MPI-IO that wait for nobody are no computing on the critical path, and I/O
    within a call of MPI is I/O: of one rank that is all of the path, both say the same."""
    program = WaitTrace(2)
    program.compute(1, SECOND)
    program._keep(1, "/scratch/a", lambda at, name: event("MPI_File_write_at", at, 3 * SECOND,
        file=name), 0)
    program.compute(1, SECOND)
    program.io(1, SECOND, "/scratch/a", "pwrite")
    program.compute(1, SECOND)
    begun = program.now[1]
    program.compute(1, SECOND)
    program.io(1, SECOND, "/scratch/b")
    ended = program.now[1]
    program.now[1] = begun
    program.receive(1, 0, ended + 2 * SECOND)
    program.compute(1, 7 * SECOND)
    step = build(program.write(tmp_path / "run" / "s")).steps[0]
    split_exactly(step)
    row = by_rank(step)[1]
    [path] = synchronisation_of(step).waits.path
    assert (path.computing_ns, path.mpi_ns, path.io_ns) == (8 * SECOND, 5 * SECOND, 2 * SECOND)
    assert row["computing_ns"] == path.computing_ns and row["io_ns"] == path.io_ns


def test_two_ranks_that_wait_for_each_other_communicate(tmp_path):
    program = WaitTrace(2)
    program.receive(0, 1, 2 * SECOND)
    program.receive(1, 0, 2 * SECOND)
    assert split(program, tmp_path) == [(0, 0, 0, 0, 2)] * 2


def test_of_several_awaited_ranks_the_one_that_is_late_counts(tmp_path):
    program = WaitTrace(4)
    program.waitall(0, [1, 2, 3], 4 * SECOND)
    program.compute(1, 4 * SECOND)
    program.compute(2, SECOND)
    program.receive(2, 0, 4 * SECOND)
    program.receive(3, 0, 4 * SECOND)
    assert split(program, tmp_path)[0] == (0, 0, 0, 4, 0)


def test_waiting_ranks_in_collective_mpi_io_wait_for_those_that_write(tmp_path):
    program = WaitTrace(3)
    program.write_all({0: 2 * SECOND})
    program.barrier()
    assert split(program, tmp_path) == [(0, 2, 0, 0, 0)] + 2 * [(0, 0, 2, 0, 0)]


def test_phases_have_parts_of_their_own_that_add_up(tmp_path):
    program = WaitTrace(2)
    for rank in range(2):
        program.compute(rank, SECOND)
        program.phase(rank, "9write", True)
    program.io(0, SECOND)
    program.barrier()
    for rank in range(2):
        program.phase(rank, "9write", False)
        program.compute(rank, SECOND)
    report = build(program.write(tmp_path / "run" / "s"))
    checked(report.steps[0])
    rows = report_json(report)["wall_time"]
    assert [(row["phase"], row["ranks"]) for row in rows] == [(None, 2), ("9write", 2)]
    whole, phase = ([round(10 * row[key], 6) for key in (
        "rank_s", "computing_s", "io_s", "io_wait_s", "imbalance_s", "communication_s"
    )] for row in rows)  # fmt: skip
    assert (whole, phase) == ([6, 4, 1, 1, 0, 0], [2, 0, 1, 1, 0, 0])


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_random_programs_add_up_at_every_place(tmp_path, seed):
    random = np.random.default_rng(seed)
    ranks = int(random.integers(2, 6))
    program = WaitTrace(ranks, nodes=2)
    for _ in range(60):
        rank, ns = int(random.integers(ranks)), int(random.integers(1, 1000))
        what = int(random.integers(6))
        if what < 2:
            program.io(rank, ns, f"/scratch/f{rank}")
        elif what == 2:
            program.compute(rank, ns)
        elif what == 3:
            program.receive(rank, int((rank + 1) % ranks), program.now[rank] + ns)
        elif what == 4:
            program.barrier()
        else:
            others = [one for one in range(ranks) if one != rank]
            program.waitall(rank, others, program.now[rank] + ns)
    split(program, tmp_path)


def test_io_of_another_thread_beside_computing_is_background(tmp_path):
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        begin = writer.created_ticks + BEGIN
        process = writer.process(5, 0, 1, start_ticks=begin, last_ticks=begin + 10 * SECOND)
        name = process.name("/scratch/out")
        process.events([event("write", begin + SECOND, SECOND, file=name)], 5)
        process.events([event("write", begin, 4 * SECOND, file=name)], 6)
    report = build(tmp_path / "run")
    assert checked(report.steps[0]) == [(9, 1, 0, 0, 0)]
    [row] = report_json(report)["wall_time"]
    assert row["background_s"] == 0.3


def test_shares_that_are_printed_add_up_to_100_percent():
    parts = dict(zip(PARTS, (1, 1, 1, 0, 0)))
    found = list(shares(parts).values())
    assert sum(round(1000 * one) for one in found) == 1000
    assert sorted(found) == [0, 0, 0.333, 0.333, 0.334]


def test_the_table_fits_a_screen_and_many_ranks_are_grouped_by_node(tmp_path):
    program = WaitTrace(50, nodes=2)
    program.io(0, SECOND)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    tables = list(report_tables(report, Options(("wall",))))
    lines = [line for table in tables for line in text_lines(table)]
    assert max(map(len, lines)) <= 100
    assert [table.title for table in tables][1] == "The same of each node of s"
    assert [row[:2] for row in tables[1].rows] == [("n0", "25"), ("n1", "25")]
    assert ALL == "all"


def test_what_is_no_part_of_rank_seconds_is_below_the_table_and_in_advise(tmp_path, weir):
    """Two ranks, one of which ends in the middle of the step."""
    program = WaitTrace(2)
    program.barrier()
    for rank in range(2):
        program.compute(rank, (4 - 2 * rank) * SECOND)
    program.write(tmp_path / "run" / "s")
    remarks = [one for table in report_tables(build(tmp_path / "run"), Options(("wall",)))
        for one in getattr(table, "remarks", ())]
    assert "not running (before they start, after they end), of the wall time: s 25 %" in remarks
    assert "not running 25 %" in " ".join(weir("advise", tmp_path / "run").stdout.split())


def farm(directory: Path, rank_source: int):
    """Four ranks of a launcher, of two programs that do not call MPI."""
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        begin = writer.created_ticks + BEGIN
        for rank in range(4):
            process = writer.process(5 + rank, rank, 4, start_ticks=begin, rank_source=rank_source,
                last_ticks=begin + 2 * SECOND, exe="/bin/dd" if rank < 2 else "/bin/cp")
            name = process.name(f"/scratch/out.{rank}")
            process.events([event("write", begin, (1 + rank % 2) * SECOND, file=name)], 5)
    return build(directory.parent)


def test_ranks_of_a_launcher_that_never_start_mpi_are_programs_of_their_own(tmp_path, weir):
    report = farm(tmp_path / "run" / "s", 1)
    assert checked(report.steps[0]) == [(1, 1, 0, 0, 0), (0, 2, 0, 0, 0)] * 2
    programs = [row["program"] for row in report_json(report)["wall_time_by_rank"]]
    assert programs == ["dd", "dd", "cp", "cp"]
    lines = weir("report", tmp_path / "run", "--tables", "wall").ok().stdout.splitlines()
    head = next(line.split() for line in lines if line.split()[:1] == ["Rank"])
    assert head[:2] == ["Rank", "Program"] and "Node" not in head
    rows = [line.split()[:2] for line in lines if line.split()[:1] in (["0"], ["3"])]
    assert rows == [["0", "dd"], ["3", "cp"]]


def test_ranks_that_start_mpi_without_a_record_of_it_are_not_split(tmp_path):
    assert list(by_rank(farm(tmp_path / "run" / "s", 2).steps[0])) == []


def test_a_shell_and_the_programs_that_it_forks_are_one_rank(tmp_path, weir):
    weir("trace", "-o", "run", "--", "sh", "-c", "(cat | wc -c) < /dev/null; head -c 9 /dev/zero > x",
        cwd=tmp_path).ok()
    [row] = report_json(build(tmp_path / "run"))["wall_time_by_rank"]
    assert row["rank"] == 0 and row["program"] in ("sh", "dash", "bash", "busybox")
