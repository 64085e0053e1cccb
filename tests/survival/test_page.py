# SPDX-License-Identifier: Apache-2.0
"""docs/reference/guest.md names a test for what it says; each of them exists."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEST = re.compile(r"`((?:tests/)?(?:\w+/)*)(test_\w+\.py)?(?:::)?(test_\w+)?`")


def named_tests(page: str) -> list[tuple[str, str, str]]:
    """Directory, file and function of each test that a page names. A function without a file is in
    the file that was named last in the same row."""
    found = []
    for row in page.splitlines():
        file = ("", "")
        for directory, name, function in TEST.findall(row):
            if name:
                file = (directory, name)
            if name or function:
                found.append((*file, function))
    return found


def is_there(root: Path, directory: str, file: str, function: str) -> bool:
    places = [root / directory] if directory else [HERE, root / "tests"]
    return any(
        (place / file).is_file()
        and (not function or f"def {function}(" in (place / file).read_text())
        for place in places
        if file
    )


@pytest.fixture
def page(root) -> str:
    return (root / "docs" / "reference" / "guest.md").read_text()


def test_every_test_that_the_page_names_exists(root, page):
    named = named_tests(page)
    assert len(named) >= page.count("`test_") + page.count("`tests/") - 2, "the sentence on places"
    assert [one for one in named if not is_there(root, *one)] == []


def test_each_row_names_a_test_or_says_that_there_is_none(page):
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    lacking = [
        row[0]
        for row in rows
        if row[-1] not in ("test", "not tested") and not named_tests(f"|{row[-1]}|")
    ]
    assert lacking == ["maps files"]  # which points to a page


def test_names_of_tests_are_found_in_each_form():
    row = "| a | `test_a.py::test_b`, `test_c`, `tests/reader/test_d.py` and `test_e.py` |"
    assert named_tests(row) == [
        ("", "test_a.py", "test_b"),
        ("", "test_a.py", "test_c"),
        ("tests/reader/", "test_d.py", ""),
        ("", "test_e.py", ""),
    ]


def test_the_page_forgets_no_file_of_tests(page):
    files = {p.name for p in HERE.glob("test_*.py")} - {Path(__file__).name}
    assert {name for name in files if name not in page} == set()


def test_the_page_names_every_call_that_waits(root):
    page = (root / "docs" / "reference" / "guest.md").read_text()
    waiting = (root / "native" / "hook" / "waiting.cc").read_text()
    hooks = re.findall(r"WEIR_HOOK\(\w+, (\w+),", waiting)
    assert len(hooks) >= 5
    assert [name for name in hooks if f"`{name}`" not in page] == []
