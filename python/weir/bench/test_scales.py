# SPDX-License-Identifier: Apache-2.0
"""Tables, profile and goals of ``weir bench scales`` from known figures."""

from __future__ import annotations

from collections import defaultdict

import pytest

from weir._errors import UsageError
from weir.bench import scales, scales_beside, scales_goals, scales_tables
from weir.bench._journal import Journal, TimeOver
from weir.bench._process import RunFailed
from weir.bench._statistics import Spread, interval
from weir.report.frame.table import text_lines


def row(name: str, pes: int, encoding: float, writing: float,
        factors: tuple[float, ...] = (0.99, 1, 1.01)) -> scales.Row:
    """Rates of three repetitions, around the given ones."""
    def figures(mb_s: float) -> dict[str, Spread]:
        known = {"mb_s": mb_s, "elapsed_s": 1000 / mb_s, "encode_s": 2.0, "cpu_s_per_gb": 1.5,
            "bytes": 1e9}
        return {key: Spread.of([value * by for by in factors]) for key, value in known.items()}

    alone = {**figures(writing), "of_pwrite": Spread.of([by * writing / 2000 for by in factors])}
    return scales.Row(scales.BY_NAME[name], pes, "memory", figures(encoding), alone)


def peer(name: str, pes: int, mb_s: float) -> scales.Peer:
    return scales.Peer(name, name, pes, "memory", {key: Spread(value, value, value)
        for key, value in {"mb_s": mb_s, "cpu_s_per_gb": 0.4, "bytes": 47e6}.items()})


FOUND = scales_tables.Found(
    [row("serial", 1, 100, 900), row("offset-guard", 4, 240, 1800), row("direct", 4, 250, 1710)],
    [peer("eccodes", 1, 110), peer("pwrite", 4, 2000)], tracing=[0.04, 0.05, 0.02])


def test_rates_stand_beside_what_was_published():
    table = scales_tables.rates(FOUND.rows, FOUND.peers, "memory")
    assert table.rows[1] == ("Offset guard, fwrite", "4", "3", "3", "240", "2.40", "240", "1.62",
        "1.50", "1,800", "90%")
    assert table.rows[-1][:2] == ("pwrite", "4") and table.rows[-1][9] == "2,000"
    assert table.rows[0][6] == "148"


def test_goals_are_judged_row_by_row():
    """250 of 240; 1710 of 1800, which is the limit; 1800 of 2000, the limit; 2 to 5 %."""
    goals = scales_tables.goals(FOUND)
    assert [(goal.pes, goal.against, goal.outcome) for goal in goals] == [
        (4, "offset-guard", "met"), (4, "offset-guard", "met"),
        (4, "offset-guard", "not distinguishable"), (2, "not traced", "not distinguishable")]
    worse = scales_tables.Found([*FOUND.rows, row("direct", 8, 300, 1000),
        row("posix", 8, 200, 1100)], FOUND.peers)
    assert {goal.what: goal.outcome for goal in scales_tables.goals(worse) if goal.pes == 8} == {
        "direct / fastest other, with encoding": "met",
        "direct / fastest other, writing alone": "MISSED",
        "best writer / plain pwrite, writing alone": "MISSED"}


@pytest.mark.parametrize(("mine", "theirs", "outcome"), [
    ((1, 1, 1), (1, 1.02, 1.04), "met"),
    ((1, 1, 1), (1, 1.02, 1.3), "not distinguishable"),
    ((1, 9, 1), (1.1, 9.9, 1.1), "MISSED"),  # both are quicker in the second repetition
    ((1, 1), (1.1, 1.1), "too few runs: 3 are needed"),
])
def test_repetitions_are_compared_one_by_one(mine, theirs, outcome):
    rows = [row("direct", 4, 100, 100, mine), row("posix", 4, 100, 100, theirs),
        row("serial", 1, 900, 900)]
    assert [goal.outcome for goal in scales_tables.goals(scales_tables.Found(rows))][:2] == [
        outcome] * 2


