# SPDX-License-Identifier: Apache-2.0
"""Trace in, table out: each file of golden/ is a trace in words, a question, and the answer
(tests/support/golden_trace.py).

`python tests/reader/test_golden.py --rewrite [NAME]...` renews the answers; read the difference
before you keep it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.txt"))


def test_there_are_golden_files():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_are_as_written(path, tmp_path):
    from golden_trace import answered

    assert answered(path, tmp_path / "run") == path.read_text()


def rewrite(names: list[str]) -> None:
    import tempfile

    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    from golden_trace import answered

    for path in FILES:
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            text = answered(path, Path(directory) / "run")
        if text != path.read_text():
            path.write_text(text)
            print(f"rewritten: {path}")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rewrite"]:
        sys.exit(__doc__)
    rewrite(sys.argv[2:])
