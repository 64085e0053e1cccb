# SPDX-License-Identifier: Apache-2.0
"""Rules in, messages or compiled rules out: each file of golden/ is a text in one form, and what
comes of it.

`python tests/rules/test_golden.py --rewrite [NAME]...` renews what comes of them; read the
difference before you keep it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.txt"))
PARTS = re.compile(
    r"(?P<about>(?:#[^\n]*\n)*)=== (?P<file>\S+)\n(?P<text>.*?)=== (?:messages|compiled)\n.*", re.S)


def answered(path: Path) -> str:
    """The golden file as it should be."""
    from weir.rules.check import shadowed
    from weir.rules.forms.assign import parse_assign
    from weir.rules.forms.compiled import compile_rules
    from weir.rules.forms.iobuf import parse_iobuf
    from weir.rules.forms.mpiio_hints import parse_mpiio_hints
    from weir.rules.forms.toml import parse_toml
    from weir.rules.mistakes import RulesError

    found = PARTS.fullmatch(path.read_text())
    assert found, f"{path}: not of the form of a golden file"
    text, file = found["text"], found["file"]
    try:
        variables = {"IOBUF_PARAMS": parse_iobuf, "MPICH_MPIIO_HINTS": parse_mpiio_hints}
        if file in variables:
            rules = variables[file](text.rstrip("\n"), file)
        else:
            rules = (parse_toml if file.endswith(".toml") else parse_assign)(text, file)
        answer = "=== compiled\n" + compile_rules(rules) + "".join(f"warning: {w}\n"
            for w in [*rules.warnings, *shadowed(rules)])
    except RulesError as error:
        answer = f"=== messages\n{error}\n"
    return f"{found['about']}=== {file}\n{text}{answer}"


def test_there_are_golden_files():
    assert len(FILES) >= 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_messages_are_as_written(path):
    assert answered(path) == path.read_text()


def rewrite(names: list[str]) -> None:
    for path in FILES:
        if names and path.stem not in names:
            continue
        text = answered(path)
        if text != path.read_text():
            path.write_text(text)
            print(f"rewritten: {path}")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rewrite"]:
        sys.exit(__doc__)
    rewrite(sys.argv[2:])
