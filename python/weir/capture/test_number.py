# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

from weir.capture import drain
from weir.capture._number import VARIABLE, is_within, make_number, number_of


def test_a_run_has_its_own_processes_and_those_of_the_runs_within_it():
    first, other = make_number({}), make_number({})
    inner = make_number({VARIABLE: str(first)})
    beside = make_number({VARIABLE: str(first)})
    assert number_of({VARIABLE: str(first)}) == first and first < 1 << 63
    assert is_within(first, first) and is_within(inner, first) and is_within(beside, first)
    assert is_within(inner, inner) and not is_within(first, inner)
    assert not is_within(beside, inner) and not is_within(other, first)
    assert not is_within(0, first) and not is_within(0, 0)


def test_what_is_no_number_is_none():
    assert [number_of({VARIABLE: text}) for text in ("", "-3", "x", "9" * 20)] == [0] * 4
    assert number_of({}) == 0


def line(path: str, run: int) -> bytes:
    return json.dumps({"path": path, "errno": 28, "error": "ENOSPC", "lost_bytes": 10, "pid": 7,
        "run": run}).encode() + b"\n"


def test_losses_of_programs_without_a_run_are_taken_once(tmp_path, monkeypatch):
    report = tmp_path / "errors"
    monkeypatch.setattr(drain, "_reports", lambda job: [report])
    report.write_bytes(line("/a", 0) + line("/b", 5))
    assert [one.path for one in drain.take_unnumbered("j")] == ["/a"]
    with report.open("ab") as file:
        file.write(line("/c", 0))
    assert [one.path for one in drain.take_unnumbered("j")] == ["/c"]
    assert drain.take_unnumbered("j") == []
    assert [one.path for one in drain.losses_since("j", {})] == ["/a", "/b", "/c"]