def test_the_table_of_goals_says_what_each_row_is():
    rows = [row("direct", 8, 300, 1000), row("posix", 8, 200, 1100)]
    table = scales_goals.table(scales_goals.judged(rows, [0.01, 0.02, 0.01]))
    assert table.rows[1] == ("direct / fastest other, writing alone", "memory", "8", "posix",
        ">= 0.95", "0.91", "0.91 to 0.91", "3", "MISSED", "")
    assert table.rows[3][4:] == ("<= 0.03", "0.01", "0.01 to 0.02", "3", "met", "")
    assert table.remarks[0] == "2 met, 2 MISSED"


def test_an_interval_has_the_median_of_all_possible_repetitions():
    """At 95 %, of six values or more: order statistics of a table of the binomial distribution."""
    assert interval([3, 1, 2]) == (1, 3) and interval([5]) == (5, 5)
    assert interval(range(1, 9)) == (1, 8) and interval(range(1, 10)) == (2, 8)
    assert interval(range(1, 21)) == (6, 15)


def test_curves_begin_with_the_serial_writer():
    curves = scales_tables.curves([*FOUND.rows, row("direct", 8, 300, 1000)])
    one = curves["Direct offsets, io_uring if allowed"].curves[0]
    assert [point.run.ranks for point in one.points] == [1, 4, 8]
    assert one.points[1].speedup == pytest.approx(2.5)


def test_a_profile_adds_up_ranks():
    rows = [{"rank": rank, "routine": routine, "seconds": seconds} for rank, routine, seconds in (
        (0, "output", 10.0), (1, "output", 10.0), (0, "encode", 6.0), (0, "MPI_Wait", 0.01),
        (1, "MPI_Probe", 9.5))]
    found = scales_beside.profile_of(scales.BY_NAME["offset-guard"], 2, rows)
    assert [(line.routine, line.seconds, line.pes) for line in found.lines] == [
        ("MPI_Probe", 9.5, 1), ("encode", 6.0, 1)]
    table = scales_tables.profile(found)
    assert table.rows[0] == ("output", "20.00", "100%", "2", "10.000", "100%")
    assert table.rows[1] == ("MPI_Probe", "9.50", "48%", "1", "9.500", "95%")
    with pytest.raises(RunFailed, match="no phase output"):
        scales_beside.profile_of(scales.BY_NAME["direct"], 2, rows[2:])


def test_messages_are_counted_and_what_is_none_is_found(tmp_path):
    message = b"GRIB" + bytes(4) + (28).to_bytes(8, "big") + bytes(8) + b"7777"
    (tmp_path / "a.grb").write_bytes(2 * message)
    [counts] = scales.digests(tmp_path).values()
    assert list(counts.values()) == [2]
    (tmp_path / "a.grb").write_bytes(message + bytes(28))
    with pytest.raises(RunFailed, match="no GRIB message at byte 28"):
        scales.digests(tmp_path)


def test_methods_have_the_roles_of_the_reference():
    roles = {(name, pes): (scales.BY_NAME[name].collectors(pes), scales.BY_NAME[name].writers(pes))
        for name, pes in scales.PUBLISHED}
    assert roles["offset-guard", 16] == (15, 15) and roles["posix", 32] == (31, 1)
    assert roles["mpi-shared", 8] == (8, 8)
    each = scales.BY_NAME["posix-files"]
    assert (each.collectors(16), each.writers(16)) == (8, 8)
    assert (each.collectors(32), each.writers(32)) == (22, 10)


