# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O, on programs whose answer is known, and against programs that are run
once more without their I/O."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wait_trace import WaitTrace

from weir.report import build
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import sync

SECOND = 10**9
SETTINGS = settings(max_examples=25)


def found(program: WaitTrace, directory: Path):
    """The account of a program's only step."""
    step = build(program.write(directory / "run" / "s")).steps[0]
    return synchronisation_of(step).waits


def seconds(waits) -> tuple[float, float, float]:
    """Waited, on the critical path, and critical."""
    return tuple(round(ns / SECOND, 6) for ns in (waits.waited_ns, waits.path_ns,
        waits.critical_ns))


def test_one_rank_writes_while_the_others_wait(tmp_path):
    program = WaitTrace(4)
    program.barrier()
    program.io(0, SECOND, "/scratch/restart")
    program.barrier()
    waits = found(program, tmp_path)
    assert seconds(waits) == (3.0, 1.0, 1.0)
    assert waits.collectives == 2 and waits.incomplete == 0
    assert waits.waiting_ns == 3 * SECOND
    [file] = waits.files
    assert (file.file, file.ranks, [op.op for op in file.ops]) == ("/scratch/restart", (0,),
        ["write"])
    assert (file.waited_ns, file.path_ns, file.critical_ns, file.io_ns) == (3 * SECOND, SECOND,
        SECOND, SECOND)
    [routine] = waits.routines
    assert (routine.routine, routine.communicator, routine.calls) == ("MPI_Barrier", "world", 2)
    assert (routine.waiting_ns, routine.waited_ns, routine.last, routine.last_times,
        routine.times) == (3 * SECOND, 3 * SECOND, 0, 1, 1)


def test_nobody_waits_when_all_write_at_once_but_the_forecast_pays(tmp_path):
    program = WaitTrace(4)
    for _ in range(3):
        for rank in range(4):
            program.io(rank, SECOND, f"/scratch/out{rank}")
        program.barrier()
    waits = found(program, tmp_path)
    assert seconds(waits) == (0.0, 3.0, 3.0)
    assert sum(file.critical_ns for file in waits.files) == 3 * SECOND


def test_what_is_hidden_behind_the_computing_of_others_is_not_critical(tmp_path):
    program = WaitTrace(3)
    program.io(0, SECOND)
    for rank in (1, 2):
        program.compute(rank, SECOND + 5)
    program.barrier()
    assert seconds(found(program, tmp_path)) == (0.0, 0.0, 0.0)


def test_only_the_part_that_is_not_hidden_is_critical(tmp_path):
    program = WaitTrace(3)
    program.io(0, 3 * SECOND)
    program.compute(1, SECOND)
    program.compute(2, 2 * SECOND)
    program.barrier()
    assert seconds(found(program, tmp_path)) == (3.0, 3.0, 1.0)


def test_io_before_the_others_began_to_wait_is_critical_though_nobody_saw_it(tmp_path):
    """Rank 0 writes 1 s while the others compute 1 s, and then computes 1 s itself, for which they
    wait."""
    program = WaitTrace(2)
    program.io(0, SECOND)
    program.compute(0, SECOND)
    program.compute(1, SECOND)
    program.barrier()
    assert seconds(found(program, tmp_path)) == (0.0, 1.0, 1.0)


def test_files_share_critical_time_in_proportion_to_their_time_and_the_dearest_comes_first(
        tmp_path):
    program = WaitTrace(2)
    program.io(0, SECOND, "/scratch/small", "open")
    program.io(0, 3 * SECOND, "/scratch/large")
    program.compute(1, 2 * SECOND)
    program.barrier()
    waits = found(program, tmp_path)
    assert [(file.file, file.critical_ns, file.ops[0].op) for file in waits.files] == [
        ("/scratch/large", 1_500_000_000, "write"), ("/scratch/small", 500_000_000, "open"),
    ]  # fmt: skip
    assert [file.waited_ns for file in waits.files] == [2 * SECOND, 0]


