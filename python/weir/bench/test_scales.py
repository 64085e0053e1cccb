# SPDX-License-Identifier: Apache-2.0
"""Tables, profile and goals of ``weir bench scales`` from known figures."""

from __future__ import annotations

from collections import defaultdict

import pytest

from weir._errors import UsageError
from weir.bench import scales, scales_beside, scales_tables
from weir.bench._journal import Journal, TimeOver
from weir.bench._process import RunFailed
from weir.bench._statistics import Spread
from weir.report.frame.table import text_lines


def row(name: str, pes: int, encoding: float, writing: float) -> scales.Row:
    def figures(mb_s: float) -> dict[str, Spread]:
        known = {"mb_s": mb_s, "elapsed_s": 1000 / mb_s, "encode_s": 2.0, "cpu_s_per_gb": 1.5}
        return {key: Spread(value, value, value) for key, value in known.items()}

    alone = {**figures(writing), "of_pwrite": Spread(writing / 2000, 0, 1)}
    return scales.Row(scales.BY_NAME[name], pes, "memory", figures(encoding), alone)


def peer(name: str, pes: int, mb_s: float) -> scales.Peer:
    return scales.Peer(name, name, pes, "memory", {key: Spread(value, value, value)
        for key, value in {"mb_s": mb_s, "cpu_s_per_gb": 0.4, "bytes": 47e6}.items()})


FOUND = scales_tables.Found(
    [row("serial", 1, 100, 900), row("offset-guard", 4, 240, 1800), row("direct", 4, 250, 1710)],
    [peer("eccodes", 1, 110), peer("pwrite", 4, 2000)], tracing=0.04)


def test_rates_stand_beside_what_was_published():
    table = scales_tables.rates(FOUND.rows, FOUND.peers, "memory")
    assert table.rows[1] == ("Offset guard, fwrite", "4", "3", "3", "240", "2.40", "240", "1.62",
        "1.50", "1,800", "90%")
    assert table.rows[-1][:2] == ("pwrite", "4") and table.rows[-1][9] == "2,000"
    assert table.rows[0][6] == "148"


def test_goals_are_judged_in_their_worst_row():
    goals = {goal.what: goal for goal in scales_tables.goals(FOUND)}
    met = [goal.met for goal in goals.values()]
    # 1800 of 2000; the fastest; 1710 of 1800; 4 %.
    assert met == [True, True, True, False]
    worse = scales_tables.Found([*FOUND.rows, row("direct", 8, 300, 1000),
        row("posix", 8, 200, 1100)], FOUND.peers)
    # 1100 of 2000 on 8 PEs; 1000 of 1100.
    assert [goal.met for goal in scales_tables.goals(worse)] == [False, True, False, None]


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
    assert asked == [("pwrite", 5), ("posix", 2), ("posix", 5), ("direct", 2), ("direct", 5),
        ("pwrite", 5), ("posix", 2), ("posix", 5)]
    assert rows["posix"].error == "" and rows["direct"].error == "not reached"
    assert rows["direct"].writing["of_pwrite"].median == 0.9
    text = "\n".join(text_lines(scales_tables.rates(list(rows.values()), [], "memory")))
    assert "90%" in text
    assert ("Direct offsets, io_uring if allowed on 2 PEs: fewer repetitions: not reached"
        in " ".join(text.split()))
