# SPDX-License-Identifier: Apache-2.0
"""Phases of programs whose times are known: by marks, by rules, between barriers."""

from __future__ import annotations

import json

import pytest
from wait_trace import WaitTrace

from weir._errors import InputError, UsageError
from weir.report import build
from weir.report.frame.kind import ALL, Options
from weir.report.notes import notes
from weir.report.registry import report_tables
from weir.report.waits.phase_rules import PhaseRule, read_phase_rules
from weir.report.waits.summary import synchronisation_of

SECOND = 10**9


def phases(program: WaitTrace, directory, rules=()):
    step = build(program.write(directory / "run" / "s"), phase_rules=rules).steps[0]
    return synchronisation_of(step)


def figures(one) -> tuple:
    return (
        one.name,
        one.times,
        one.ranks,
        one.least_ns,
        one.mean_ns,
        one.most_ns,
        one.sync_ns,
        one.wall_ns,
    )


def written(tmp_path, text: str):
    path = tmp_path / "phases.toml"
    path.write_text(text)
    return path


def two_writes(comm: str = "world") -> WaitTrace:
    """Twice: all compute 2 s, then write in a phase, rank r for r + 1 s, and meet."""
    program = WaitTrace(3, cost=0)
    for _ in range(2):
        for rank in range(3):
            program.compute(rank, 2 * SECOND)
            program.phase(rank, "9write", True)
            program.io(rank, (rank + 1) * SECOND, f"/scratch/hist{rank}")
            program.phase(rank, "9write", False)
        program.barrier(comm=comm)
    return program


def test_times_over_ranks_and_sync_time_are_those_of_the_marks(tmp_path):
    found = phases(two_writes(), tmp_path)
    [write] = found.phases
    assert found.spans.source == "marks"
    assert figures(write) == ("9write", 2, 3, 2 * SECOND, 4 * SECOND, 6 * SECOND, 4 * SECOND,
        6 * SECOND)
    assert write.io_ns == 12 * SECOND
    # Rank 2 comes last: 1 s after the next to last, and all of its 3 s if nobody's I/O cost
    # anything.
    assert (write.waited_ns, write.path_ns, write.critical_ns) == (2 * (2 + 1) * SECOND, 6 * SECOND,
        6 * SECOND)
    assert (found.waits.path_ns, found.waits.critical_ns) == (write.path_ns, write.critical_ns)


def test_phases_may_lie_in_one_another_and_an_end_may_be_missing(tmp_path):
    program = WaitTrace(1)
    program.phase(0, "all", True)
    program.compute(0, 5)
    program.phase(0, "part", True)
    program.compute(0, 7)
    program.phase(0, "part", False)
    program.compute(0, 1)
    program.phase(0, "part", True)  # the program is killed in it
    program.compute(0, 10)
    program.phase(0, "all", False)
    program.compute(0, 4)
    program.killed = {0}
    all_of_it, part = phases(program, tmp_path).phases
    assert figures(all_of_it)[:6] == ("all", 1, 1, 23, 23, 23)
    assert figures(part)[:6] == ("part", 2, 1, 21, 21, 21)


def test_an_end_without_a_beginning_is_none(tmp_path):
    program = WaitTrace(2)
    program.phase(0, "a", False)
    program.compute(0, 3)
    program.phase(0, "a", True)
    program.compute(0, 2)
    program.phase(0, "a", False)
    [one] = phases(program, tmp_path).phases
    assert figures(one)[:6] == ("a", 1, 1, 2, 2, 2)


def test_between_barriers_each_stretch_is_a_phase_and_the_wait_is_in_none(tmp_path):
    program = two_writes()
    program.todo = [[one for one in todo if not one[1].startswith("phase:")]
        for todo in program.todo]
    for rank in range(3):
        program.compute(rank, SECOND)
    found = phases(program, tmp_path)
    assert found.spans.source == "barriers"
    assert [figures(one) for one in found.phases] == [
        ("to barrier 1", 1, 3, 3 * SECOND, 4 * SECOND, 5 * SECOND, 2 * SECOND, 5 * SECOND),
        ("barrier 1 to 2", 1, 3, 3 * SECOND, 4 * SECOND, 5 * SECOND, 2 * SECOND, 5 * SECOND),
        ("after the last barrier", 1, 3, SECOND, SECOND, SECOND, 0, SECOND),
    ]


RULES = """
[[phase]]
phase = "1read"
start = true

[[phase]]
phase = "9write"
name = "hist[0-9]"
until = "close"

[[phase]]
phase = "8exec"
barrier = 1
every = 1
"""


