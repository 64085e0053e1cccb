# SPDX-License-Identifier: Apache-2.0
"""The tables of the four cases: what is computed from runs, and how it is shown. No programs."""

from __future__ import annotations

import pytest

from weir._errors import InputError, UsageError
from weir.bench import nersc, nersc_tables, reference
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import build_directory, choose_mpi
from weir.bench._statistics import Spread
from weir.bench.cases import CASES, RANKS


def measured(requests: float, size: float = 1e6) -> dict[str, Spread]:
    values = {"requests": requests, "bytes": size, "io_wait_s": 1.5, "mpp_s": 3.0,
        "elapsed_s": 0.75}
    return {name: Spread.of([value * 2, value, value / 2]) for name, value in values.items()}


def table(number: str, ranks: int, **rows: dict[str, Spread] | str) -> nersc.Table:
    """Rows by name with `_` for what a keyword cannot have; a text is an error."""
    case = CASES[number](ranks, 1)
    found = []
    for variant in case.variants:
        value = rows[variant.name.split(":")[0].replace(" ", "_").replace(",", "")]
        error = value if isinstance(value, str) else ""
        found.append(nersc.Row(variant.name, ranks, variant.stack, {} if error else value, error))
    return nersc.Table(case, tuple(found))


def test_every_reference_row_is_one_that_is_run():
    for number, rows in reference.ROWS.items():
        for spec, ranks in rows:
            for n in RANKS[number] if ranks is None else (ranks,):
                assert n in RANKS[number]
                assert spec in [variant.name for variant in CASES[number](n, 1).variants]


def test_goals_are_no_higher_than_the_reference():
    """5.2, 6.7, 15 and 96 are its own ratios, rounded down or to the nearest whole."""
    for number, goal in reference.GOALS.items():
        rows = reference.ROWS[number]
        above, below = ((rows.get((name, goal.ranks)) or rows[name, None]).requests
            for name in (goal.base, goal.row))
        assert above / below == pytest.approx(goal.factor, rel=0.01)


@pytest.mark.parametrize(("requests", "met"), [(100, True), (192, True), (193, False),
    (1000, False)])
def test_a_goal_is_judged_by_medians(requests, met):
    found = nersc.verdict(table("I", 4, none=measured(1100), cos=measured(1000),
        bufa=measured(requests)))
    assert found.met is met and found.factor == pytest.approx(1000 / requests)


def test_bytes_of_the_file_are_a_goal_where_it_says_so():
    size = CASES["III"](64, 1).file_bytes

    def outcome(moved: float) -> nersc.Verdict:
        rows = {"none": measured(9e5), "bufa": measured(3000), "global": measured(70, moved)}
        return nersc.verdict(table("III", 64, **rows))

    assert outcome(size).met and outcome(1.004 * size).met
    assert not outcome(1.02 * size).met and not outcome(0.9 * size).met
    rows = {"none": measured(9e5), "bufa": measured(3000), "global": measured(70, size)}
    assert nersc.verdict(table("III", 16, **rows)) is None, "the goal is one for 64 ranks"


def test_a_row_that_failed_is_shown_and_meets_no_goal():
    broken = table("II", 8, none=measured(3000), **{"global": "status 9: no such layer"})
    assert nersc.verdict(broken).met is False
    text = nersc_tables.text([broken])
    assert (
        "global:128:2         8  failed: status 9: no such layer" in text and "not measured" in text
    )


def test_the_text_has_both_tables_side_by_side():
    rows = {"no_view": measured(64000), "view": measured(8000), "view_collective": measured(150),
        "global": measured(160)}
    text = nersc_tables.text([table("IV", 32, **rows)])
    (plain,) = (line for line in text.splitlines() if line.startswith("no view"))
    (cured,) = (line for line in text.splitlines() if line.startswith("global:512:2"))
    here, there = cured.split("|")
    assert here.split() == ["global:512:2", "32", "160", "400", "x", "1.0", "1.500", "3.00", "0.75"]
    assert there.split() == ["668", "95.9", "x", "340", "4,076"]
    assert plain.split("|")[1].split() == ["64,066", "30,251", "39,634"]
    assert "requests 96 x fewer: met (400.00 x)" in text
    widths = {line.index("|") for line in text.splitlines() if "|" in line}
    assert len(widths) == 1, "the columns are not under each other"


def test_json_has_everything():
    rows = {"none": measured(10), "cos": measured(1000), "bufa": "no layer"}
    data = nersc_tables.as_data([table("I", 4, **rows)], scale=0.5)
    assert data["scale"] == 0.5 and data["machine"]["cores"] > 0
    (one,) = data["tables"]
    assert one["goal"]["met"] is False and one["goal"]["factor"] is None
    cos = next(row for row in one["rows"] if row["spec"] == "cos:48")
    assert cos["measured"]["requests"] == {"median": 1000, "low": 500, "high": 2000,
        "values": (2000, 1000, 500)}
    assert cos["reference"]["requests"] == 1736736
    assert [row["error"] for row in one["rows"]] == [None, None, "no layer"]


def test_ranks_of_cases():
    every = tuple(CASES)
    assert nersc.parse_ranks(["4,16", "IV=8"], every) == {**RANKS, "III": (4, 16), "IV": (8,)}
    assert nersc.parse_ranks(["6"], ("II",))["II"] == (6,)
    for word in ("many", "V=4", "I=0", "I="):
        with pytest.raises(UsageError, match="--pes"):
            nersc.parse_ranks([word], every)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("scale", [0.01, 1, 2])
def test_cases_have_sizes_that_the_programs_take(number, scale):
    for ranks in RANKS[number]:
        case = CASES[number](ranks, scale)
        assert len({variant.name for variant in case.variants}) == len(case.variants)
        sizes = dict(zip(case.variants[0].arguments[::2], case.variants[0].arguments[1::2],
            strict=True))
        assert float(sizes.get("--megabytes", 1)) > 0
        assert int(sizes.get("--planes", ranks)) >= ranks and int(sizes.get("--rows",
            ranks)) >= ranks


def test_programs_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="make build"):
        build_directory(str(tmp_path / "none"))
    with pytest.raises(InputError, match="weir-overlap"):
        choose_mpi(None, tmp_path / "{mpi}" / "weir-overlap")
    with pytest.raises(UsageError, match="lam"):
        choose_mpi("lam", tmp_path)


def test_what_a_program_says_reaches_the_row(tmp_path):
    with pytest.raises(RunFailed, match="status 3: it broke"):
        run(["sh", "-c", "echo before >&2; echo it broke >&2; exit 3"], {}, tmp_path, 10)
    with pytest.raises(RunFailed, match="longer than 0 s"):
        run(["sleep", "30"], {}, tmp_path, 0.1)
    assert numbers("noise\nscf: ranks=2 requests=7\n", "scf") == {"ranks": 2, "requests": 7}
    with pytest.raises(RunFailed, match="no line"):
        numbers("scf was here\n", "scf")
