# SPDX-License-Identifier: Apache-2.0
"""The harness that runs suites of others: its parsers, its comparison, its page, and a small suite
from end to end."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from harness import parse
from harness.compare import Known, find_differences, read_known, unstable_items
from harness.model import (
    Ended,
    Mode,
    Place,
    Result,
    Step,
    StepResult,
    Suite,
    load_result,
    read_modes,
)
from harness.process import run_limited
from harness.run import run_suite
from harness.table import make_row, write_page
from suites import all_suites

UNITTEST = """test_a (test.test_x.Case.test_a)
Says what it does. ... ok
test_b (test.test_x.Case.test_b) ... something printed
FAIL
test_c (test.test_x.Case.test_c) ... skipped 'no reason'
test_d (test.test_x.Case) ... ok
test_e (test.test_x.Case.test_e) ... expected failure

======================================================================
FAIL: test_b (test.test_x.Case.test_b)
"""


@pytest.mark.parametrize(
    ("parser", "status", "output", "tests"),
    [
        (
            parse.unittest,
            1,
            UNITTEST,
            {
                "test.test_x.Case.test_a": "pass",
                "test.test_x.Case.test_b": "fail",
                "test.test_x.Case.test_c": "skip",
                "test.test_x.Case.test_d": "pass",
                "test.test_x.Case.test_e": "pass",
            },
        ),
        (parse.pytest, 1, "PASSED a.py::b\nFAILED a.py::c - x\nXFAIL d\nSKIPPED [1] e.py:7: why\n",
            {"a.py::b": "pass", "a.py::c": "fail", "d": "pass", "e.py:7:": "skip"}),
        (parse.automake, 1, "x\nPASS: one\nFAIL: two (exit status: 1)\nSKIP: three\n",
            {"one": "pass", "two": "fail", "three": "skip"}),
        (parse.tap, 0, "1..4\nok 1\nnot ok 2 - x\nok 3 # SKIP no\n",
            {"1": "pass", "2": "fail", "3": "skip", "4": "fail"}),
        (parse.ltp, 1, "a.c:1: TPASS: x\na.c:2: TFAIL: y\na.c:3: TCONF: z\n",
            {"1": "pass", "2": "fail", "3": "skip"}),
        (parse.ltp, -11, "a.c:1: TPASS: x\n", {"1": "pass", "end": "fail"}),
        (parse.hdf5, 1, " Testing a b     PASSED\nTesting a b  *FAILED*\nTesting c  -SKIP-\n",
            {"1 a b": "pass", "2 a b": "fail", "3 c": "skip"}),
        (parse.unittest, "time limit", "", {"": "fail"}),
    ],
)
def test_output_is_split_into_tests(parser, status, output, tests):
    assert parser(Ended(status, output)) == tests


def result(mode: str, tests: dict[str, str], outputs: dict[str, str] | None = None,
        library: str = "") -> Result:
    return Result("s", mode, "s 1", library, "", {"run": StepResult(0, tests)}, outputs or {})


PLAIN = result("plain", {"a": "pass", "b": "fail", "c": "pass"}, {"x": "1", "y": "2"})
AGAIN = result("again", {"a": "pass", "b": "fail", "c": "fail"}, {"x": "1", "y": "2"})
BUFA = result("bufa", {"a": "fail", "b": "fail", "c": "skip"}, {"x": "3"}, "lib")


def test_what_plain_runs_disagree_on_is_no_difference():
    unstable = unstable_items([PLAIN, AGAIN])
    assert unstable == {"run::c"}
    found = find_differences(PLAIN, unstable, BUFA, [Known("s", "bufa*", "file *", "by design")])
    assert [(d.item, d.plain, d.found, d.cause) for d in found] == [
        ("file x", "1", "3", "by design"),
        ("file y", "2", "absent", "by design"),
        ("run::a", "pass", "fail", ""),
    ]


def test_page_counts_passes_and_differences():
    suite = Suite("s", "a suite", lambda _: [], lambda _: "s 1",
        leave_out={"keep": "it takes an hour"})
    absent = Suite("t", "another", lambda _: [], lambda _: "")
    modes = [Mode("plain"), Mode("again"), Mode("bufa", stack="bufa:1:2"),
        Mode("keep", stack="keep")]
    results = {r.mode: r for r in (PLAIN, AGAIN, BUFA)}
    lacking = {"plain": Result("t", "plain", missing="there is no t")}
    known = [Known("s", "bufa", "file *", "by design")]
    page = write_page([make_row(suite, results, modes, known), make_row(absent, lacking, modes,
        known)], modes, [{"suite": "t", "mode": "keep", "seen": "it hangs"}])
    assert "| s | 2 | 1 | 0 -2 !1 | . |" in page
    assert "| t | not run: there is no t |" in page
    assert "**3 differences**, 1 of them without a known cause" in " ".join(page.split())
    assert "| s | by design | 2 | `file x`, `file y` | bufa |" in page
    assert "| s | `run::a` | pass | fail | bufa |" in page
    assert "- s, keep: it takes an hour." in page
    assert "- t: plain, again, bufa, keep." in page and "- s: " not in page
    assert "- t, keep: it hangs." in page


def test_page_marks_what_older_builds_gave():
    suite = Suite("s", "a suite", lambda _: [], lambda _: "s 1",
        leave_out={"keep": "it takes an hour"})
    modes = [Mode(m, stack=m if m != "plain" else "") for m in ("plain", "bufa", "cos", "keep",
        "gather")]
    results = {"plain": PLAIN}
    for mode, library in (("bufa", "new"), ("cos", "old"), ("gather", "new")):
        results[mode] = result(mode, PLAIN.steps["run"].tests, PLAIN.outputs, library)
        results[mode].weir = f"of-{library}"
    page = write_page([make_row(suite, results, modes, [])], modes)
    assert "| s | 2 | 2 | 2 <sup>a</sup> | . | 2 |" in page
    assert "Builds: a: weir of-old." in page
    assert "weir of-new (2 runs) and of-old (1 runs): 1 suites, 4 of 4 runs" in page


def test_page_has_one_line_for_a_cause():
    suite = Suite("s", "a suite", lambda _: [], lambda _: "s 1")
    modes = [Mode("plain"), Mode("bufa", stack="bufa:1:2")]
    tests = {str(i): "pass" for i in range(30)}
    plain, bufa = result("plain", tests), result("bufa", dict.fromkeys(tests, "fail"),
        library="lib")
    for one in (plain, bufa):
        one.steps |= {f"p{i:02}": StepResult(0 if one is plain else 1, {}) for i in range(14)}
    page = write_page([make_row(suite, {"plain": plain, "bufa": bufa}, modes,
        [Known("s", "*", "*", "why")])], modes)
    assert [line for line in page.splitlines() if "| why |" in line] == [
        f"| s | why | 44 | {', '.join(f'`p{i:02}`' for i in range(12))} and 3 more | bufa |"
    ]


def test_time_limit_ends_children_too(tmp_path):
    script = (
        "import os, time\nif os.fork() == 0: os.setpgid(0, 0)\nprint(os.getpid(), "
        "flush=True)\ntime.sleep(99)"
    )
    ended = run_limited([sys.executable, "-c", script], {}, tmp_path, 2)
    assert ended.status == "time limit"
    assert len(ended.output.split()) == 2
    for pid in ended.output.split():
        stat = Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX"


def small_steps(_place):
    yield Step("inputs", ("sh", "-c", "seq 2000 > numbers"), prepare=True)
    yield Step("sort", ("sh", "-c", "sort -r numbers > sorted; tail -1 sorted"),
        compare_output=True)
    yield Step("where", ("sh", "-c", "echo ${LD_PRELOAD:-plain}"))


@pytest.mark.parametrize("mode",
    [Mode("trace", level="trace"), Mode("bufa", stack="bufa:1:2:always=1")], ids=lambda m: m.name)
def test_small_suite_runs_with_weir_as_without(mode, tmp_path, native_build):
    suite = Suite("small", "a suite", small_steps, lambda _: "1", outputs=("sorted",))
    results = []
    for each in (Mode("plain"), mode):
        place = Place(tmp_path / each.name / "work", None, tmp_path, tmp_path)
        place.work.parent.mkdir()
        run_suite(suite, each, place).save(tmp_path)
        results.append(load_result(tmp_path, "small", each.name))
        assert not place.work.exists()
    plain, with_weir = results
    assert plain.outputs.keys() == {"sorted"} and plain.steps.keys() == {"sort", "where",
        "weir report"}
    assert find_differences(plain, set(), with_weir, []) == []
    assert plain.steps["sort"].output and not plain.steps["where"].output
    assert "libweir-preload" in (tmp_path / mode.name / "work.log").read_text()
    assert plain.library == "" and with_weir.library


def test_suite_without_its_sources_is_not_run(tmp_path):
    suite = Suite("s", "", small_steps, lambda _: "1", tree="nowhere")
    found = run_suite(suite, Mode("plain"), Place(tmp_path / "w", None, tmp_path, tmp_path))
    assert found.missing == "WEIR_THIRD_PARTY_SOURCES holds no nowhere" and not found.steps


def test_suite_of_which_no_test_passes_is_not_compared(tmp_path):
    failing = Suite("s", "", lambda _: [Step("a", ("false",))], lambda _: "1")
    found = run_suite(failing, Mode("plain"), Place(tmp_path / "w", None, tmp_path, tmp_path))
    assert found.missing == "no test passes without weir; see w.log"


def test_pytest_of_a_suite_reads_nothing_of_the_directories_above(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("of_the_repository",)\n')
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--unknown"\n')
    work = tmp_path / "run" / "work"
    work.mkdir(parents=True)
    (work / "test_a.py").write_text("def test_b():\n    pass\n")
    command = (sys.executable, "-m", "pytest", *parse.PYTEST_OPTIONS, "test_a.py")
    ended = run_limited(command, {}, work, 60)
    assert parse.pytest(ended) == {"test_a.py::test_b": "pass"}, ended.output


def test_declarations_are_sound():
    suites, modes = all_suites(), read_modes()
    assert len({s.name for s in suites}) == len(suites) and len({m.name for m in modes}) == len(
        modes)
    assert [m.name for m in modes if not m.uses_weir] == ["plain", "again"]
    for known in read_known():
        item = re.sub(r"\[(.)[^]]*\]", r"\1", known.item)  # one that the pattern is for
        assert any(known.covers(s.name, m.name, item) for s in suites for m in modes), known