def test_rules_set_marks_where_files_are_opened_and_barriers_are_left(tmp_path):
    program = WaitTrace(2)
    for rank in range(2):
        program.compute(rank, 10)
    program.barrier()  # leaves at 11
    for _ in range(2):
        for rank in range(2):
            program.compute(rank, 20)
            program.io(rank, 2, f"/scratch/hist{rank}", "open")
            program.io(rank, 5 + rank, f"/scratch/hist{rank}")
            program.io(rank, 1, f"/scratch/hist{rank}", "close")
        program.barrier()
    found = phases(program, tmp_path, read_phase_rules(written(tmp_path, RULES)))
    assert found.spans.source == "rules"
    assert [figures(one)[:6] for one in found.phases] == [
        ("1read", 1, 2, 11, 11, 11),
        ("8exec", 3, 2, 40, 40, 40),
        ("9write", 2, 2, 16, 17, 18),
    ]


def spell(program: WaitTrace, rank: int, file: str, ns: int) -> None:
    """Open, computing and close, ns in all."""
    program.io(rank, 1, file, "open")
    program.compute(rank, ns - 2)
    program.io(rank, 1, file, "close")


def test_times_of_a_phase_are_those_of_one_file_though_not_every_rank_opens_it(tmp_path):
    """Under ROMIO rank 1 opens the second file alone: its first time is not the first of rank 0."""
    program = WaitTrace(3)
    for rank in (0, 2):
        spell(program, rank, "/scratch/out.a", 10 * SECOND)
    program.compute(1, 11 * SECOND)
    program.barrier()
    for rank in (0, 1, 2):
        spell(program, rank, "/scratch/out.b", (9 + rank) * SECOND)
    program.barrier()
    rules = (PhaseRule("write", name="out.*", until="close"),)
    [write] = phases(program, tmp_path, rules).phases
    assert (write.times, write.ranks) == (2, 3)
    assert (write.sync_ns, write.wall_ns) == (2 * SECOND, 21 * SECOND)


def test_ranks_that_open_a_file_by_mpi_io_are_in_its_phase_though_one_alone_makes_requests(
        tmp_path):
    """As under ROMIO: rank 0 makes the file, closes it and opens it again."""
    program = WaitTrace(3)
    for rank in range(3):
        program.mpi_io(rank, "MPI_File_open", "/scratch/out.nc")
        for op in ("open", "close", "open") if rank == 0 else ():
            program.io(rank, 1, "/scratch/out.nc", op)
            program.compute(rank, SECOND)
        program.compute(rank, (5 + rank) * SECOND)
        if rank == 0:
            program.io(rank, 1, "/scratch/out.nc", "close")
        program.mpi_io(rank, "MPI_File_close", "/scratch/out.nc")
        program.compute(rank, SECOND)
    program.barrier()
    rules = (PhaseRule("write", name="out.*", until="close"),)
    [write] = phases(program, tmp_path, rules).phases
    assert (write.times, write.ranks) == (1, 3)
    assert [write.least_ns, write.most_ns] == [6 * SECOND + 2, 8 * SECOND + 6]


def test_files_of_their_own_are_one_time_of_the_phase_where_they_overlap(tmp_path):
    program = WaitTrace(2)
    for number in range(3):
        for rank in (0, 1):
            if number != 1 or rank == 0:  # rank 1 writes no second one
                spell(program, rank, f"/scratch/own.{rank}.{number}", (4 + rank) * SECOND)
        program.barrier()
    rules = (PhaseRule("write", name="own.*", until="close"),)
    [write] = phases(program, tmp_path, rules).phases
    assert (write.times, write.sync_ns, write.wall_ns) == (3, 2 * SECOND, (5 + 4 + 5) * SECOND)


def test_a_rule_may_end_a_phase_at_the_next_barrier(tmp_path):
    program = two_writes()
    rules = read_phase_rules(written(tmp_path,
        '[[phase]]\nphase = "w"\npath = "/scratch/*"\nuntil = "barrier"\n'))
    for todo in program.todo:
        todo[:] = [one for one in todo if not one[1].startswith("phase:")]
    assert phases(program, tmp_path, rules).phases == ()  # nothing was opened


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no phases in it"),
        ("[phase]\nphase='a'", "two brackets"),
        ("[[rule]]\n", "each phase is a table"),
        ("[[phase]]\nstart = true", "has no name"),
        ("[[phase]]\nphase = 'a'", "give one key that says where it begins"),
        ("[[phase]]\nphase = 'a'\nstart = true\nbarrier = 1", "give one key"),
        ("[[phase]]\nphase = 'a'\nbarier = 1", "did you mean barrier?"),
        ("[[phase]]\nphase = 'a'\nbarrier = 0", "counted from 1"),
        ("[[phase]]\nphase = 'a'\nbarrier = []", "counted from 1"),
        ("[[phase]]\nphase = 'a'\nbarrier = '3'", "wrong type"),
        ("[[phase]]\nphase = 'a'\nstart = true\nevery = 2", "goes with barrier"),
        ("[[phase]]\nphase = 'a'\nbarrier = 2\nuntil = 'close'", "another one at"),
        ("[[phase", "not TOML"),
    ],
)
def test_a_mistake_in_the_rules_is_reported(tmp_path, text, problem):
    with pytest.raises(UsageError, match=problem.replace("?", r"\?")):
        read_phase_rules(written(tmp_path, text))


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(InputError, match="no such file of phases"):
        read_phase_rules(tmp_path / "none.toml")


