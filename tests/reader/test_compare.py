# SPDX-License-Identifier: Apache-2.0
"""weir compare: runs of 2 and 4 ranks with known figures, files that are matched, thresholds and
what the command returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_trace import GoldenTrace
from hypothesis import given, settings
from hypothesis import strategies as st

from weir._errors import InputError, UsageError
from weir.analysis.totals import Totals
from weir.compare.compute import (
    Side, StepPair, check, home_directories, match_files, parse_threshold,
)  # fmt: skip
from weir.compare.table import compare, comparison_json, comparison_tables
from weir.report import build, report_json
from weir.report.files.compute import FileTotals

MS = 10**6
SETTINGS = settings(max_examples=100)


def write_run(run: Path, ranks: int, *, slow: int = 1, directory: str = "/scratch/an",
        extra: str = "", steps=("traj0", "min0")) -> Path:
    """Each rank writes a file of its own in traj0 (1000 bytes in 10 ms, rank 0 `slow` times as
    long) and reads it in min0 (2 ms). Rank 0 also reads init in traj0: 4 requests of 500 bytes, 1
    ms each."""
    trace = GoldenTrace(run)
    for step, wall in (("traj0", 2), ("min0", 1)):
        if step not in steps:
            continue
        trace.line(f"step {step} wall={wall}")
        trace.line("node n0")
        for rank in range(ranks):
            trace.line(f"process pid={100 + rank} rank={rank} ranks={ranks}")
            if step == "traj0":
                trace.line(f"write {directory}/out/trajL{rank + 1:03} at=0 "
                           f"for={10 * MS * (slow if rank == 0 else 1)} bytes=1000")
                trace.line(f"read {directory}/init at=200000000 for=1000000 bytes=500 x=4"
                    if rank == 0 else f"stat {directory}/init at=0 for=0")
            else:
                trace.line(f"read {directory}/out/trajL{rank + 1:03} at=0 for={2 * MS} bytes=1000")
        for line in extra.splitlines():
            trace.line(line)
    trace.close()
    return run


@pytest.fixture
def runs(tmp_path) -> tuple[Path, Path]:
    """2 ranks against 4, whose first one is five times as slow at writing."""
    return write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 4, slow=5)


def compared(runs, **options):
    return comparison_json(compare(*map(build, runs), **options))


def figure(made: dict, name: str, step: str = "TOTAL") -> tuple:
    pair = made["total"] if step == "TOTAL" else next(one for one in made["steps"]
        if one["name"] == step)
    found = pair["figures"][name]
    return found["a"], found["b"], found["ratio"]


def test_totals_and_means_over_the_ranks(runs):
    made = compared(runs)
    assert figure(made, "bytes", "traj0") == (4000, 6000, 1.5)
    assert figure(made, "bytes/rank", "traj0") == (2000, 1500, 0.75)
    assert figure(made, "calls", "traj0") == (7, 11, 11 / 7)
    assert figure(made, "seconds", "traj0") == pytest.approx((0.024, 0.084, 3.5))
    assert figure(made, "seconds/rank", "traj0") == pytest.approx((0.012, 0.021, 1.75))
    assert figure(made, "seconds") == pytest.approx((0.028, 0.092, 0.092 / 0.028))
    assert figure(made, "seconds/rank") == pytest.approx((0.014, 0.023, 0.023 / 0.014))
    assert figure(made, "wall") == (3.0, 3.0, 1.0)
    assert figure(made, "active", "min0") == pytest.approx((0.002, 0.002, 1))
    assert figure(made, "files") == (3, 5, 5 / 3)


def test_a_figure_that_is_0_in_both_runs_has_no_ratio(tmp_path):
    runs = [write_run(tmp_path / name, 2) for name in "ab"]
    pair = compare(*map(build, runs))
    tables = {table.title: table for table in comparison_tables(pair)}
    routines = tables["Routines, all ranks"]
    stat = next(row for row in routines.rows if row[0] == "stat")
    assert stat[1:4] == ("1", "1", "1.00")
    assert stat[4:7] == stat[7:10] == ("0.000", "0.000", "-")
    found = parse_threshold("critical>1.1")
    side = Side(1, 1, Totals(0, 0, 0, 0), (), 0, 0)
    assert check(found, [], StepPair("TOTAL", side, side)) == [(found, "TOTAL", 0.0, 0.0, 1.0)]


def test_imbalance_is_the_busiest_rank_over_the_mean(runs):
    made = compared(runs)
    assert figure(made, "imbalance", "traj0")[:2] == pytest.approx((14 / 12, 54 / 21))
    assert figure(made, "imbalance", "min0")[:2] == (1, 1)
    sides = made["steps"][0]
    assert (sides["a"]["ranks"], sides["b"]["ranks"], sides["b"]["busiest_rank"],
        sides["b"]["busiest_s"]) == (2, 4, 0, 0.054)


def test_the_figures_are_those_of_the_reports(runs):
    made = compared(runs)
    for side, run in zip("ab", runs):
        report = report_json(build(run))
        for step in report["steps"]:
            pair = next(one for one in made["steps"] if one["name"] == step["name"])["figures"]
            assert [pair[key][side] for key in ("wall", "active", "seconds", "calls", "bytes",
                "files")] == [
                step["wall_s"], step["active_s"],
                *(step["all"][key] for key in ("seconds", "calls", "bytes", "files"))
            ]  # fmt: skip
        files = [one[side] for one in made["files"] if one[side] is not None]
        for key in ("calls", "bytes_read", "bytes_written"):
            assert sum(one[key] for one in files) == sum(one[key] for one in report["files"])
        assert sum(one["seconds"] for one in files) == pytest.approx(sum(one["seconds"]
            for one in report["files"]))


def test_files_of_different_numbers_of_ranks_are_matched_by_pattern(runs):
    made = {one["file"]: one for one in compared(runs)["files"]}
    assert set(made) == {"init", "out/trajL<N>"}
    per_rank = made["out/trajL<N>"]
    assert (per_rank["a"]["files"], per_rank["b"]["files"]) == (2, 4)
    assert (per_rank["a"]["bytes_written"], per_rank["b"]["bytes_written"]) == (2000, 4000)
    assert per_rank["seconds_grown"] == pytest.approx(0.088 - 0.024)
    assert (made["init"]["a"], made["init"]["seconds_grown"]) == (made["init"]["b"],
        0) or made["init"]["b"]["calls"] == made["init"]["a"]["calls"] + 2


def test_names_are_matched_below_the_working_directories_or_other_directories_or_absolute(tmp_path):
    """Where the second run's directory is another one, where its job was started elsewhere, and
    where that alone is different."""
    a, b, c = (write_run(tmp_path / name, 2, directory=directory)
        for name, directory in (("a", "/scratch/an"), ("b", "/disk/x"), ("c", "/scratch/an")))
    d = write_run(tmp_path / "d", 2, directory="/disk/x")
    for run, cwd in ((b, "/disk/x"), (c, "/scratch"), (d, "/")):
        for directory in run.iterdir():
            job = json.loads((directory / "job.json").read_text())
            (directory / "job.json").write_text(json.dumps({**job, "cwd": cwd}))
    names = {"init", "out/trajL001", "out/trajL002"}
    for other, names in ((b, names), (c, {f"/scratch/an/{name}" for name in names}), (d, names)):
        made = compared((a, other))["files"]
        assert {one["file"] for one in made} == names and all(one["a"] == one["b"] for one in made)


def test_the_total_is_of_steps_that_both_have(tmp_path, runs):
    other = write_run(tmp_path / "c", 2, steps=("min0",))
    made = compared((runs[0], other))
    assert [(one["name"], one["a"] is None, one["b"] is None) for one in made["steps"]] == [
        ("traj0", False, True), ("min0", False, False)]
    assert figure(made, "bytes") == figure(made, "bytes", "min0") == (2000, 2000, 1)
    text = "\n".join(remark for table in comparison_tables(compare(build(runs[0]), build(other)))
        for remark in table.remarks)
    assert "without traj0" in text


def test_single_steps_of_any_name_are_compared(runs):
    made = comparison_json(compare(build(runs[0] / "traj0"), build(runs[1] / "min0")))
    assert [one["name"] for one in made["steps"]] == ["traj0/min0"]


@pytest.mark.parametrize("steps", [["min0"], ["min0", "traj0"]])
def test_chosen_steps_alone(runs, steps):
    assert {one["name"] for one in compared(runs, steps=steps)["steps"]} == set(steps)


def test_steps_that_cannot_be_compared_are_an_error(tmp_path, runs):
    with pytest.raises(InputError, match="no step 'x'; it has traj0, min0"):
        compared(runs, steps=["x"])
    trace = GoldenTrace(tmp_path / "c")
    for line in ("step u wall=1", "node n0", "process pid=1", "step v wall=1", "node n0",
            "process pid=1"):
        trace.line(line)
    trace.close()
    with pytest.raises(InputError, match="no step in common: traj0, min0 against u, v"):
        compared((runs[0], tmp_path / "c"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seconds>1.1", (None, "seconds", ">", 1.1, False)),
        ("seconds > 110%", (None, "seconds", ">", 1.1, False)),
        ("seconds>+10%", (None, "seconds", ">", 1.1, False)),
        ("bytes<-5%", (None, "bytes", "<", 0.95, False)),
        ("wall>=+5", (None, "wall", ">=", 5.0, True)),
        ("traj0:seconds/rank<=0.5", ("traj0", "seconds/rank", "<=", 0.5, False)),
        ("*:calls>-3", ("*", "calls", ">", -3.0, True)),
        ("a:b:imbalance>2", ("a:b", "imbalance", ">", 2.0, False)),
    ],
)
def test_thresholds_are_read(text, expected):
    one = parse_threshold(text)
    assert (one.step, one.figure, one.sign, pytest.approx(one.limit), one.is_difference) == expected


@pytest.mark.parametrize("text", ["", "seconds", "seconds>", "seconds=1", "second>1", ">1",
    "seconds>1.1.1", "seconds>1 s", "wall>e", "wall>++1"])
def test_wrong_thresholds_are_refused(text):
    with pytest.raises(UsageError, match="--fail-if"):
        parse_threshold(text)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("bytes/rank>1", False), ("bytes/rank<0.9", True), ("calls>+4", True), ("calls>+6", False),
        ("traj0:seconds>3.4", True),
        ("traj0:seconds>3.6", False), ("*:seconds>3.4", True), ("min0:seconds/rank>1", False),
        ("wall>1", False), ("wall>=1", True),
    ],
)  # fmt: skip
def test_thresholds_hold_or_fail(runs, text, fails):
    made = compare(*map(build, runs), thresholds=[parse_threshold(text)])
    assert bool(made.failed) is fails


def test_what_came_from_nothing_has_grown_without_limit(tmp_path):
    nothing = tmp_path / "a"
    trace = GoldenTrace(nothing)
    for line in ("step s wall=1", "node n0", "process pid=1 rank=0 ranks=1"):
        trace.line(line)
    trace.close()
    runs = (build(nothing), build(write_run(tmp_path / "b", 1) / "traj0"))
    made = compare(*runs, thresholds=[parse_threshold("seconds>1000")])
    assert [one.is_passed for one in made.findings] == [True]
    assert json.loads(json.dumps(comparison_json(made),
        allow_nan=False))["thresholds"][0]["measured"] is None
    assert not compare(runs[0], runs[0], thresholds=[parse_threshold("seconds>1")]).failed


def test_a_figure_that_is_not_known_is_an_error_and_so_is_a_step(tmp_path, runs):
    detail = write_run(tmp_path / "c", 2)
    one = compare(build(runs[0]), build(detail))
    with pytest.raises(UsageError, match="no step 'x' is compared; these are: traj0, min0"):
        check(parse_threshold("x:wall>1"), one.steps, one.total)
    trace = GoldenTrace(tmp_path / "d")
    for line in ("step s wall=1", "node n0 level=2", "process pid=1",
            "counter read /scratch/an/a calls=2 bytes=1 for=5 at=0"):
        trace.line(line)
    trace.close()
    with pytest.raises(InputError, match="active of TOTAL is not known in the first run"):
        compare(build(tmp_path / "d"), build(runs[0] / "min0"),
            thresholds=[parse_threshold("active>1")])


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ([], 0), (["--fail-if", "bytes>2"], 0), (["--fail-if", "bytes>2", "--fail-if", "seconds>2"],
            1), (["--fail-if", "nonsense>1"], 2),
        (["--step", "nonsense"], 3), (["--step", "min0", "--fail-if", "seconds>2.5"], 0),
    ],
)  # fmt: skip
def test_the_exit_status(weir, runs, options, status):
    done = weir("compare", *runs, *options)
    assert done.returncode == status, done.stderr
    if status == 1:
        assert done.stderr == "weir: TOTAL: seconds>2: A 0.028, B 0.092, B/A 3.28571: FAILED\n"
        assert "FAILED" in done.stdout
    if status in (2, 3):
        assert "nonsense" in done.stderr and done.stdout == ""


def test_an_incomplete_trace_is_status_4_unless_a_threshold_is_passed(weir, runs, tmp_path):
    torn = write_run(tmp_path / "c", 4,
        extra="counter read /scratch/an/init calls=5 bytes=9 for=5 at=0")
    done = weir("compare", runs[0], torn)
    assert done.returncode == 4 and "note: B: INCOMPLETE" in done.stdout
    assert weir("compare", runs[0], torn, "--fail-if", "calls>1").returncode == 1


def test_the_tables_and_json_of_the_command(weir, runs):
    text = weir("compare", *runs).ok().stdout
    for title in ("Time: A is", "Volume, all ranks", "Per rank, mean", "Routines, all ranks",
            "Files whose time grew most", "Files whose requests or bytes changed"):
        assert title in text
    assert "out/trajL<N>" in text
    made = json.loads(weir("compare", *runs, "--json", "--fail-if", "wall>2").ok().stdout)
    assert (made["failed"], made["complete"], [one["failed"] for one in made["thresholds"]]) == (
        False, True, [False])


word = st.text("ab/.-0123", min_size=1, max_size=6)
sides = st.dictionaries(word, st.tuples(*[st.integers(0, 5)] * 4), max_size=10)


@SETTINGS
@given(sides, sides)
def test_every_file_is_in_one_pair_and_sums_stay(a, b):
    of_a, of_b = ({name: FileTotals(name, *figures, ()) for name, figures in side.items()}
        for side in (a, b))
    pairs = match_files(of_a, of_b)
    for side, given_files in (("a", of_a), ("b", of_b)):
        assert sum(getattr(pair, side).files for pair in pairs) == len(given_files)
        for key in ("calls", "bytes_read", "bytes_written", "ns"):
            assert sum(getattr(getattr(pair, side), key) for pair in pairs) == sum(getattr(one,
                key) for one in given_files.values())
    by_text = {pair.text: pair for pair in pairs}
    if a.keys() == b.keys():
        assert by_text.keys() == a.keys()
    for name in a.keys() & b.keys():
        if not any(letter.isdigit() for letter in name):
            assert by_text[name].a.files == by_text[name].b.files == 1


def test_only_the_numbers_that_differ_become_letters():
    def side(ranks: int) -> dict[str, FileTotals]:
        return {name: FileTotals(name, 1, 0, 0, 1, ()) for i in (0, 1) for rank in range(ranks)
            for name in [f"TRAJHR0{i}/specL{rank:03}"]}

    assert [(pair.text, pair.a.files, pair.b.files) for pair in match_files(side(4), side(8))] == [
        ("TRAJHR00/specL<N>", 4, 8),
        ("TRAJHR01/specL<N>", 4, 8),
    ]
    assert len(match_files(side(4), side(4))) == 8
    assert [(pair.text, pair.b.files) for pair in match_files(side(2), {})] == [
        ("TRAJHR<N>/specL<M>", 0)]


def test_separators_of_time_stamps_do_not_part_files():
    def side(form: str) -> dict[str, FileTotals]:
        hours = [form.format(day, hour) for day in (1, 2) for hour in (0, 6)]
        return {f"wrfout_{name}.nc": FileTotals(name, 1, 0, 8, 1, ()) for name in (*hours, "last")}

    with_colons, without = side("d01_2020-01-0{}_0{}:00:00"), side("d01_2020-01-0{}_0{}_00_00")
    pairs = match_files(with_colons, without)
    assert [(pair.a.files, pair.b.files) for pair in pairs] == [(1, 1)] * 5
    assert len(match_files(with_colons, side("d01_2020.01.0{}_0{}.00.00"))) == 5
    for compact in ("d01_2020010{}T0{}0000", "d01_2020010{}_0{}0000"):
        assert len(match_files(with_colons, side(compact))) == 5
    both = {**with_colons, **without}  # two files each, in one run
    assert sum(pair.a.files for pair in match_files(both, without)) == 9
    assert sum(pair.b.files for pair in match_files(both, without)) == 5
    apart = ({f"/{run}/out/{name}": 8 for name in side_of} for run, side_of in (("x", with_colons),
        ("y", without)))
    assert home_directories(*apart) == ("/x", "/y")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (["/x/1/a", "/x/1/d/b", "/etc/c"], ["/y/2/a", "/y/2/d/b", "/etc/c"], ("/x/1", "/y/2")),
        (["/etc/c"], ["/etc/c"], None),
        (["/x/a"], ["/x/b"], None),
        (["/x/a", "/x/b", "/p/c"], ["/y/a", "/y/b", "/q/c"], ("/x", "/y")),
        ([f"/x/{i}/a" for i in range(9)], [f"/y/{i}/a" for i in range(9)], None),
    ],
)
def test_directories_that_have_most_names_in_common(a, b, expected):
    assert home_directories(dict.fromkeys(a, 0), dict.fromkeys(b, 0)) == expected


def test_directories_where_bytes_moved_come_before_those_with_many_names():
    """As those that an MPI library makes for each run."""
    a, b = ({f"/tmp/mpi.{run}/{name}": 0 for name in "abcdefgh"} | {f"/job/{run}/out": 1}
        for run in "xy")
    assert home_directories(a, b) == ("/job/x", "/job/y")


def test_output_of_runs_in_different_directories_is_matched_whatever_the_mpi_library_makes(
        tmp_path):
    session = ["\n".join(f"stat /tmp/mpi.{run}/{letter} at=0 for=1000"
        for letter in "abcdefghijklmnopqrstuvwxyz") for run in "ab"]
    runs = [write_run(tmp_path / run, 2, directory=f"/scratch/{run}", extra=extra)
        for run, extra in zip("ab", session)]
    found = {one["file"]: one for one in compared(runs)["files"]}
    assert found["out/trajL001"]["a"] == found["out/trajL001"]["b"] == {"files": 1, "calls": 2,
        "bytes_read": 1000, "bytes_written": 1000, "seconds": 0.012}
    assert not [name for name, one in found.items() if "traj" in name and None in (one["a"],
        one["b"])]


def test_what_the_figures_leave_out_comes_below_them(weir, tmp_path):
    for name, inputs in (("a", "/etc/passwd"), ("b", "/etc/passwd /etc/group")):
        weir("trace", "-q", "-o", tmp_path / name, "--", "sh", "-c", f"cat {inputs} > out",
            cwd=tmp_path).ok()
    lines = weir("compare", tmp_path / "a", tmp_path / "b").stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("note: A: left out: "))
    assert [line for line in lines[first:] if line and not line.startswith((
        "note: A: left out: ", "note: B: left out: ", "  "))] == []
    assert any(line.startswith("Files whose") for line in lines[:first])
