# SPDX-License-Identifier: Apache-2.0
"""The scan for places sees in a TOML document what tomllib reads in it."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from weir.rules.forms.positions import Scanner, Value, line_and_column

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = st.sampled_from(["a", "b-1", '"x.y"', "'q #['", '"\\u0041\\t"'])
BLANKS = st.sampled_from(["", " ", "\t", "  "])
TEXT = st.text(st.sampled_from("ab #[]{}=,.|:ü'\"\\\n\t"), max_size=8)


def basic(text: str) -> str:
    return '"' + "".join(c if c.isalnum() or c in " #[]{}=,.|:'" else f"\\u{ord(c):04x}"
        if c != "\n" else "\\n" for c in text) + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "").replace("\n", "") + "'"


def long(text: str) -> str:
    return '"""\n' + text.replace("\\", "\\\\").replace('"', '\\"') + '\\\n   end"""'


def long_literal(text: str) -> str:
    return "'''" + text.replace("'", "") + "'''"


strings = st.builds(lambda write, text: write(text),
    st.sampled_from([basic, literal, long, long_literal]), TEXT)
numbers = st.sampled_from(["1", "-5", "0x1F", "1_000", "3.5", "true", "1979-05-27"])
arrays = st.lists(strings | numbers, max_size=4).map(lambda items: "["
    + ", # no ] here\n ".join(items) + "]")
tables = st.lists(st.tuples(st.sampled_from(["k", "l", "m"]), strings | numbers), max_size=3,
    unique_by=lambda p: p[0]).map(
    lambda pairs: "{" + ", ".join(f"{k} = {v}" for k, v in pairs) + "}"
)
values = strings | numbers | arrays | tables
pairs = st.lists(st.tuples(KEYS, BLANKS, values), max_size=4, unique_by=lambda p: p[0])
blocks = st.lists(st
    .tuples(st.sampled_from(["[[rule]]", "[[ rule ]] # [[x]]", "# nothing\n[[rule]]"]), pairs),
    max_size=3)


def document(top: list, parts: list) -> str:
    def lines(chosen: list) -> str:
        return "".join(f"{blank}{key}{blank}={blank}{value} # {key}\n"
            for key, blank, value in chosen)

    return lines(top) + "".join(f"\n{head}\n{lines(chosen)}" for head, chosen in parts)


def compare(text: str, where: Value, value: Any) -> None:
    """Each character of a string stands where the scan says; each element of an array has its
    place."""
    if isinstance(value, str):
        assert len(where.characters) == len(value) + 1
        assert where.characters == sorted(where.characters)
        for at, c in zip(where.characters, value):
            if text[at] != "\\":
                assert text[at] == c
    elif isinstance(value, list):
        assert len(where.elements) == len(value)
        for element, inner in zip(where.elements, value):
            compare(text, element, inner)
    elif isinstance(value, bool):
        assert text.startswith(str(value).lower(), where.at)
    elif isinstance(value, int):
        assert text[where.at] in "-0123456789"


@settings(max_examples=100)
@given(top=pairs, parts=blocks)
def test_every_key_and_value_is_found_where_it_stands(top, parts):
    text = document(top, parts)
    read = tomllib.loads(text)
    found = Scanner(text).tables()
    assert [t.path for t in found] == [(), *[("rule",)] * len(parts)]
    for table, values_ in zip(found, [{k: v for k, v in read.items() if k != "rule"},
            *read.get("rule", [])]):
        direct = [e for e in table.entries if len(e.path) == 1]
        assert [e.path[0] for e in direct] == list(values_)
        for entry in direct:
            compare(text, entry.value, values_[entry.path[0]])
        for entry in table.entries:
            assert text[entry.at] in "\"'abklm"


def test_lines_and_columns_begin_at_one():
    assert line_and_column("", 0) == (1, 1)
    assert line_and_column("ab\ncd", 2) == (1, 3)
    assert line_and_column("ab\ncd", 3) == (2, 1)