def test_the_table_and_json_have_the_same_figures(tmp_path):
    from golden_trace import answer

    run = two_writes().write(tmp_path / "run" / "s")
    text = answer(run, "--tables phases")
    times, io = (line.split() for line in text.splitlines() if line.startswith("9write"))
    assert times == ["9write", "2", "3", "2.000", "4.000", "6.000", "4.000", "6.000", "60%"]
    assert io == ["9write", "12.000", "6.000", "6.000"]
    [one] = json.loads(answer(run, "--json"))["phases"]
    assert (one["phase"], one["sync_s"], one["io_s"], one["critical_s"]) == ("9write", 4.0, 12.0,
        6.0)
    rules = written(tmp_path, '[[phase]]\nphase = "after"\nbarrier = 1\n')
    assert "after" in answer(run, f"--tables phases --phases {rules}")


def test_marks_without_a_partner_are_reported(tmp_path):
    program = WaitTrace(2)
    for rank in range(2):
        program.phase(rank, "never", False)
        for name in ("open", "twice", "twice", "whole"):
            program.phase(rank, name, True)
            program.compute(rank, 5)
        for name in ("twice", "whole"):
            program.phase(rank, name, False)
        program.compute(rank, 5)
    report = build(program.write(tmp_path / "run" / "s"))
    assert [(one.name, one.begins, one.ends) for one in sorted(
        synchronisation_of(report.steps[0]).spans.unpaired, key=lambda one: one.name)] == [
        ("never", 0, 2), ("open", 2, 0), ("twice", 2, 0),
    ]  # fmt: skip
    said = " ".join(notes(report))
    assert (
        "phase never was ended and not begun 2 times" in said
        and "phase open was begun and not ended 2 times" in said
    )
    assert "phase whole" not in said


def test_ends_alone_are_reported_and_barriers_are_the_phases(tmp_path):
    program = WaitTrace(1)
    program.phase(0, "never", False)
    program.compute(0, 5)
    program.barrier()
    program.compute(0, 5)
    report = build(program.write(tmp_path / "run" / "s"))
    assert synchronisation_of(report.steps[0]).spans.source == "barriers"
    assert any("phase never was ended and not begun once" in sentence for sentence in notes(report))


def test_a_rule_that_begins_nowhere_is_reported(tmp_path):
    text = (
        '[[phase]]\nphase = "lost"\nname = "nix*"\n[[phase]]\nphase = "lost"\nbarrier = [7, '
        '8]\n[[phase]]\nphase = "met"\nbarrier = 1\n'
    )
    rules = read_phase_rules(written(tmp_path, text))
    said = [sentence for sentence in notes(build(two_writes().write(tmp_path / "run" / "s"),
        phase_rules=rules)) if "phase" in sentence]
    assert said == ['phase lost begins nowhere: no rank comes to name = "nix*", barrier = [7, 8]']


def test_a_table_that_was_asked_for_and_has_nothing_says_why(tmp_path):
    program = WaitTrace(1)
    program.io(0, 5)
    report = build(program.write(tmp_path / "run" / "s"))
    asked = list(report_tables(report, Options(("waits", "phases"))))
    assert [part.strip().split(":")[0] for part in asked] == ["waits",
        "phases"] and "--no-mpi" in asked[0] and "--phases" in asked[1]
    assert not any(isinstance(part, str) and "nothing to show" in part
        for part in report_tables(report, Options((ALL,))))


def test_times_of_one_program_are_none_of_the_next_one_in_the_step(tmp_path):
    """Two programs of a job script: the second is in the phase 10 s after the first, and nobody
    waited for that."""
    for number, ranks in enumerate((2, 3)):
        program = WaitTrace(ranks, cost=0)
        for rank in range(ranks):
            program.compute(rank, 10 * number * SECOND)
            program.phase(rank, "9write", True)
            program.io(rank, (rank + 1) * SECOND)
            program.phase(rank, "9write", False)
        program.barrier()
        program.write(tmp_path / str(number) / "s")
    (tmp_path / "0" / "s" / "n0.weir").rename(tmp_path / "1" / "s" / "other.weir")
    [write] = synchronisation_of(build(tmp_path / "1").steps[0]).phases
    assert figures(write) == ("9write", 2, 5, SECOND, 9 * SECOND // 5, 3 * SECOND, (1 + 2) * SECOND,
        (2 + 3) * SECOND)
