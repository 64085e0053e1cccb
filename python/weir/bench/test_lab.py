# SPDX-License-Identifier: Apache-2.0
"""The layers' bench: judging and showing. What the lines run is tried in
tests/test_bench_programs.py."""

from __future__ import annotations

import pytest

from weir._errors import StorageError
from weir.bench import layer_tables
from weir.bench._process import RunFailed
from weir.bench._statistics import Spread
from weir.bench.lab import Check, Figure, Line, Outcome, measure
from weir.bench.layer_lines import LINES, STACKS


@pytest.mark.parametrize(("value", "least", "met"), [(5, True, True), (4.9, True, False),
    (5, False, True), (5.1, False, False)])
def test_goals(value, least, met):
    assert Check("x", value, 5, least).met is met


def test_an_error_belongs_to_its_line():
    def broken(lab):
        raise RunFailed("status 2: no layer of that name")

    def full(lab):
        raise StorageError("/mnt: no space")

    outcome = measure(None, Line("a", "what a does", broken))
    assert outcome.checks == () and outcome.error == "status 2: no layer of that name"
    assert measure(None, Line("b", "", full)).error == "/mnt: no space"
    assert "error: status 2: no layer" in layer_tables.text(Line("a", "what a does", broken),
        outcome)

    def wrong(lab):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(None, Line("c", "", wrong))


def test_lines_have_names_of_their_own_and_stacks_are_used():
    assert len({line.name for line in LINES}) == len(LINES)
    assert {"read", "stride64k", "stride1m", "fread", "write", "dump", "global", "gather", "append",
        "nothing", "unmatched"} <= {
        line.name for line in LINES
    }
    assert all(":" in stack or stack == "keep" for stack in STACKS.values())


def test_text_and_json():
    line = Line("read", "small reads", lambda lab: Outcome())
    outcome = Outcome(
        (Figure("plain", "MB/s", Spread(1.85, 1.7, 1.9)),
            Figure("layered", "MB/s", Spread(1234.5, 1000, 1500))),
        (Check("x plain", 667.3, 350), Check("ns a call", 7.25, 5, least=False)),
    )
    text = layer_tables.text(line, outcome)
    assert "plain" in text and "1.85 MB/s" in text and "(1,000 to 1,500)" in text
    assert "goal >= 350: met" in text and "goal <= 5: MISSED" in text
    (data,) = layer_tables.as_data([(line, outcome)], repeat=5)["lines"]
    assert [check["met"] for check in data["checks"]] == [True, False]
    assert data["figures"][1]["spread"]["median"] == 1234.5 and data["error"] is None
