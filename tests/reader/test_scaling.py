# SPDX-License-Identifier: Apache-2.0
"""Speed-up over several runs whose times are known."""

from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner
from wait_trace import WaitTrace

from weir._errors import UsageError
from weir.cli._app import app_for
from weir.scaling.compute import RunTimes, scaling
from weir.scaling.table import REST, stop_sentences

SECOND = 10**9


def invoke(words: list[str]):
    return CliRunner().invoke(app_for(words), words)


def run(ranks: int, exec_s: float, write_s: float, nodes: int = 1) -> RunTimes:
    times = {"8exec": round(exec_s * SECOND), "9write": round(write_s * SECOND)}
    return RunTimes(f"r{ranks}.{nodes}", ranks, nodes, sum(times.values()), times)


def test_a_program_that_scales_does_not_stop():
    [curve] = scaling([run(n, 64 / n, 8 / n) for n in (4, 1, 2)]).curves
    assert [(point.run.ranks, point.speedup, point.efficiency) for point in curve.points] == [(1, 1,
        1), (2, 2, 1), (4, 4, 1)]
    assert curve.stop is None


def test_output_that_takes_longer_with_more_ranks_stops_the_curve():
    """The OLAM study's program: it computes in 1/n of the time, and each rank writes a file of its
    own."""
    found = scaling([run(n, 64 / n, n / 4) for n in (1, 2, 4, 8, 16, 32)])
    [curve] = found.curves
    assert curve.stop is not None
    assert (curve.stop.before.ranks, curve.stop.after.ranks) == (16, 32)
    assert [loss.part for loss in curve.stop.losses] == ["9write", "8exec"]
    assert [loss.lost_ns for loss in curve.stop.losses] == [(8 - 2) * SECOND, 0]
    assert curve.points[-1].efficiency == pytest.approx(64.25 / 10 / 32)


def test_one_rank_a_node_and_several_are_two_curves_from_one_beginning():
    runs = [run(1, 64, 1), *(run(n, 64 / n, 1, n) for n in (2, 4, 8)),
        *(run(n, 64 / n, 1.5 * n) for n in (2, 4, 8))]
    found = scaling(runs)
    apart, together = found.curves
    assert (apart.placement, [point.run.ranks for point in apart.points]) == ("one rank per node",
        [1, 2, 4, 8])
    assert (together.placement, [point.run.ranks for point in together.points]) == (
        "several ranks per node", [1, 2, 4, 8])
    assert apart.stop is None and together.stop is not None and together.stop.losses[
        0].part == "9write"
    assert [(one.apart.ranks, one.losses[0].part, one.losses[0].lost_ns)
        for one in found.crowding] == [
        (2, "9write", 2 * SECOND), (4, "9write", 5 * SECOND), (8, "9write", 11 * SECOND),
    ]  # fmt: skip


def test_of_runs_that_are_alike_the_shortest_counts():
    found = scaling([run(1, 8, 0), run(2, 6, 0), run(2, 4, 0)])
    assert [point.speedup for point in found.curves[0].points] == [1, 2]


def test_one_number_of_ranks_is_nothing_to_compare():
    with pytest.raises(ValueError, match="at least two"):
        scaling([run(4, 1, 1), run(4, 2, 1)])


def written(directory, ranks: int, nodes: int = 1):
    """64 s of computing in all, and a rank writes `ranks` s in a phase."""
    program = WaitTrace(ranks, cost=0, nodes=nodes)
    for rank in range(ranks):
        program.compute(rank, 64 * SECOND // ranks)
        program.phase(rank, "9write", True)
        program.io(rank, ranks * SECOND, f"/scratch/{rank}")
        program.phase(rank, "9write", False)
    program.barrier()
    return program.write(directory / f"run{ranks}" / "s")


def test_the_command_reads_runs_and_says_what_stops_it(tmp_path):
    runs = [str(written(tmp_path, ranks)) for ranks in (2, 4, 8, 16)]
    done = invoke(["scaling", *runs])
    assert done.exit_code == 0, done.output
    assert "it stops scaling at 8 ranks: 16 ranks are slower" in done.output
    assert "9write stops it: 8.000 s became 16.000 s, 100% of all that was lost" in done.output
    assert ["run4", "4", "1", "20.000", "1.70", "2.00", "85%", "4.000"] in [line.split()
        for line in done.output.splitlines()]
    head, parts, shares = done.output.split("Run ")[1], *done.output.split("\nPart ")[1:]
    assert "wall s" in head and "critical I/O s" in head.splitlines()[0]
    assert [line.split()[0] for line in parts.splitlines()[1:3]] == ["9write", "(rest)"]
    assert "Share of the wall time by part" in parts and "%" not in parts.split("Share")[0]
    assert shares.splitlines()[1].split() == ["9write", "6%", "20%", "50%", "80%"]
    figures = json.loads(invoke(["scaling", *runs, "--json"]).output)
    assert figures["parts"] == ["9write", "(rest)"]
    assert figures["curves"][0]["stop"]["at_ranks"] == 8
    assert [point["wall_s"] for point in figures["curves"][0]["points"]] == [34.0, 20.0, 16.0, 20.0]


def test_what_is_in_no_part_is_named_in_words():
    runs = [RunTimes(f"run{ranks}", ranks, 1, 10 * SECOND, {"critical I/O": SECOND,
        REST: 9 * SECOND}, SECOND) for ranks in (1, 2)]
    (curve,) = scaling(runs).curves
    assert list(stop_sentences(curve))[1].startswith("time outside the other parts stops it: 9.000")


def test_runs_that_cannot_be_compared_are_refused(tmp_path):
    from weir.scaling.table import read_scaling

    alone = str(written(tmp_path, 2))
    with pytest.raises(UsageError, match="at least two numbers of ranks"):
        read_scaling([alone, alone])


def test_a_damaged_trace_is_said_and_changes_the_status(tmp_path):
    whole, damaged = str(written(tmp_path, 2)), written(tmp_path, 4)
    [trace] = damaged.rglob("*.weir")
    os.truncate(trace, trace.stat().st_size - 4096)
    done = invoke(["scaling", whole, str(damaged)])
    assert done.exit_code == 4, done.output
    said = [line for line in done.output.splitlines() if line.startswith("note: ")]
    assert said[0].startswith("note: run4: INCOMPLETE") and "run4: damaged:" in said[1] and not any(
        "run2" in line for line in said)
    figures = json.loads(invoke(["scaling", whole, str(damaged), "--json"]).output)
    assert not figures["complete"] and [point["complete"]
        for point in figures["curves"][0]["points"]] == [True, False]


def test_a_run_that_failed_is_said(tmp_path):
    runs = [str(written(tmp_path, ranks)) for ranks in (2, 4)]
    (tmp_path / "run4" / "s" / "job.json").write_text('{"format": 1, "exit_status": 137}')
    done = invoke(["scaling", *runs])
    assert (
        done.exit_code == 0
        and "note: run4: step s: the command ended with status 137" in done.output.splitlines()
    )
