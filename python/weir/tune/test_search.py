# SPDX-License-Identifier: Apache-2.0
"""The search for settings: its space, its value, what is proposed, which setting is better."""

from __future__ import annotations

import itertools

import pytest

from weir.tune.runs import SEARCH, TUNED, Done, Figures, FileCost
from weir.tune.search import (
    Parameter,
    Tried,
    best,
    is_better,
    is_better_by_counts,
    parameters,
    propose,
    stack_of,
    value_of,
)
from weir.tune.study import environment_of

SPACE = [Parameter("bytes of f", ("64KiB", "1MiB", "8MiB"), "1MiB"),
    Parameter("buffers of f", ("1", "4"), "4")]


def done(number: int, kind: str, wall_s: float, requests: int) -> Done:
    return Done(number, kind, ("f",), Figures(wall_s, 1, 1, 1, 1, 1000 + requests,
        {"f": FileCost(1, requests)}), {})


BASE = [done(1, TUNED, 10, 100), done(3, TUNED, 10.1, 100)]


def test_the_space_is_that_of_the_rules_and_of_the_command():
    space = parameters({"f": "bufa:3MiB:4", "g": "pack:name=x.zip", "h": "global:2MiB:9:wait_ms=1"},
        True, 6, {"servers": ("2", "4")})
    assert [one.name for one in space] == ["bytes of f", "buffers of f", "bytes of h",
        "buffers of h", "aggregators", "servers"]
    assert space[0].choices == ("64KiB", "256KiB", "1MiB", "2MiB", "3MiB", "4MiB", "8MiB", "16MiB")
    assert (space[0].advised, space[4].choices, space[5].advised) == ("3MiB",
        ("default", "1", "2", "4"), "2")
    assert stack_of("h", "global:2MiB:9:wait_ms=1", {"bytes of h": "8MiB"}) == \
        "global:8MiB:9:wait_ms=1"


def test_aggregators_are_those_of_both_libraries(tmp_path):
    assert [one.name for one in parameters({}, True, 4, {})] == ["aggregators"]
    made = environment_of({"aggregators": "4"}, tmp_path)
    assert (tmp_path / "romio-hints").read_text() == "cb_nodes 4\ncb_config_list *:4\n"
    assert made["OMPI_MCA_io_ompio_num_aggregators"] == "4"
    assert environment_of({"aggregators": "default"}, tmp_path) == {}


def test_each_setting_is_proposed_once():
    pytest.importorskip("optuna")
    tried, values = [], []
    while (setting := propose(SPACE, tried, values)) is not None:
        assert propose(SPACE, tried, values) == setting, "the same runs give the same proposal"
        tried.append(Tried(setting, ()))
        values.append(float(len(tried)))
    found = {tuple(one.setting.values()) for one in tried}
    assert found == set(itertools.product(*(one.choices for one in SPACE)))


def test_times_within_the_noise_are_no_value():
    alike = Tried({}, (done(4, SEARCH, 9, 50),))
    faster = Tried({}, (done(4, SEARCH, 5, 50),))
    assert value_of(alike, BASE, False) == 1.5 and value_of(faster, BASE, False) < 1.01
    assert value_of(faster, BASE, True) == 0.5
    unfit = Tried({}, alike.runs, fits=False)
    assert value_of(unfit, BASE, False) > 1e6
    assert best([unfit, alike, faster], BASE, False) is faster


def test_the_advised_setting_stays_where_nothing_is_proved():
    more = Tried({}, (done(4, SEARCH, 9, 100), done(6, SEARCH, 9, 100)))
    assert best([more], BASE, True) is None and not is_better_by_counts(more, BASE, True)
    lucky = Tried({}, (done(4, SEARCH, 2, 100),))
    assert is_better(lucky, BASE) is None, "the run that it was chosen by"
    slower = Tried({}, (done(2, SEARCH, 2, 50), done(4, SEARCH, 14, 50), done(6, SEARCH, 14, 50)))
    assert is_better(slower, BASE) is False


def test_times_or_counts_prove_a_setting():
    faster = Tried({}, (done(2, SEARCH, 9, 100), done(4, SEARCH, 5, 100), done(6, SEARCH, 5, 100)))
    assert is_better(faster, BASE) is True
    fewer = Tried({}, (done(2, SEARCH, 9, 50),))
    assert is_better_by_counts(fewer, BASE, False)
    long = Tried({}, (done(2, SEARCH, 20, 50),))
    assert not is_better_by_counts(long, BASE, False) and is_better_by_counts(long, BASE, True)
    little = Tried({}, (done(2, SEARCH, 9, 99), done(4, SEARCH, 9.7, 99), done(6, SEARCH, 9.7, 99)))
    assert is_better(little, BASE) is None