@pytest.mark.parametrize(("options", "message"), [
    ({"pes": (0,)}, "numbers from 1 to 64"),
    ({"only": ("cdi",)}, "not cdi"),
    ({"places": ("tape",)}, "memory, disk, not tape"),
    ({"scale": 0}, "--scale: expected a number above 0"),
    ({"writing": 11}, "--writing: expected a number above 0"),
    ({"nlat": 1}, "--nlat: 2 to 10000"),
    ({"minutes": 0}, "--minutes: expected"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        scales.check(scales.Options(**options))


def test_a_row_has_what_was_reached_in_time(tmp_path, monkeypatch):
    """Plain pwrite has its turn in each repetition; a row without a second one keeps the first."""
    bench = object.__new__(scales.Bench)
    bench.options = scales.Options(pes=(2,), only=("direct", "posix"), repeat=2)
    bench.note, bench.journal = (lambda text: None), Journal({}, None)
    bench.steps, bench.writing_steps, bench.floors = 2, 5, defaultdict(list)
    bench._expected, asked = {}, []

    def call(writer, io, ranks, directory, *more, trace=None, steps=None):
        if len(asked) == 8:
            raise TimeOver("not reached")
        asked.append((writer, steps))
        return {"mb_s": 100.0 if writer == "pwrite" else 90.0, "cpu_s_per_gb": 1.0}

    bench.call = call
    monkeypatch.setattr(scales, "digests", lambda directory: {})
    rows = {row.method.name: row for row in bench.rows("memory", tmp_path)}
    assert asked == [("pwrite", 5), ("direct", 2), ("direct", 5), ("posix", 2), ("posix", 5),
        ("pwrite", 5), ("direct", 2), ("direct", 5)]
    assert rows["direct"].error == "" and rows["posix"].error == "not reached"
    assert rows["posix"].writing["of_pwrite"].median == 0.9
    text = "\n".join(text_lines(scales_tables.rates(list(rows.values()), [], "memory")))
    assert "90%" in text
    assert ("POSIX writer, fwrite on 2 PEs: fewer repetitions: not reached"
        in " ".join(text.split()))


def test_runs_of_an_older_file_of_resume_lack_figures():
    """Those that all runs have are kept, whichever came first."""
    old, new = {"mb_s": 1.0}, {"mb_s": 3.0, "others": 0.5}
    for runs in ((old, new), (new, old)):
        assert scales.spreads(runs) == {"mb_s": Spread.of([run["mb_s"] for run in runs])}
    rows = [row("direct", 4, 100, 100), row("posix", 4, 90, 90)]
    assert {goal.others for goal in scales_goals.judged(rows)} == {None}


def test_processors_that_others_used_leave_out_the_own_program(monkeypatch):
    """Of 2 s the machine was busy for 4 s of two processors, 1 s of them by the program."""
    for busy, used in ((14.0, 1.5), (10.5, 0)):
        times = iter([(0.0, 10.0, 1.0), (2.0, busy, 2.0)])
        monkeypatch.setattr(scales.Others, "_now", staticmethod(lambda: next(times)))  # noqa: B023
        with scales.Others() as others:
            pass
        assert others.used == used


def test_many_rows_without_figures_are_counted_and_refusals_of_io_uring_are_named():
    rows = [scales.Row(scales.BY_NAME["posix"], pes, "memory", error="not reached")
        for pes in (2, 4, 8, 16, 17, 18, 19)]
    direct = row("direct", 4, 100, 100)
    direct.encoding["refused"] = Spread.of([4, 0])
    assert scales_tables.rates([*rows, direct], [], "memory").remarks == (
        "7 rows: no figure: not reached",
        "Direct offsets, io_uring if allowed on 4 PEs: by pwrite, as io_uring was refused here")


def test_the_end_says_what_was_not_reached_and_why_the_status_is_1():
    assert scales_tables.ending(scales_tables.Found([row("direct", 4, 250, 1990)])) == []
    short = scales_tables.Found([row("posix", 8, 90, 1100), row("direct", 8, 300, 1000)],
        left="windows, nodes: not run: the limit of 4 minutes was reached")
    assert scales_tables.ending(short) == ["windows, nodes: not run: the limit of 4 minutes was reached",
        "exit status 1: some runs are missing (the lines below each table name them) and 2 rows missed "
        "a goal"]


def test_curves_are_drawn_of_rows_that_have_enough_runs():
    few = [row("serial", 1, 100, 900, (1, 1)), row("direct", 4, 250, 1710, (1, 1))]
    assert scales_tables.curves(few) == {}
    assert list(scales_tables.curves(FOUND.rows)) == [
        "Offset guard, fwrite", "Direct offsets, io_uring if allowed"]


def test_a_page_names_the_runs_that_it_shows():
    about = scales_tables.about(scales.Options(), "mpich", 18, FOUND)
    assert "40 variables" in about and "mpich; medians of 3 runs" in about and "cores, " in about
