# SPDX-License-Identifier: Apache-2.0
"""What the output library's bench makes of its runs: rows, goals, refusals. No programs but a
native test's stand-in."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from weir._errors import InputError, UsageError
from weir.bench import wrf, wrf_goals, wrf_input, wrf_tables
from weir.bench._process import RunFailed, run
from weir.bench._programs import Mpi
from weir.bench._statistics import Spread
from weir.report.frame.table import text_lines
from weir.scaling.page import scalings_page


def row(name: str, mb_s: float, **more: object) -> wrf.Row:
    model = {"effective_s": 0.5, "final_s": 0.25, "total_s": 3.0, "percent": 25.0,
        "server_bytes": 30e6, "bytes": 4e8}
    burst = {"mb_s": mb_s, "cpu_s_per_gb": 1.5, "server_bytes": 40e6}
    model, burst = ({key: Spread(value, value / 2, value * 2) for key, value in of.items()}
        for of in (model, burst))
    return wrf.Row(wrf.BY_NAME[name], 4, 1, model, burst, compared=1000, **more)


class Place:
    """A laboratory without programs."""

    def __init__(self, directory, **options):
        self.options = wrf.Options(**options)
        self.build, self.place, self.disk, self.environment = directory, directory, directory, {}
        self.noted = []

    def note(self, text):
        self.noted.append(text)


def goals(directory, *rows, **options) -> wrf_goals.Goals:
    return wrf_goals.Goals(wrf.Bench(Place(directory, **options)), rows)


def test_rates_are_those_back_to_back(tmp_path):
    rows = [row("servers", 1000), row("adios2", 500), row("pnetcdf", 600), row("collective", 1500),
        row("plain", 1100)]
    found = {goal.what: goal for goal in goals(tmp_path, *rows).rates()}
    assert found["a server / ADIOS2 BP4"].value == 2 and found["a server / ADIOS2 BP4"].met is True
    assert found["a server / PnetCDF"].value == pytest.approx(1.667,
        abs=0.001) and found["a server / PnetCDF"].met is False
    assert found["collective / PnetCDF"].met is True
    assert found["a server, tmpfs"].value == 1000


def test_several_servers_are_judged_by_each(tmp_path):
    found = {goal.what: goal.value for goal in goals(tmp_path, row("servers", 1000),
        row("pnetcdf", 600), servers=4).rates()}
    assert found["a server, tmpfs"] == 250 and found["a server / PnetCDF"] == pytest.approx(250
        / 600)


def test_a_writer_that_is_not_there_leaves_its_goals_open(tmp_path):
    found = {goal.what: goal for goal in goals(tmp_path, row("servers", 1000), row("plain", 900))
        .rates()}
    assert found["a server / ADIOS2 BP4"].met is None and found["a server / ADIOS2 BP4"].why
    assert found["a server, tmpfs / plain pwrite by as many"].met is True


@pytest.mark.parametrize(("value", "least", "met"), [(1.15, False, True), (1.16, False, False),
    (1.15, True, True), (1.14, True, False), (None, True, None)])
def test_a_goal_is_met_at_its_limit(value, least, met):
    assert wrf_goals.Goal("x", "", 1.15, least, value).met is met


def test_goals_that_cannot_be_measured_say_why_and_the_others_go_on(tmp_path):
    test = goals(tmp_path, row("servers", 1000), repeat=1)
    for name in ("put", "overlap", "disk", "memory"):
        setattr(test, name, lambda: (_ for _ in ()).throw(InputError("no such thing")))
    found = test.all()
    assert [goal.why for goal in found if goal.what == "put"] == ["no such thing"]
    assert {goal.what: goal.why for goal in found}["plan"] == "weir-plan-time is not built"
    assert any(goal.what == "a server, tmpfs" and goal.value == 1000 for goal in found)


def test_counted_messages_need_the_test_that_counts_them(tmp_path):
    program = tmp_path / "native" / "output" / "output_engine_server_test"
    program.parent.mkdir(parents=True)
    for said, status, value in (("[  PASSED  ] 1 test.", 0, 10_126),
            ("[  PASSED  ] 0 tests.", 0, None), ("[  FAILED  ] 1 test", 1, None)):
        program.write_text(f"#!/bin/sh\necho '{said}'\nexit {status}\n")
        program.chmod(0o755)
        test = goals(tmp_path, row("servers", 1))
        for name in ("put", "overlap", "rates", "disk", "memory", "plan"):
            setattr(test, name, list)
        (goal,) = test.all()
        assert (goal.value, goal.met) == (value, True if value else None)


def test_the_tables_say_everything(tmp_path):
    rows = [row("servers", 1234), wrf.Row(wrf.BY_NAME["netcdf4"], error="left out: not built")]
    text = "\n".join(text_lines(wrf_tables.writers(rows)))
    for cell in ("weir servers", "4+1", "0.500", "3.00", "0.250", "25.0", "1,234", "1.50", "80",
            "1,000"):
        assert cell in text
    assert text.endswith("\nnetCDF-4 parallel: left out: not built") and text.count("netCDF-4") == 1
    found = [wrf_goals.Goal("put", "x", 1.15, False, 1.04), wrf_goals.Goal("rate", "MB/s", 1900,
        True, 1500.0), wrf_goals.Goal("plan", "s", 1, False, None, "why")]
    lines = {line.split()[0]: line for line in text_lines(wrf_tables.goals(found))}
    assert "1.04" in lines["put"] and "<= 1.15" in lines["put"] and lines["put"].split(
        )[-1] == "met"
    assert "MISSED" in lines["rate"] and "not measured: why" in lines["plan"]
    data = wrf_tables.as_data(wrf.Options(), "openmpi", rows, found)
    assert data["writers"][0]["back_to_back"]["mb_s"] == {"median": 1234, "low": 617, "high": 2468,
        "values": ()}
    assert data["writers"][1]["error"] == "left out: not built" and [goal["met"]
        for goal in data["goals"]] == [True, False, None]
    assert data["frames"] == 4 and data["machine"]["cores"] > 0


def test_the_criteria_of_the_reference_are_for_each_number_of_ranks():
    def measured(name: str, ranks: int, total_s: float, percent: float) -> wrf.Row:
        figures = {"effective_s": 2.0, "frames": 4.0, "total_s": total_s, "percent": percent}
        return wrf.Row(wrf.BY_NAME[name], ranks, 1, {key: Spread(value, value, value)
            for key, value in figures.items()}, {})

    rows = [measured("serial", 2, 10, 60), measured("servers", 2, 4, 2.9),
        measured("servers", 4, 6, 3.1), wrf.Row(wrf.BY_NAME["servers+parallel"], 4, error="gone")]
    found = {goal.what: (goal.value, goal.met) for goal in wrf_goals.criteria(rows)}
    assert found == {
        "2 ranks, weir servers: a frame, seen by the model": (0.5, True),
        "2 ranks, weir servers: share of output": (2.9, True),
        "2 ranks, weir servers / weir serial: whole run": (0.4, True),
        "4 ranks, weir servers: a frame, seen by the model": (0.5, True),
        "4 ranks, weir servers: share of output": (3.1, False),
    }


def test_input_has_a_row_for_each_mode_and_a_wrong_value_is_an_error(tmp_path):
    class Programs(Place):
        def absent(self, way):
            return ""

        @contextmanager
        def fresh(self):
            yield tmp_path

        def call(self, way, ranks, servers=0, directory=None, **more):
            asked.append((way.name, ranks, servers, more.get("check", 0)))
            if way.name == "collective" and more.get("check") == 1:
                raise RunFailed("weir_d01_000.nc: has other values")
            return {"bytes": 4e8, "effective_s": 0.5, "total_s": 2.0}

    asked = []
    rows = wrf_input.Input(Programs(tmp_path, repeat=2), 4, 1).rows()
    found = {row.way.name: row for row in rows}
    assert list(found) == ["serial", "collective", "servers", "servers+parallel", "plain"]
    assert found["collective"].error == "weir_d01_000.nc: has other values"
    assert found["servers"].compared == 2e8 and found["plain"].compared == 0
    assert asked[:4] == [("serial", 4, 0, 0), ("serial", 4, 0, 1), ("serial", 1, 0, 0),
        ("serial", 4, 0, 1)]
    assert ("servers+parallel", 4, 2, 2) in asked and ("read", 4, 0, 2) in asked
    text = "\n".join(text_lines(wrf_input.table(list(found.values()))))
    assert "weir servers+parallel" in text and "4+2" in text and "800" in text
    assert "weir collective: weir_d01_000.nc: has other values" in text


def test_the_header_has_the_domains():
    text = wrf_tables.header(wrf.Options(scale=1.0), "mpich", 5.93e9)
    assert (
        "1770 x 1986 and 2974 x 3118 points" in text
        and "5,930 MB a frame" in text
        and "sleeps" in text
    )


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"scale": 0}, "--scale"),
        ({"scale": 11}, "--scale"),
        ({"ranks": 0}, "--ranks"),
        ({"servers": 0}, "--servers"),
        ({"steps": 0}, "--steps"),
        ({"steps": 2000, "every": 1}, "--steps"),
        ({"repeat": 0}, "--repeat"),
        ({"compute": "dream"}, "--compute"),
        ({"interval_s": -1}, "--interval"),
        ({"only": ("serial", "xios")}, "xios"),
    ],
)
def test_what_cannot_be_run_is_refused(options, names):
    assert wrf.check(wrf.Options()) == wrf.Options()
    with pytest.raises(UsageError, match=names):
        wrf.check(wrf.Options(**options))


def test_a_row_failed_is_not_a_figure(tmp_path):
    bench = wrf.Bench(Place(tmp_path))
    failed = bench._row(wrf.BY_NAME["servers"], [{"total_s": 1.0}], [], 0, "status 1")
    assert failed.error == "status 1" and failed.rate() is None and failed.servers == 1
    assert bench.servers_of(wrf.BY_NAME["servers+parallel"]) == 2 and bench.ranks_of(
        wrf.BY_NAME["plain"]) == 1


def test_what_a_program_calls_an_error_goes_before_what_its_launcher_says(tmp_path):
    with pytest.raises(RunFailed, match="status 3: error: the disk is full"):
        run(["sh", "-c", "echo 'error: the disk is full' >&2; echo 'one of your processes has "
                         "died' >&2; exit 3"], {}, tmp_path, 10)


def test_overlap_is_judged_by_the_quickest_runs(tmp_path):
    test = goals(tmp_path, row("servers", 1), repeat=3)
    seconds = {"none": iter([4.0, 2.0, 9.0]), "weir": iter([2.03, 7.0, 5.0])}
    test.bench._spin = 1000
    test.lab.call = lambda way, *_, **__: {"compute_cpu_s": next(seconds[way.program])}
    test._servers = lambda *_, **__: {"compute_cpu_s": next(seconds["weir"])}
    (goal,) = test.overlap()
    assert goal.value == pytest.approx(1.5) and goal.met is False


def test_plans_are_what_one_rank_and_an_owner_need(tmp_path):
    text = (
        "scattered   10000000 points   64 ranks: ranks 6.400 s, owner 0.700 s, plan 160005120 "
        "bytes, staging 39996344 bytes\n"
    )
    assert wrf_goals.plan_seconds(text, 64) == {"scattered": pytest.approx(0.8)}
    with pytest.raises(RunFailed, match="no figures"):
        wrf_goals.plan_seconds("", 64)
    program = tmp_path / "native" / "output" / "weir-plan-time"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\nfor kind in block scattered; do echo "$kind $1 points $2 ranks: ranks ${1}.0 '
        's, owner 0 s, plan"; done\n')
    program.chmod(0o755)
    found = goals(tmp_path, row("servers", 1), repeat=2).plan()
    assert [goal.value for goal in found] == [10_000_000 / 64, 10_000_000 / 64,
        10] and [goal.met for goal in found] == [False, False, True]


def test_a_writer_that_is_not_installed_says_what_it_needs(tmp_path):
    lab = object.__new__(wrf.Laboratory)
    lab.build, lab.mpi, lab.adios2 = tmp_path, Mpi("mpich", ("mpirun",)), None
    assert lab.absent(wrf.BY_NAME["pnetcdf"]).startswith(
        "left out: wrf-pnetcdf is not built for mpich; it needs libpnetcdf-dev")
    for way in wrf.WAYS:
        lab.program(way.program).parent.mkdir(parents=True, exist_ok=True)
        lab.program(way.program).touch()
    assert {way.name for way in wrf.WAYS if lab.absent(way)} == {"adios2"}
    assert "the Python package adios2 is not installed" in lab.absent(wrf.BY_NAME["adios2"])


def test_writers_on_several_numbers_of_ranks_have_curves():
    times = {"total_s": Spread(4.0, 4.0, 4.0), "effective_s": Spread(1.0, 1.0, 1.0),
        "final_s": Spread(2.0, 2.0, 2.0)}
    half = {key: Spread(one.median / 2, 1, 1) for key, one in times.items()}
    rows = [wrf.Row(wrf.BY_NAME[name], ranks, 1, {}, burst) for name in ("servers", "plain")
        for ranks, burst in ((1, times), (2, half), (4, half))]
    [(title, curve)] = wrf_tables.curves([*rows, wrf.Row(wrf.BY_NAME["gather"], 1, error="x")]
        ).items()
    assert title == "weir servers" and curve.curves[0].stop.before.ranks == 2
    assert curve.reference.parts_ns == {"visible to the model": 10**9,
        "end of the output": 2 * 10**9, "(rest)": 10**9}
    assert wrf_tables.curves(rows[:1]) == {}


def test_a_page_of_one_number_of_ranks_has_its_tables_without_curves():
    """Goals of frames that are smaller than theirs say so."""
    rows, found = [row("servers", 1)], [wrf_goals.Goal("put", "x", 1.15, False, 1.04)]
    small = wrf_tables.tables(wrf.Options(scale=0.002), rows, found)
    assert "the goals are for frames of --scale 0.02 or more" in small[-1].remarks[0]
    large = wrf_tables.tables(wrf.Options(), rows, found)
    assert not large[-1].remarks
    page = scalings_page({}, 0.1, large, "WRF output benchmark")
    assert "weir servers" in page and "1.04" in page and "0 to 0 ranks" not in page