def test_many_files_of_one_pattern_are_one_line(tmp_path, weir):
    """30 output files of ranks 0 and 1, and one log: no single file shows what delays the run."""
    program = WaitTrace(3)
    for frame in range(15):
        for rank in (0, 1):
            program.io(rank, SECOND, f"/scratch/processor{rank}/{frame}/p")
        program.barrier()
    program.io(0, 2 * SECOND, "/scratch/log")
    program.barrier()
    run = program.write(tmp_path / "run" / "s")
    text = weir("report", str(run), "--tables", "waits").ok().stdout
    table = text.partition("Files that s waits for, s\n")[2].splitlines()
    assert [line.split()[-4:] for line in table[1:4]] == [
        ["write", "0-1", "30", "/scratch/processor<N>/<M>/p"],
        ["write", "0", "1", "/scratch/log"], ["17.000", "19.000", "32.000", "TOTAL"],
    ]  # fmt: skip
    every = weir("report", str(run), "--tables", "waits", "--top", "0").ok().stdout
    assert every.count("/p\n") == 30
    rows = json.loads(weir("report", str(run), "--tables", "waits", "--json").ok().stdout)
    assert len(rows["waits"][0]["files"]) == 31


@pytest.mark.parametrize("other", ["world/0", "world/1.5"])
def test_a_second_communicator_of_the_same_ranks_pays_nothing_twice(tmp_path, other):
    program = WaitTrace(3)
    for rank in range(3):
        program.io(rank, SECOND)
    program.barrier()
    program.barrier(comm=other)
    program.io(1, SECOND)
    program.barrier(comm=other)
    program.barrier()
    assert seconds(found(program, tmp_path)) == (2.0, 2.0, 2.0)


def test_a_part_of_the_ranks_waits_first_then_all_and_the_second_of_io_counts_once(tmp_path):
    program = WaitTrace(4)
    program.io(0, SECOND)
    program.barrier((0, 1), "world/0.0")
    program.compute(0, 10)
    program.barrier()
    waits = found(program, tmp_path)
    assert seconds(waits) == (3.0, 1.0, 1.0)
    assert {one.communicator for one in waits.routines} == {"world/0.0", "world"}


def test_a_rank_that_is_killed_leaves_the_last_collective_out(tmp_path):
    program = WaitTrace(3)
    program.io(0, SECOND)
    program.barrier()
    program.io(1, SECOND)
    program.barrier(lost=(2,))
    program.killed = {2}
    waits = found(program, tmp_path)
    assert seconds(waits) == (2.0, 1.0, 1.0)
    assert (waits.collectives, waits.incomplete) == (1, 1)


@pytest.mark.parametrize("ahead", [5_000_000, -300 * SECOND])
def test_nodes_whose_clocks_differ(tmp_path, ahead):
    """The same as on one node: barriers at the start tell the clocks' difference."""
    program = WaitTrace(4, nodes=2, ahead=(0, ahead))
    for number in range(8):
        for rank in range(4):
            program._keep(rank, "", lambda at, _, n=number: sync(at, n, 4), 2000)
    for rank in range(4):
        program.compute(rank, SECOND)
    program.barrier()
    program.io(3, SECOND)
    program.barrier()
    assert seconds(found(program, tmp_path)) == (3.0, 1.0, 1.0)


def test_in_a_broadcast_only_the_root_is_waited_for(tmp_path):
    program = WaitTrace(3)
    program.io(0, SECOND, "/scratch/input", "read")
    program.compute(2, 2 * SECOND)  # the last to come waits for nobody, and nobody for it
    program.io(2, SECOND, "/scratch/other")
    program.bcast(0)
    waits = found(program, tmp_path)
    assert seconds(waits) == (1.0, 1.0, 1.0)
    # The step ends with rank 2, which waits for nobody.
    assert [(file.file, file.critical_ns) for file in waits.files] == [("/scratch/other", SECOND),
        ("/scratch/input", 0)]


def test_a_collective_that_does_not_block_is_waited_for_in_its_wait(tmp_path):
    program = WaitTrace(3)
    program.io(0, 4 * SECOND)
    program.start_barrier()
    program.compute(1, SECOND)
    program.compute(2, 3 * SECOND)
    for rank in (1, 2, 0):
        program.wait_barrier(rank)
    waits = found(program, tmp_path)
    assert seconds(waits) == (4.0, 4.0, 1.0)
    assert {one.routine for one in waits.routines} == {"MPI_Wait"}


