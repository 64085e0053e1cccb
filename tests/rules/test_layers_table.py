# SPDX-License-Identifier: Apache-2.0
"""The table that rules are checked against, and the layers as they are: the same kinds, the same
options."""

from __future__ import annotations

import re

import pytest
from weir_layers import DECLARED, declared_layers
from weir_sources import ROOT

from weir.rules.layers import kinds
from weir.rules.matching.explain import layer_notes
from weir.rules.model import SYSTEM
from weir.rules.stack import StackError, parse_stack

LAYERS = ROOT / "native" / "layers"
ASKED = re.compile(r'\boption_(?:number|text|fraction)\([^;]*?"([a-z_]+)"')
INCLUDED = re.compile(r'^#include "layers/(\w+)/', re.M)
KINDS = tuple(kinds().values())


def asked_by(name: str) -> set[str]:
    """Options that the sources of a layer ask for, and those of directories that it includes."""
    others = {kind.name for kind in KINDS} - {name}

    def sources(directory: str) -> list[str]:
        files = [
            f
            for f in (LAYERS / directory).glob("*.cc")
            if not f.stem.endswith("_test") and f.stem not in others
        ]
        return [file.read_text() for file in files]

    own = sources(name)
    included = {directory for text in own for directory in INCLUDED.findall(text)} - {name}
    return {
        option
        for text in (*own, *(t for d in included for t in sources(d)))
        for option in ASKED.findall(text)
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_layer_asks_for_the_options_that_rules_may_give(kind):
    assert (LAYERS / kind.name).is_dir(), f"{kind.name} is in the table, and there is no such layer"
    assert asked_by(kind.name) == {option.name for option in kind.options}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_defaults_of_the_table_keep_to_its_bounds(kind):
    example = {"directories": "/a,/b", "directory": "/a", "file": "out.zip"}
    needed = "".join(f":{o.name}={example[o.kind]}" for o in kind.options if o.required)
    stack = parse_stack(kind.name + needed)
    assert stack[-1] == SYSTEM
    again = ":".join(
        [
            kind.name,
            *(
                f"{v}B" if a.kind == "size" else str(v)
                for a, v in zip(kind.positional, stack[0].args)
            ),
        ]
    )
    assert parse_stack(again + needed) == stack


@pytest.mark.parametrize(
    ("stack", "memory"),
    [
        ("bufa:256:2", "2MiB for each open file, 4MiB if it is read and written"),
        ("cos:48", "192KiB for each open file"),
        ("global:1MiB:2", "2MiB for each rank, rounded up to a multiple of 8MiB for each node"),
        ("gather:1MiB:12", "16MiB for each node"),
    ],
)
def test_the_memory_of_a_layer_is_stated_with_its_conditions(stack, memory):
    assert layer_notes(parse_stack(stack)[0]).endswith(f"; memory up to {memory}")


@pytest.mark.parametrize(
    ("stack", "mistake"),
    [
        ("bufa:direct=", "bufa: direct= needs a value, 0 or 1"),
        ("keep:files=", "keep: files= needs a value"),
        ("bufa::2", "bufa's bytes is missing: write bufa:bytes:buffers"),
    ],
)
def test_an_argument_without_a_value_is_a_mistake_that_says_what_to_write(stack, mistake):
    with pytest.raises(StackError) as raised:
        parse_stack(stack)
    assert str(raised.value) == mistake


def test_each_reason_to_bypass_a_file_is_explained():
    from weir.report.layers.table import REASONS

    named = set(re.findall(r'^WEIR_OP\(\d+, \w+, "bypassed_(\w+)"',
        (ROOT / "native" / "wire" / "ops.def").read_text(), re.M))
    assert named == set(REASONS)


def test_the_package_has_the_layers_that_are_declared():
    assert [kind.name for kind in KINDS] == [layer["name"] for layer in DECLARED]


@pytest.mark.parametrize(
    ("files", "mistake"),
    [
        (
            {"a": "number = 1\nsummary = 'x'\n", "b": "number = 1\nsummary = 'x'\n"},
            "b/layer.toml: number 1 is a's",
        ),
        ({"a": "summary = 'x'\n"}, "a layer needs number"),
        ({"a": "number = 32\nsummary = 'x'\n"}, "the number of a layer is 1 to 31"),
        ({"a": "number = 1\nsummary = 'x'\nsumary = 'x'\n"}, "a layer has no key 'sumary'"),
        (
            {
                "a": "number = 1\nsummary = 'x'\n[[options]]\nname = 'n'\nkind = 'cuont'\nhelp = "
                     "''\n"
            },
            "the kind is one of size, bytes, count",
        ),
        (
            {
                "a": "number = 1\nsummary = 'x'\n[[options]]\nname = 'n'\nkind = 'count'\nhelp = "
                     "''\nhigh = 1\ndefault = 2\n"
            },
            "outside of its bounds",
        ),
        (
            {"a": "number = 1\nsummary = 'x'\n[[options]]\nfrom = 'b'\n"},
            "there is no b/shared.toml",
        ),
        (
            {
                "a": "number = 1\nsummary = 'x'\nstatistics = [{ index = 1, name = 'n', unit = "
                     "'ns', help = '' }]\n"
            },
            "indexes of statistics are 0, 1, 2",
        ),
        (
            {"a": "number = 1\nsummary = 'x'\nmemory = { of = ['n'], per = 'file' }\n"},
            "memory.of is a list",
        ),
        ({"a": "number = 1\nsummary = 'x'\nmemory = { of = ['n'] }\n"}, "memory needs per"),
        ({"a": "number = = 1\n"}, "a/layer.toml: Invalid"),
        ({"A": "number = 1\nsummary = 'x'\n"}, "small letters"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_file(tmp_path, files, mistake):
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "layer.toml").write_text(text)
    with pytest.raises(declared_layers.Mistake) as raised:
        declared_layers.read_layers(tmp_path)
    assert mistake in str(raised.value) and str(tmp_path) in str(raised.value)
