# SPDX-License-Identifier: Apache-2.0
"""The pages made from the command say what the command does."""

from __future__ import annotations

import sys

from weir.capture._environment import VARIABLES


def test_pages_are_what_the_command_says(execute, root):
    done = execute([sys.executable, root / "tools" / "gen_docs.py", "--check"])
    assert done.returncode == 0, done.stderr


def test_every_verb_option_and_variable_has_a_line(weir, root):
    page = (root / "docs" / "reference" / "commands.md").read_text()
    for verb in ("trace", "run", "assign", "env", "report", "doctor"):
        section = page.split(f"\n## weir {verb}\n")[1].split("\n## ")[0]
        lines = weir(verb, "--help").ok().stdout.split("Options:")[1].splitlines()
        declared = {w.rstrip(",") for line in lines if line.startswith("  -")
            for w in line.split("  ")[1].split() if w.startswith("-")}
        assert declared >= {"--help", "-h"}
        missing = [option for option in declared - {"--help", "-h"} if f"`{option}`" not in section]
        assert missing == []
    environment = (root / "docs" / "reference" / "environment.md").read_text()
    assert all(f"`{v.name}`" in environment for v in VARIABLES)


def test_a_page_that_differs_is_named(monkeypatch, tmp_path, root, capsys):
    sys.path.insert(0, str(root / "tools"))
    try:
        import gen_docs
    finally:
        sys.path.pop(0)
    monkeypatch.setattr(gen_docs, "OUT", tmp_path)
    assert gen_docs.main(["--check"]) == 1 and "commands.md, environment.md" in capsys.readouterr(
        ).err
    assert gen_docs.main([]) == 0 and gen_docs.main(["--check"]) == 0
    assert gen_docs.main(["--nonsense"]) == 2
