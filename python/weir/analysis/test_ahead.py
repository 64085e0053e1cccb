# SPDX-License-Identifier: Apache-2.0
"""Work that a thread does before anybody asks for it."""

from __future__ import annotations

import threading

import pytest

from weir.analysis.ahead import begin


def test_works_are_done_in_turn_while_the_caller_goes_on():
    may_go_on, done = threading.Event(), []
    first, second = begin(lambda: (may_go_on.wait(60), done.append(1)), lambda: done.append(2) or 7)
    assert not done
    may_go_on.set()
    assert second.answer() == 7 and done == [1, 2]
    assert first.answer() == (True, None)


def test_what_a_work_raises_is_raised_where_its_answer_is_asked_for():
    failing, other = begin(lambda: 1 // 0, lambda: "made")
    assert other.answer() == "made"
    with pytest.raises(ZeroDivisionError):
        failing.answer()
