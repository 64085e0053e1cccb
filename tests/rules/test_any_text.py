# SPDX-License-Identifier: Apache-2.0
"""Whatever is written where rules are expected: rules, or mistakes with places that exist; nothing
else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.rules.forms.assign import parse_assign
from weir.rules.forms.compiled import compile_rules
from weir.rules.forms.iobuf import parse_iobuf
from weir.rules.forms.mpiio_hints import parse_mpiio_hints
from weir.rules.forms.toml import parse_toml
from weir.rules.mistakes import RulesError
from weir.rules.stack import StackError, parse_stack

WORDS = {
    "toml": ["[[rule]]\n", "[[hints]]\n", "[rule]\n", "name = ", '"a*"', "'[a'", '"""x\n"""',
        "stack = ", '"event | bufa:256:2"', '"bufa,,"', "\n",
             "ranks", "unit", "=", "[1, 2]", "{a = 1}", "#", "mode", "min_size", "5", "-1", "true",
             "1.5", "info", '"a=b:c"', ".", "\r\n", "é", "1979-05-27"],
    "assign": ["assign ", "weir ", "-F ", "-I ", "bufa:256:2 ", "'a b' ", '"', "'", "\\", "f:x ",
        "p:%a_ ", "u:61 ", "u:x ", "g:su ", "g:", "--mode ",
               "--mode=read ", "--ranks=", "1-0 ", "\n", "#", "é", "none ", "/a/../b "],
    "iobuf": ["*", "a.nc", "%stdout", ":", ",", "size=", "8M", "count=", "0", "prefetch=1",
        "verbose", "direct", "=", " ", "[a", "é", "siz=1", "\n"],
    "hints": ["*", "wrf", ":", ",", "cb_nodes=16", "=", " ", "[a", "/x", "\n", "é"],
    "stack": ["event", "bufa", "cos", "error", "stripe", "none", "system", ":", "|", ",", " ",
        "256", "1MiB", "0", "op=write", "errno=ENOSPC", "dirs=/a,/b", "name=x.zip", "=", "é",
              "rate=0.5", "direct", "-1", "99999999999999999999"],
}  # fmt: skip
READERS = {"toml": parse_toml, "assign": parse_assign, "iobuf": parse_iobuf,
    "hints": parse_mpiio_hints}


@pytest.mark.parametrize("form", sorted(READERS))
def test_any_text_is_rules_or_mistakes(form):
    @settings(max_examples=120)
    @given(text=st.lists(st.sampled_from(WORDS[form]) | st.characters(exclude_categories=["Cs"]),
        max_size=25).map("".join))
    def read(text):
        try:
            compile_rules(READERS[form](text, "file"))
        except RulesError as error:
            lines = text.split("\n")
            assert error.mistakes
            for mistake in error.mistakes:
                assert mistake.message and mistake.place.file == "file"
                assert 1 <= mistake.place.line <= len(lines), mistake
                assert 1 <= mistake.place.column <= len(lines[mistake.place.line - 1]) + 2, (
                    mistake, lines)

    read()


def test_any_stack_is_layers_or_mistakes_within_it():
    @settings(max_examples=120)
    @given(text=st.lists(st.sampled_from(WORDS["stack"]), max_size=14).map("".join))
    def read(text):
        try:
            assert parse_stack(text)[-1].name == "system"
        except StackError as error:
            assert error.wrongs and all(0 <= w.offset <= len(text) for w in error.wrongs)

    read()
