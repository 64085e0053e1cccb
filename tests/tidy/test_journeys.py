# SPDX-License-Identifier: Apache-2.0
"""Every file and function that docs/journeys.md names is in the tree, and each function in its
file."""

from __future__ import annotations

import re

from weir_sources import ROOT, none

PAGE = (ROOT / "docs" / "journeys.md").read_text()
JOURNEYS = PAGE.split("\n## ")[1:]
# `one()`, `two()` and `three()` in `path`
PLACED = re.compile(r"((?:`\w+\(\)`(?:, | and )?)+) in `([\w./-]+)`")
CALL = re.compile(r"\b(\w+)\(\)")
FILE = re.compile(r"\b[\w-]+(?:/[\w.-]+)+\.(?:cc|h|py|md|def)\b")


def placed(text: str) -> list[tuple[str, str]]:
    """Function and file of each `function()` in `file`."""
    return [(name, file) for names, file in PLACED.findall(text) for name in CALL.findall(names)]


def test_files_are_there():
    named = set(FILE.findall(re.sub(r"\]\([^)]*\)", "]", PAGE)))
    assert len(named) > 30
    none(sorted(f"docs/journeys.md: {name}" for name in named if not (ROOT / name).exists()))


def test_functions_are_in_their_files():
    found = placed(PAGE)
    assert len(found) > 70
    text = {file: (ROOT / file).read_text() for _, file in found}
    none([f"docs/journeys.md: {name}() in {file}" for name, file in found
        if not re.search(rf"\b{name}\b", text[file])])


def test_each_function_has_its_file():
    wrong = []
    for journey in JOURNEYS:
        title = journey.split("\n", 1)[0]
        known = {name for name, _ in placed(journey)}
        wrong += [f"{title}: {name}()" for name in CALL.findall(journey) if name not in known]
    none(wrong)


def test_each_arrow_has_a_row():
    for journey in JOURNEYS:
        arrows = re.findall(r"^ +\w+-+(?:>>|x)\w+: ", journey, re.M)
        rows = re.findall(r"^\| (\d+) \|", journey, re.M)
        assert [int(row) for row in rows] == list(range(1, len(arrows) + 1)), journey.split("\n",
            1)[0]
