# SPDX-License-Identifier: Apache-2.0
"""Runs of a benchmark that ends in time, and that goes on."""

from __future__ import annotations

import pytest

from weir._errors import InputError
from weir.bench._journal import Journal, TimeOver
from weir.bench._process import RunFailed

COMMON = {"scale": 0.01, "pes": (2, 4)}


def failing():
    raise RunFailed("no such program")


def test_runs_that_are_done_are_not_repeated(tmp_path):
    path = tmp_path / "state"
    first = Journal(COMMON, path)
    assert first.once("a", lambda: {"mb_s": 1.5}) == {"mb_s": 1.5}
    with pytest.raises(RunFailed):
        first.once("b", failing)
    with path.open("a") as file:
        file.write('{"run": "c", "resul')  # the machine stopped
    second = Journal(COMMON, path)
    assert second.once("a", failing) == {"mb_s": 1.5}
    assert second.once("b", lambda: 2) == 2 and second.once("c", lambda: [3]) == [3]
    assert [Journal(COMMON, path).once(name, failing) for name in "abc"] == [{"mb_s": 1.5}, 2, [3]]


def test_runs_with_other_options_are_not_mixed(tmp_path):
    path = tmp_path / "state"
    Journal(COMMON, path)
    with pytest.raises(InputError, match=r"other options \(scale\)"):
        Journal({**COMMON, "scale": 1}, path)
    path.write_text("some text\nof somebody\n")
    with pytest.raises(InputError, match="no file of --resume"):
        Journal(COMMON, path)
    assert path.read_text() == "some text\nof somebody\n"


def test_no_run_begins_when_the_time_is_over(tmp_path):
    now = [0.0]
    journal = Journal(COMMON, None, minutes=2, now=lambda: now[0])
    journal.until(0.5)
    now[0] = 59
    assert journal.once("a", lambda: 1) == 1
    now[0] = 61
    assert journal.once("a", failing) == 1
    with pytest.raises(TimeOver, match="not run: the limit of 2 minutes was reached"):
        journal.once("b", lambda: 1)
    journal.until(1)
    assert journal.once("b", lambda: 2) == 2
