# SPDX-License-Identifier: Apache-2.0
"""TOML, assign and IOBUF_PARAMS say the same: what one form can say comes back from it as the same
rules."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rules_strategies import opens, rule_sets, simple_rule_sets, stacks

from weir.rules.check import covers, shadowed
from weir.rules.forms.assign import parse_assign
from weir.rules.forms.compiled import compile_rules
from weir.rules.forms.convert import to_assign, to_iobuf, to_toml
from weir.rules.forms.iobuf import parse_iobuf
from weir.rules.forms.toml import parse_toml
from weir.rules.matching.match import first_match, misfits
from weir.rules.mistakes import Place, RulesError
from weir.rules.model import RuleSet
from weir.rules.stack import parse_stack, stack_text, with_events

NOWHERE = Place("nowhere")
MANY = settings(max_examples=100)


def anonymous(rules: RuleSet) -> RuleSet:
    """Without the places, which differ between forms."""
    return RuleSet(
        tuple(replace(r, source=NOWHERE) for r in rules.rules),
        tuple(replace(h, source=NOWHERE) for h in rules.hints)
    )


@MANY
@given(rules=rule_sets)
def test_toml_says_all_rules(rules):
    again = parse_toml(to_toml(rules), "again.toml")
    assert anonymous(again) == anonymous(rules)
    assert compile_rules(anonymous(again), True) == compile_rules(anonymous(rules), True)


@MANY
@given(rules=rule_sets, asked=st.lists(opens(), max_size=8))
def test_what_assign_can_say_comes_back_with_the_same_effect(rules, asked):
    rules = replace(rules, hints=())
    try:
        text = to_assign(rules)
    except RulesError as error:
        assert all(m.place.file == "random" for m in error.mistakes)
        assume(False)
    again = anonymous(parse_assign(text, "again"))
    known = anonymous(rules).rules
    assert sorted(again.rules, key=repr) == sorted(known, key=repr)
    for what in asked:
        assert first_match(again.rules, what) == first_match(known, what)


@MANY
@given(rules=simple_rule_sets)
def test_what_iobuf_params_can_say_comes_back(rules):
    try:
        text = to_iobuf(rules)
    except RulesError:
        assume(False)
    variable, _, value = text.partition("=")
    again = parse_iobuf(shlex.split(value)[0] if value.strip() else "")
    assert variable == "IOBUF_PARAMS"
    everything = [replace(r, when=replace(r.when, name=r.when.name or "*"))
        for r in anonymous(rules).rules]
    assert list(anonymous(again).rules) == everything and not again.warnings


@MANY
@given(stack=stacks)
def test_a_stack_is_read_as_it_is_written(stack):
    assert parse_stack(stack_text(stack)) == stack
    assert parse_stack(stack_text(stack, ",")) == stack
    seen = with_events(stack)
    assert len(seen) <= 12 and with_events(seen) == seen


@MANY
@given(rules=rule_sets, asked=st.lists(opens(), min_size=1, max_size=10))
def test_a_rule_that_is_said_to_be_hidden_never_matches(rules, asked):
    hidden = {m.place for m in shadowed(rules)}
    for what in asked:
        for found in (first_match(rules.rules, what), first_match(rules.hints, what)):
            assert found is None or found.source not in hidden
    for one in rules.rules:
        for other in rules.rules:
            if covers(one.when, other.when):
                assert all(misfits(other.when, what) or not misfits(one.when, what)
                    for what in asked)


@pytest.mark.parametrize("form", [to_assign, to_iobuf])
def test_what_a_form_cannot_say_names_the_rule(form):
    rules = parse_toml('[[rule]]\nname = "a"\nstack = "bufa"\n[[hints]]\ncb_nodes = 1\n', "r.toml")
    with pytest.raises(RulesError, match=r"r\.toml:4:1: .* hints"):
        form(rules)


def test_assign_keeps_the_order_or_refuses():
    text = '[[rule]]\nunit = 61\nstack = "bufa"\n[[rule]]\nname = "x"\nstack = "cos"\n'
    with pytest.raises(RulesError,
            match=r"r\.toml:4:1: assign would ask f:x before the rule of r\.toml:1:1"):
        to_assign(parse_toml(text, "r.toml"))
    twice = (
        '[[rule]]\nname = "x"\nmode = "read"\nstack = "bufa"\n[[rule]]\nname = "x"\nstack = "cos"\n'
    )
    with pytest.raises(RulesError,
            match=r"r\.toml:5:1: assign has one set of attributes for f:x, and r\.toml:1:1 is it"):
        to_assign(parse_toml(twice, "r.toml"))


def test_iobuf_params_has_patterns_and_bufa_alone():
    text = (
        '[[rule]]\nunit = 61\nstack = "bufa"\n[[rule]]\nname = "x"\nstack = "cos"\n[[rule]]\nname '
        '= "a,b"\nstack = "bufa"\n'
    )
    with pytest.raises(RulesError) as found:
        to_iobuf(parse_toml(text, "r.toml"))
    assert [m.place.line for m in found.value.mistakes] == [1, 4, 7]
    assert [m.message for m in found.value.mistakes] == [
        "IOBUF_PARAMS has patterns alone, no unit",
        "IOBUF_PARAMS has bufa alone, not cos:192KiB | system",
        "IOBUF_PARAMS cannot have the pattern a,b",
    ]
