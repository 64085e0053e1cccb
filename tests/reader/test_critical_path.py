# SPDX-License-Identifier: Apache-2.0
"""What a run would take without its I/O, through servers, messages and threads: programs whose
answer is known, because they are made once more with I/O of no length."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wait_trace import BEGIN, WaitTrace, routine
from wall_sums import split_exactly

from weir.compare.table import compare
from weir.report import build, report_json
from weir.report.frame.build import Report
from weir.report.frame.kind import Options
from weir.report.frame.table import text_lines
from weir.report.files.groups import file_groups
from weir.report.html import render_html
from weir.report.registry import report_tables
from weir.report.sentences import critical_by_file, sentences
from weir.report.waits.alone import alone_of
from weir.report.waits.summary import synchronisation_of
from weir.report.wall.table import by_rank
from weir.scaling.table import run_times
from weir.trace._synthetic import TraceWriter, event, mpi

MS = 10**6
SETTINGS = settings(max_examples=40)


def found(program: WaitTrace, directory: Path):
    step = build(program.write(directory / "run" / "s")).steps[0]
    return step, synchronisation_of(step).waits


def check(make: Callable[[bool], WaitTrace], directory: Path):
    """make(is_free) makes the program, without its I/O if is_free. What is predicted is what it
    then takes."""
    program, free = make(False), make(True)
    step, waits = found(program, directory)
    assert max(program.now) - waits.critical_ns == max(free.now)
    assert sum(one.computing_ns + one.mpi_ns + one.io_ns for one in waits.path) == max(program.now)
    assert sum(one.critical_ns for one in waits.files) == pytest.approx(waits.critical_ns, abs=9)
    assert waits.not_followed == 0
    return step, waits


def quilt(
    free: bool, *, groups: int = 1, computing: int = 50, writing: int = 500, frames: int = 6,
    eager: bool = False,
    is_named: bool = True,
) -> WaitTrace:
    """Of each group three ranks compute and gather to a fourth, which writes; servers end last."""
    program = WaitTrace(4 * groups, cost=7)
    program.barrier()
    for _ in range(frames):
        for group in range(groups):
            ranks = tuple(range(4 * group, 4 * group + 4))
            comm = f"world/0.{group}" if groups > 1 else "world"
            for rank in ranks[:3]:
                program.compute(rank, computing * MS)
            program.gather(ranks[3], ranks, comm, name="MPI_Reduce", eager=True, size=8,
                is_named=is_named)
            program.gather(ranks[3], ranks, comm, eager=eager, is_named=is_named)
            if not free:
                program.io(ranks[3], (writing + 40 * group) * MS, f"/scratch/out{group}")
    program.barrier(name="MPI_Finalize")
    return program


def test_a_server_that_writes_back_to_back_is_what_the_run_waits_for(tmp_path):
    _, waits = check(quilt, tmp_path)
    [file] = waits.files
    assert (file.file, file.ranks) == ("/scratch/out0", (3,))
    # Three seconds of writing; 0.25 of computing are beside them.
    assert waits.critical_ns == pytest.approx(2750 * MS, abs=500)
    assert waits.path_ns == 3000 * MS
    assert max(waits.path, key=lambda one: one.io_ns).rank == 3


@pytest.mark.parametrize("eager, is_named", [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("computing, writing", [(50, 500), (500, 50), (100, 150), (100, 100),
    (0, 300), (300, 0)])
def test_servers_that_are_hidden_half_hidden_and_not_at_all(tmp_path, computing, writing, groups,
        eager, is_named):
    check(lambda free: quilt(free, groups=groups, computing=computing, writing=writing, eager=eager,
        is_named=is_named), tmp_path)


def test_of_two_groups_the_slower_one_counts_and_each_alone_saves_less_than_both(tmp_path):
    step, waits = check(lambda free: quilt(free, groups=2), tmp_path)
    files = {one.file: one for one in waits.files}
    assert files["/scratch/out1"].critical_ns == waits.critical_ns
    # Without it the other group's server is the last.
    assert alone_of(step).files["/scratch/out1"] == pytest.approx(6 * 40 * MS, abs=9)
    assert "/scratch/out0" not in alone_of(step).files


def test_a_rank_that_waits_for_a_rank_that_waits_for_io(tmp_path):
    """0 reads, sends to 1, which computes and sends to 2, which computes: 3 waits for it."""

    def chain(free: bool) -> WaitTrace:
        program = WaitTrace(4, cost=2)
        for _ in range(3):
            if not free:
                program.io(0, 900 * MS, "/scratch/in")
            for rank in range(3):
                program.message(rank, rank + 1)
                program.compute(rank + 1, 10 * MS)
        program.barrier()
        return program

    _, waits = check(chain, tmp_path)
    assert [(one.file, one.ranks) for one in waits.files] == [("/scratch/in", (0,))]
    assert waits.critical_ns > 2600 * MS


def test_a_send_that_waits_for_its_receiver_waits_for_the_receivers_io(tmp_path):
    def slow_reader(free: bool) -> WaitTrace:
        program = WaitTrace(2, cost=3)
        for _ in range(4):
            program.compute(0, 20 * MS)
            program.message(0, 1, synchronous=True)
            if not free:
                program.io(1, 100 * MS)
        program.barrier()
        return program

    check(slow_reader, tmp_path)


def test_a_master_hands_out_work_and_writes_what_comes_back(tmp_path):
    """What a worker sent is buffered while the master writes."""

    def farm(free: bool) -> WaitTrace:
        program = WaitTrace(4, cost=3)
        for _ in range(5):
            for worker in (1, 2, 3):
                program.message(0, worker)
            for worker in (1, 2, 3):
                program.compute(worker, 30 * worker * MS)
            for worker in (1, 2, 3):
                program.message(worker, 0)
                if not free:
                    program.io(0, 70 * MS, "/scratch/results")
        program.barrier()
        return program

    check(farm, tmp_path)


def test_ranks_wait_in_mpi_io_for_those_that_come_late_and_for_those_that_write(tmp_path):
    def together(free: bool) -> WaitTrace:
        program = WaitTrace(3, cost=5)
        for late in (1, 0, 2):
            program.compute(late, 300 * MS)
            if not free:
                program.io(0, 50 * MS, "/scratch/log")
            program.write_all({0: 0 if free else 200 * MS})
        program.barrier()
        return program

    _, waits = check(together, tmp_path)
    assert {one.file: one.critical_ns for one in waits.files} == {
        "/scratch/all.nc": pytest.approx(600 * MS, abs=99), "/scratch/log": pytest.approx(50 * MS,
            abs=99),
    }  # fmt: skip


def test_io_of_a_thread_that_calls_no_mpi_counts_as_hidden_and_is_reported(tmp_path):
    program = WaitTrace(2)
    program.io(0, 100 * MS, "/scratch/a")
    done = program.io_beside(0, 400 * MS, "/scratch/b")
    # it waits for its thread, which the trace does not show
    program.compute(0, done - program.now[0] + MS)
    program.barrier()
    _, waits = found(program, tmp_path)
    assert (waits.critical_ns, waits.critical_most_ns, waits.background_ns) == (100 * MS, 500 * MS,
        400 * MS)
    assert {one.file: one.critical_ns for one in waits.files} == {"/scratch/a": 100 * MS,
        "/scratch/b": 0}


def test_a_program_that_follows_another_begins_earlier_when_that_one_ends_earlier(tmp_path):
    first, second = WaitTrace(2), WaitTrace(3)
    for program, ranks in ((first, 2), (second, 3)):
        program.io(ranks - 1, 100 * MS, f"/scratch/{ranks}")
        program.barrier()
    for rank in range(3):  # begins when the first has ended
        second.todo[rank] = [(at + 100 * MS + 10, name, make)
            for at, name, make in second.todo[rank]]
        second.now[rank] += 100 * MS + 10
    run = first.write(tmp_path / "run" / "s")
    second.begin_ns = 100 * MS + 10
    second.write(tmp_path / "more" / "s")
    (tmp_path / "more" / "s" / "n0.weir").rename(run / "s" / "other.weir")
    waits = synchronisation_of(build(run).steps[0]).waits
    assert waits.critical_ns == 200 * MS


work = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 50),
    st.integers(0, 4)), max_size=40)


@SETTINGS
@example([(0, 0, 2, 0), (1, 0, 2, 0), (2, 0, 1, 1), (2, 0, 1, 0), (3, 0, 2, 0), (0, 0, 1, 3),
    (2, 0, 4, 0)])
@example([(0, 0, 2, 0), (1, 0, 3, 0), (2, 0, 3, 1), (3, 0, 3, 0), (0, 0, 1, 3), (2, 0, 5, 0)])
@example([(2, 3, 1, 2), (1, 2, 1, 2), (0, 1, 1, 2)])
@example([(2, 0, 1, 1), (0, 2, 1, 2), (0, 0, 1, 0)])
@given(work)
def test_any_program_of_gathers_messages_and_barriers(made):
    """rank, peer, how long it takes, and what: computing, I/O, a message, a gather or a barrier."""

    def make(free: bool) -> WaitTrace:
        program = WaitTrace(4, cost=3)
        for rank, peer, ns, what in made:
            if what == 0:
                program.compute(rank, ns)
            elif what == 1 and not free:
                program.io(rank, ns, f"/scratch/{peer}")
            elif what == 2 and rank != peer:
                program.message(rank, peer)
            elif what == 3:
                program.gather(0, eager=True)
            elif what == 4:
                program.barrier()
        program.barrier()
        return program

    with tempfile.TemporaryDirectory() as directory:
        check(make, Path(directory))


def test_ranks_that_outlive_a_killed_launcher_end_the_wall_time(tmp_path):
    """timeout kills mpirun after 2 s; the ranks go on for 3 more."""
    program = WaitTrace(2)
    for _ in range(5):
        program.io(0, 1000 * MS)
        program.barrier()
    run = program.write(tmp_path / "run" / "s")
    begun = build(run).steps[0].data
    line, process = begun.lines[0], begun.members[0].process
    started = line.timestamp(process.start_ticks) - 50 * MS
    job = {"format": 1, "level": "trace", "command": ["mpirun", "./model"],
        "started_realtime_ns": started, "ended_realtime_ns": started + 2000 * MS}
    (run / "s" / "job.json").write_text(json.dumps(job))
    report = build(run)
    [step] = report.steps
    assert step.wall_ns == 5050 * MS + 5
    [row] = report_json(report)["waits"]
    assert row["path_s"] == 5 and row["wall_s"] >= row["path_s"]
    assert sum(one["path_s"] for one in row["critical_path"]) == pytest.approx(row["wall_s"])
    lines = [line for table in report_tables(report, Options(("waits",)))
        for line in text_lines(table)]
    assert "s: ranks went on for 3.1 s after the command had ended; Wall counts until then" in [
        line.strip() for line in lines]


def test_a_rank_waits_for_a_thread_of_its_own_that_calls_mpi(tmp_path):
    """The main thread of each rank sends frames to a writer thread of the same rank and waits for
    its answer with MPI_Mprobe and MPI_Mrecv, as mpi4py does."""
    run = tmp_path / "run" / "s"
    run.mkdir(parents=True)
    frames, length = 4, 100 * MS
    with TraceWriter(run / "n.weir", "n") as writer:
        for rank in range(2):
            begin = writer.created_ticks + 1000
            process = writer.process(100 + rank, rank, 2, start_ticks=begin,
                last_ticks=begin + frames * (length + 3) + 9)
            world, name = process.name("mpi:world:2"), process.name(f"/scratch/out{rank}")
            main, beside = [event("MPI_Init", begin, 0)], []

            def call(op: str, routine_name: str, at: int, ns: int, rank=rank, world=world):
                return mpi(op, at, ns, routine(routine_name), size=8, file=world, offset=rank)

            at = begin
            for _ in range(frames):
                main.append(call("MPI_send", "MPI_Send", at, 1))
                beside.append(call("MPI_receive", "MPI_Recv", at, 1))
                beside.append(event("write", at + 1, length, file=name, size=8))
                beside.append(call("MPI_send", "MPI_Send", at + 1 + length, 1))
                main.append(call("MPI_probe", "MPI_Mprobe", at + 1, length + 1))
                main.append(call("MPI_receive", "MPI_Mrecv", at + 2 + length, 1))
                at += length + 3
            process.events(main, thread=100 + rank)
            process.events(beside, thread=200 + rank)
    step = build(tmp_path / "run").steps[0]
    waits = synchronisation_of(step).waits
    assert waits.critical_ns == pytest.approx(frames * length, abs=9)
    assert waits.waited_ns == pytest.approx(2 * frames * length, abs=9)
    assert {one.file for one in waits.files} == {"/scratch/out0", "/scratch/out1"}
    assert sum(one.critical_ns for one in waits.files) == pytest.approx(waits.critical_ns, abs=9)
    split_exactly(step)
    assert [row["io_wait_ns"] for row in by_rank(step)] == pytest.approx([frames * length] * 2,
        abs=9)


@pytest.mark.parametrize("is_joined", [True, False])
def test_the_main_thread_joins_a_thread_that_calls_mpi(tmp_path, is_joined):
    """A writer thread receives frames for its rank. The main thread joins it and then comes to a
    barrier; or it computes for longer than the thread lives."""
    run = tmp_path / "run" / "s"
    run.mkdir(parents=True)
    frames, length = 3, 200 * MS
    lives = frames * (length + 2)
    came = lives + (1000 if is_joined else 100 * MS)
    with TraceWriter(run / "n.weir", "n") as writer:
        begin = writer.created_ticks + 1000
        for rank in range(2):
            process = writer.process(100 + rank, rank, 2, start_ticks=begin,
                last_ticks=begin + came + 9)
            world, name = process.name("mpi:world:2"), process.name("/scratch/out")
            main = [event("MPI_Init", begin, 0)]
            for at in range(frames) if rank == 0 else ():
                main.append(mpi("MPI_send", begin + at, 1, routine("MPI_Send"), size=8, file=world,
                    offset=1))
            arrived = frames if rank == 0 else came
            main.append(mpi("MPI_collective", begin + arrived, came + 2 - arrived,
                routine("MPI_Barrier"), file=world, offset=0))
            process.events(main, thread=100 + rank)
            beside = []
            for at in range(frames) if rank == 1 else ():
                now = begin + at * (length + 2)
                beside.append(event("write", now, length, file=name, size=8))
                beside.append(mpi("MPI_receive", now + length, 2, routine("MPI_Recv"), size=8,
                    file=world, offset=0))
            if beside:
                process.events(beside, thread=200)
    waits = synchronisation_of(build(tmp_path / "run").steps[0]).waits
    assert waits.critical_ns == pytest.approx((frames - 1) * length if is_joined else 0, abs=9)


def model_and_product(directory: Path, commands: int = 0) -> Report:
    """A model, and then a program without MPI that computes 1 s and writes for 2 s, and starts
    commands."""
    program = WaitTrace(2)
    program.io(0, 1000 * MS, "/scratch/history")
    program.barrier()
    program.write(directory / "a_model")
    post = directory / "b_post"
    post.mkdir()
    with TraceWriter(post / "n.weir", "n", created_realtime_ns=1_700_000_100 * 10**9) as writer:
        begin = writer.created_ticks + 1000
        end = begin + 3000 * MS
        process = writer.process(5, -1, 0, start_ticks=begin, last_ticks=end, end_ticks=end,
            end_kind=1)
        name = process.name("/scratch/product")
        process.events([event("write", begin + 1000 * MS, 2000 * MS, file=name, size=8)], thread=5)
        for pid in range(6, 6 + commands):
            writer.process(pid, -1, 0, start_ticks=begin, last_ticks=begin + MS,
                end_ticks=begin + MS, end_kind=1)
    return build(directory)


def test_io_of_steps_without_mpi_is_in_what_the_run_would_take(tmp_path):
    report = model_and_product(tmp_path / "run")
    [said] = [one for one in sentences(report, file_groups(report)) if "I/O delays" in one]
    assert "I/O delays the run by 3\xa0s" in said and "it would take 1\xa0s" in said
    assert critical_by_file(report) == {"/scratch/history": 1000 * MS,
        "/scratch/product": 2000 * MS}


def test_comparisons_of_runs_count_steps_without_mpi_as_the_report_does(tmp_path):
    report = model_and_product(tmp_path / "run")
    pair = compare(report, report).total
    assert pair.values("critical") == (3.0, 3.0)
    assert pair.values("path") == (None, None)
    assert run_times(report, "run").critical_ns == 3000 * MS


@pytest.mark.parametrize(("commands", "most"), [(0, "most: 3 s, rank 0"),
    (1, "of it programs without a rank: 2 s; most of the ranks: 1 s, rank 0")])
def test_the_page_counts_steps_without_mpi_wherever_it_has_the_delay_of_the_run(tmp_path, commands,
        most):
    report = model_and_product(tmp_path / "run", commands)
    page = render_html(report).replace("\xa0", " ")
    cards = {name: (figure, remark) for name, figure, remark in re.findall(
        r"<dt>([^<]*)</dt><dd><b>([^<]*)</b><span>([^<]*)</span>", page)}
    assert cards["I/O delays the run by"] == ("3 s",
        "75 % of the wall time; waits caused by I/O: 1 s of all ranks")
    assert cards["I/O time of a rank, mean"] == ("2.5 s",
        f"62 % of the wall time; {most}")
    assert "I/O delays the run by 3 s (75 %" in page
    assert ", waited for 1 s (" in page and ", waited for 2 s (" in page


@pytest.mark.parametrize("begin_ms, is_stated", [(1500, True), (500, False)])
def test_io_of_programs_behind_the_ranks_of_a_step_is_stated(tmp_path, begin_ms, is_stated):
    """A job script: ranks write for 1 s, then cp for 2 s. One that runs beside them is on no path.
    """
    program = WaitTrace(2)
    program.io(0, 1000 * MS, "/scratch/history")
    program.barrier()
    program.write(tmp_path / "run" / "s")
    with TraceWriter(tmp_path / "run" / "s" / "m.weir", "n0",
            created_realtime_ns=1_700_000_000 * 10**9) as writer:
        begin = writer.created_ticks + BEGIN + begin_ms * MS
        process = writer.process(7, -1, 0, start_ticks=begin, last_ticks=begin + 2000 * MS,
            end_ticks=begin + 2000 * MS, end_kind=1)  # fmt: skip
        name = process.name("/scratch/copy")
        process.events([event("write", begin, 2000 * MS, file=name, size=8)], thread=7)
    report = build(tmp_path / "run")
    stated = ("Programs without MPI that ran before or after the ranks were in I/O for another "
        "2\xa0s, which is not in these figures.")
    assert any(stated in one for one in sentences(report, file_groups(report))) == is_stated


def test_waits_whose_partner_is_unknown_are_stated_with_their_seconds(tmp_path):
    """A barrier on an intercommunicator, whose name is known to each rank alone."""
    program = WaitTrace(2)
    for _ in range(2):
        program.io(0, 500 * MS)
        program.barrier(comm="?7")
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [row] = report_json(report)["waits"]
    assert row["unknown_s"] == pytest.approx(1.0, abs=1e-6)
    lines = [line.strip() for table in report_tables(report, Options(("waits",)))
        for line in text_lines(table)]
    assert "s: in 1.0 rank-s of MPI_Barrier the awaited rank is unknown: not followed" in lines
    assert any("Not followed: 1\xa0s of waits in MPI, awaited rank not known." in one
        for one in sentences(report, file_groups(report)))


@pytest.mark.parametrize("size, saved", [(1000, 100), (1 << 20, 40)])
def test_a_wait_for_a_small_message_that_was_sent_is_no_wait_for_its_receiver(tmp_path, size,
        saved):
    """Rank 0 waits for a message from rank 1, which is in I/O, and for one that it sent to rank 2,
    which computes for 60 ms before it receives: a large one is sent no earlier."""
    program = WaitTrace(3, cost=0)
    for peer, what in ((1, 1), (2, 3)):
        program._keep(0, "mpi:world:3", lambda at, name, peer=peer, what=what: mpi("MPI_awaited",
            at, 100 * MS, what, file=name, offset=peer, nested=True), 0)
    program._keep(0, "", lambda at, _: mpi("MPI_wait", at, 100 * MS, routine("MPI_Waitall"),
        size=2), 100 * MS)
    program.compute(0, 100 * MS)
    program.io(1, 100 * MS)
    program._keep(1, "mpi:world:3", lambda at, name: mpi("MPI_send", at, 0, routine("MPI_Send"),
        file=name, offset=0, size=8), 0)
    program.compute(2, 60 * MS)
    program._keep(2, "mpi:world:3", lambda at, name: mpi("MPI_receive", at, 1, routine("MPI_Recv"),
        file=name, offset=0, size=size), 1)
    _, waits = found(program, tmp_path)
    assert waits.critical_ns == saved * MS


@pytest.mark.parametrize("has_fence", [True, False])
def test_one_sided_communication_that_is_not_followed_is_stated(tmp_path, has_fence):
    program = WaitTrace(2)
    program.io(0, 500 * MS)
    for name in ("MPI_Win_fence", "MPI_Win_free") if has_fence else ("MPI_Win_free",):
        for rank in range(2):
            length = max(program.now) - program.now[rank] + 1
            program._collective(rank, "world", 2, name, length)
        program.sequence["world"] = program.sequence.get("world", -1) + 1
        program.io(0, 100 * MS)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    found = " ".join(sentences(report, file_groups(report)))
    assert ("waits in one-sided communication" in found) != has_fence
