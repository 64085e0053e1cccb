# SPDX-License-Identifier: Apache-2.0
"""The table that rules are checked against, and the layers as they are: the same kinds, the same options."""

from __future__ import annotations

import re

import pytest
from weir_sources import ROOT

from weir.rules.layers import KINDS
from weir.rules.model import SYSTEM
from weir.rules.stack import parse_stack

LAYERS = ROOT / "native" / "layers"
ASKED = re.compile(r'\boption_(?:number|text|fraction)\([^;]*?"([a-z_]+)"')
# What several layers share lies in a directory that is no layer.
SHARED = {"error": ["chance"], "delay": ["chance"], "short": ["chance"], "gather": ["global"]}


def asked_by(name: str) -> set[str]:
    """Options that the sources of a layer ask for."""
    directories = [LAYERS / directory for directory in (name, *SHARED.get(name, []))]
    others = {kind.name for kind in KINDS} - {name}
    sources = [f for directory in directories for f in directory.glob("*.cc") if not f.stem.endswith("_test") and f.stem not in others]
    return {option for source in sources for option in ASKED.findall(source.read_text())}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_layer_asks_for_the_options_that_rules_may_give(kind):
    assert (LAYERS / kind.name).is_dir(), f"{kind.name} is in the table, and there is no such layer"
    assert asked_by(kind.name) == {option.name for option in kind.options}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_defaults_of_the_table_keep_to_its_bounds(kind):
    needed = "".join(f":{o.name}=/a,/b" for o in kind.options if o.required)
    stack = parse_stack(kind.name + needed)
    assert stack[-1] == SYSTEM
    again = ":".join([kind.name, *(f"{v}B" if a.kind == "size" else str(v) for a, v in zip(kind.positional, stack[0].args))])
    assert parse_stack(again + needed) == stack


def test_every_layer_has_a_line_in_the_table():
    named = set(re.findall(r'WEIR_LAYER\(\d+, \w+, "(\w+)"\)', (ROOT / "native" / "wire" / "layers.def").read_text()))
    assert named == {kind.name for kind in KINDS}


def test_each_reason_to_bypass_a_file_is_explained():
    from weir.report.layers import REASONS

    named = set(re.findall(r'^WEIR_OP\(\d+, \w+, "left_(\w+)"', (ROOT / "native" / "wire" / "ops.def").read_text(), re.M))
    assert named == set(REASONS)
