# SPDX-License-Identifier: Apache-2.0
"""docs/reference/guest.md names a test for what it says; each of them exists."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_the_page_names_exists(root):
    page = (root / "docs" / "reference" / "guest.md").read_text()
    named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", page)
    assert len(named) > 30
    missing = [n for n in named if n[1] and f"def {n[1]}(" not in (HERE / n[0]).read_text()]
    assert missing == []


def test_the_page_forgets_no_file_of_tests(root):
    page = (root / "docs" / "reference" / "guest.md").read_text()
    files = {p.name for p in HERE.glob("test_*.py")} - {Path(__file__).name}
    assert {name for name in files if name not in page} == set()
