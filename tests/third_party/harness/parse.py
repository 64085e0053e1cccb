# SPDX-License-Identifier: Apache-2.0
"""Splits what a suite printed into tests and their results: pass, fail or skip."""

from __future__ import annotations

import re

from harness.model import Ended, Tests

_UNITTEST = re.compile(r"^(test\w*) \(([\w.]+)\)|^={60,}$", re.M)
_UNITTEST_RESULT = re.compile(r"\b(ok|FAIL|ERROR|expected failure)$|\b(skipped) ", re.M)
_UNITTEST_WORDS = {"ok": "pass", "FAIL": "fail", "ERROR": "fail", "expected failure": "pass"}
_PYTEST = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(?:\[\d+\] )?(\S+)", re.M)
# How suites start pytest: it prints what _PYTEST reads, and loads nothing from the directories
# above that of the run, which are those of this repository.
PYTEST_OPTIONS = ("-q", "-rA", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".",
    "--confcutdir", ".", "--basetemp", "pytest")
_AUTOMAKE = re.compile(r"^(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): (\S+)", re.M)
_TAP = re.compile(r"^(not )?ok (\d+)(.*)$", re.M)
_LTP = re.compile(r"\b(TPASS|TFAIL|TBROK|TCONF)\b")

_HDF5 = re.compile(r"^ *Testing (.*?) +(PASSED|\*FAILED\*|-SKIP-)", re.M)


def unittest(ended: Ended) -> Tests:
    """Python's unittest with --verbose: `test_x (module.Class.test_x) ... ok`.

    What a test prints may stand between its name and its result.
    """
    found: Tests = {}
    # a heading, or the ruler before the list of what failed, ends what a test printed
    lines = list(_UNITTEST.finditer(ended.output))
    ends = [line.start() for line in lines[1:]] + [len(ended.output)]
    for line, end in zip(lines, ends, strict=False):
        result = _UNITTEST_RESULT.search(ended.output, line.end(), end)
        if line[1] is None or result is None:
            continue
        name = line[2] if line[2].endswith("." + line[1]) else f"{line[2]}.{line[1]}"
        found.setdefault(name, "skip" if result[2] else _UNITTEST_WORDS[result[1]])
    return found or {"": "fail"}


def pytest(ended: Ended) -> Tests:
    """pytest with -rA: the short summary at the end."""
    words = {"PASSED": "pass", "XFAIL": "pass", "SKIPPED": "skip"}
    found = {test: words.get(word, "fail") for word, test in _PYTEST.findall(ended.output)}
    return found or {"": "fail"}


def automake(ended: Ended) -> Tests:
    """`PASS: name`, as automake's and ctest-like drivers print it."""
    words = {"PASS": "pass", "XFAIL": "pass", "SKIP": "skip"}
    found = {test: words.get(word, "fail") for word, test in _AUTOMAKE.findall(ended.output)}
    return found or {"": "fail"}


def tap(ended: Ended) -> Tests:
    """The Test Anything Protocol; a test that is announced (1..N) and has no line has failed."""
    found = {
        number: "skip" if "# skip" in rest.lower() else "fail" if failed else "pass"
        for failed, number, rest in _TAP.findall(ended.output)
    }
    plan = re.search(r"^1\.\.(\d+)", ended.output, re.M)
    for number in range(1, int(plan[1]) + 1 if plan else 1):
        found.setdefault(str(number), "fail")
    return found or {"": "skip" if plan else "fail"}


def ltp(ended: Ended) -> Tests:
    """A program of the Linux Test Project: its exit status, and the results that it printed, in
    order."""
    words = {"TPASS": "pass", "TFAIL": "fail", "TBROK": "fail", "TCONF": "skip"}
    found = {str(i): words[word] for i, word in enumerate(_LTP.findall(ended.output), 1)}
    if isinstance(ended.status, str) or ended.status < 0:
        found["end"] = "fail"
    return found or {"": "pass" if ended.status == 0 else "fail"}


def hdf5(ended: Ended) -> Tests:
    """A program of HDF5's tests: `Testing what  PASSED`, numbered, as it tests the same in several
    ways."""
    words = {"PASSED": "pass", "-SKIP-": "skip"}
    found = {f"{i} {what}": words.get(word, "fail")
        for i, (what, word) in enumerate(_HDF5.findall(ended.output), 1)}
    return found or {"": "pass" if ended.status == 0 else "fail"}