def test_a_receive_waits_for_the_io_of_its_sender(tmp_path):
    program = WaitTrace(3)
    program.io(1, SECOND, "/scratch/a")
    program.compute(1, SECOND)
    program.receive(0, 1, 2 * SECOND)
    waits = found(program, tmp_path)
    assert seconds(waits) == (1.0, 1.0, 1.0)
    assert waits.waiting_ns == 2 * SECOND
    [routine] = waits.routines
    assert (routine.routine, routine.calls, routine.last) == ("MPI_Recv", 1, 1)


def test_a_wait_for_several_messages_waits_for_the_rank_that_is_longest_in_io(tmp_path):
    program = WaitTrace(4)
    program.io(1, SECOND, "/scratch/a")
    program.io(2, 2 * SECOND, "/scratch/b")
    program.waitall(0, (1, 2, 3), 2 * SECOND)
    waits = found(program, tmp_path)
    assert seconds(waits) == (2.0, 2.0, 2.0)
    assert waits.waiting_ns == 2 * SECOND
    assert [file.file for file in waits.files] == ["/scratch/b"]


def test_in_mpi_io_ranks_wait_within_the_call_for_those_that_write(tmp_path):
    program = WaitTrace(4)
    program.barrier()
    program.write_all({0: SECOND})
    program.write_all({0: SECOND, 2: SECOND // 2})
    program.barrier()
    waits = found(program, tmp_path)
    # Of the second call rank 2 waits half a second.
    assert seconds(waits) == (3.0 + 2.5, 2.0, 2.0)
    [file] = waits.files
    assert (file.file, file.ops[0].op, file.ranks) == ("/scratch/all.nc", "pwrite", (0,))
    routine = waits.routines[0]
    assert (routine.routine, routine.communicator, routine.calls,
        routine.last) == ("MPI_File_write_all", "/scratch/all.nc", 2, 0)


def test_a_file_of_each_rank_is_waited_for_by_nobody(tmp_path):
    program = WaitTrace(2)
    for rank in range(2):
        program.write_all({rank: SECOND}, f"/scratch/{rank}", [rank])
    program.barrier()
    assert seconds(found(program, tmp_path)) == (0.0, 1.0, 1.0)


def test_communicators_of_one_rank_and_unknown_ones_match_nothing(tmp_path):
    program = WaitTrace(2)
    program.io(0, SECOND)
    program.barrier((0,), "self")
    program.barrier(comm="?77")
    waits = found(program, tmp_path)
    assert (waits.collectives, waits.waited_ns, waits.critical_ns) == (0, 0, 0)


def test_two_programs_in_a_step_are_not_mixed_up(tmp_path):
    first, second = WaitTrace(2), WaitTrace(2)
    for program, late in ((first, 0), (second, 1)):
        program.io(late, SECOND, f"/scratch/{late}")
        program.barrier()
    first.write(tmp_path / "run" / "s")
    second.nodes = 1
    directory = tmp_path / "more" / "s"
    second.write(directory)
    (directory / "n0.weir").rename(tmp_path / "run" / "s" / "other.weir")
    waits = synchronisation_of(build(tmp_path / "run").steps[0]).waits
    assert seconds(waits) == (2.0, 1.0, 1.0)  # side by side
    assert waits.ranks == 4


# A program: for each barrier what each rank does before it, in turn computing and I/O.
work = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=4)
rounds = st.integers(2, 4).flatmap(lambda ranks: st
    .lists(st.lists(work, min_size=ranks, max_size=ranks), min_size=1, max_size=8))


def run_of(made, *, without: object = None, comms: list[str] | None = None) -> WaitTrace:
    """The program; without: its I/O costs nothing (True)."""
    program = WaitTrace(len(made[0]), cost=3)
    for number, each in enumerate(made):
        for rank, todo in enumerate(each):
            for is_io, ns in todo:
                if not is_io:
                    program.compute(rank, ns)
                elif not without:
                    program.io(rank, ns, f"/scratch/{(number + rank) % 3}")
        program.barrier(comm=comms[number] if comms else "world")
    return program


@SETTINGS
@given(rounds)
def test_critical_time_is_what_the_program_takes_longer_than_without_its_io(made):
    program, bare = run_of(made), run_of(made, without=True)
    with tempfile.TemporaryDirectory() as directory:
        waits = found(program, Path(directory))
    assert waits.critical_ns == max(program.now) - max(bare.now)
    assert sum(file.critical_ns for file in waits.files) == pytest.approx(waits.critical_ns,
        abs=len(waits.files))
    assert waits.critical_ns <= waits.path_ns


@SETTINGS
@given(rounds, st.lists(st.sampled_from(["world", "world/0", "world/1.0"]), min_size=8, max_size=8))
def test_it_does_not_matter_on_which_communicator_of_all_ranks_they_meet(made, comms):
    with tempfile.TemporaryDirectory() as directory:
        one = found(run_of(made), Path(directory) / "a")
        other = found(run_of(made, comms=comms), Path(directory) / "b")
    assert (one.waited_ns, one.path_ns, one.critical_ns) == (other.waited_ns, other.path_ns,
        other.critical_ns)
    assert [(f.file, f.critical_ns) for f in one.files] == [(f.file, f.critical_ns)
        for f in other.files]


@SETTINGS
@given(rounds)
def test_waited_time_is_that_of_a_simple_model(made):
    program = run_of(made)
    waited = 0
    now = [0] * program.ranks
    for each in made:
        spans = [[] for _ in each]
        for rank, todo in enumerate(each):
            for is_io, ns in todo:
                if is_io:
                    spans[rank].append((now[rank], now[rank] + ns))
                now[rank] += ns
        last = max(now)
        # of several that come last the one of the highest rank
        who = max(rank for rank, at in enumerate(now) if at == last)
        others = [at for rank, at in enumerate(now) if rank != who]
        waited += sum(max(0, end - max(begin, at)) for at in others for begin, end in spans[who])
        now = [last + 3] * program.ranks
    with tempfile.TemporaryDirectory() as directory:
        waits = found(program, Path(directory))
    assert waits.waited_ns == waited


def test_tables_json_and_the_note_have_the_same_figures(tmp_path):
    from golden_trace import answer

    program = WaitTrace(4)
    program.barrier()
    program.io(0, SECOND, "/scratch/restart")
    program.barrier()
    run = program.write(tmp_path / "run" / "s")
    text = answer(run, "--tables waits")
    assert (
        "I/O delays the step by 1.0 s (100% of the wall time); the file that delays it most, by "
        "1.0 s, mostly write of rank 0: /scratch/restart"
        in " ".join(text.split())
    )
    assert any(line.split() == ["s", "1.000", "1.000", "1.000", "3.000", "3.000", "1.000", "100%",
        "1.000", "100%"] for line in text.splitlines())
    for row in ("1.000 100% 1.000 1.000 3.000", "1.000"):  # 80 columns have no room for one table
        assert any(line.split() == [*row.split(), "write", "0", "/scratch/restart"]
            for line in text.splitlines())
    assert any(line.split() == ["MPI_Barrier", "world", "2", "3.000", "3.000", "0", "100%"]
        for line in text.splitlines())
    of_one = answer(run, "--tables waits --rank 1")
    assert "Rank 1" in of_one and "waits and critical times are of all ranks" in of_one
    assert any(line.split() == ["s", "1.000", "0.000", "0.000", "3.000", "3.000", "1.000", "100%",
        "1.000", "100%"] for line in of_one.splitlines())
    [waits] = json.loads(answer(run, "--json"))["waits"]
    assert (waits["waited_s"], waits["path_s"], waits["critical_s"], waits["collectives"]) == (3.0,
        1.0, 1.0, 2)
    assert waits["files"][0]["ops"] == {"write": {"waited_s": 3.0, "path_s": 1.0,
        "critical_s": 1.0}}


def test_a_step_without_mpi_has_none_of_it(tmp_path):
    program = WaitTrace(2)
    program.io(0, SECOND)
    step = synchronisation_of(build(program.write(tmp_path / "run" / "s")).steps[0])
    assert (step.waits, step.phases) == (None, ())
