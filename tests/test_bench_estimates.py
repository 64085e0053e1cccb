# SPDX-License-Identifier: Apache-2.0
"""bench/estimates.py: its results outlive a case that fails, and an interrupt; its page."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import estimates  # noqa: E402
from estimate_page import page_text  # noqa: E402
from estimate_rows import Failed, Labels, Results, Row, Whole, read  # noqa: E402

WHOLE = dict(plain_s=3.0, tuned_s=2.0, low=0.8, high=1.2, sentence="outputs are identical")


def row(case: str, **more: object) -> Row:
    return Row(**{"case": case, "place": "lustre", "finding": "small-requests", "stack": "bufa",
        "low": 1.0, "high": 2.0, "obtained": 1.5, "requests_before": 100, "requests_after": 1,
        "kept": True, **more})


@pytest.mark.parametrize("gain, verdict", [
    ((1.0, 0.5, 1.5), "within"), ((2.0, 1.1, 2.9), "unsure"), ((2.0, 1.3, 2.7), "outside"),
    ((0.0, None, None), "outside"), ((None, None, None), "within")])
def test_wall_time_that_its_interval_does_not_tell_from_the_range_is_unsure(gain, verdict):
    middle, low, high = gain
    one = Whole("a", "lustre", gain=middle, gain_low=low, gain_high=high, **WHOLE)
    assert one.verdict == verdict


def test_results_are_in_the_file_after_each_case_and_go_on_there(tmp_path):
    path = tmp_path / "found.json"
    found = Results(path)
    found.add([row("a")], Whole("a", "lustre", **WHOLE))
    found.add_failure(Failed("b", "lustre", why="no b on PATH"))
    assert [len(json.loads(path.read_text())[key]) for key in ("rows", "wholes", "failures")] \
        == [1, 1, 1]
    again = Results(path, resume=True)
    assert again.has("a", "lustre") and not again.has("a", "nfs")
    assert not again.has("b", "lustre"), "a case that failed is run once more"
    again.add([], Whole("b", "lustre", **WHOLE))
    assert not again.failures and len(read([str(path)]).wholes) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_case_that_fails_is_a_result_and_the_next_one_is_run(tmp_path, monkeypatch):
    options = Namespace(preset="none", round="third", minutes=1)
    ran = []

    def tuned(name: str, *_: object) -> None:
        ran.append(name)
        raise KeyError("gone") if name == "tar" else OSError("disk full")

    monkeypatch.setattr(estimates, "missing", lambda name: "cp" if name == "cp" else None)
    monkeypatch.setattr(estimates, "tuned", tuned)
    found = Results(tmp_path / "found.json")
    for name in ("tar", "cp", "gzip"):
        estimates.run_case(name, None, tmp_path, tmp_path, options, found)
    assert ran == ["tar", "gzip"]
    assert [(one.case, one.round, one.why) for one in found.failures] == [
        ("tar", "third", "KeyError: 'gone'"), ("cp", "third", "no cp on PATH"),
        ("gzip", "third", "OSError: disk full")]


def test_the_page_has_the_rate_of_each_round_and_what_failed():
    found = Results(None)
    found.rows += [row("x", round="third"), row("y", round="third", obtained=3.0), row("z")]
    found.wholes += [Whole("x", "lustre", "third", 4.0, **WHOLE), Whole("z", "lustre", **WHOLE)]
    found.failures += [Failed("w", "lustre", "third", why="no w\non PATH")]
    text = page_text(found)
    assert "third round: 1 of 2 rules in range (50 %), median width 0.67" in text.replace("\n", " ")
    assert "| third round | 1 of 1 within, 0 unsure, 0 outside |" in text
    assert "- w on lustre has no figures: no w on PATH" in text
    assert text.index("third round\n") < text.index("## Cases that the model was fitted to")


def test_labels_of_a_case_are_those_of_its_rows():
    assert row("x", load=3.5).load == 3.5 and isinstance(row("x"), Labels)
