# SPDX-License-Identifier: Apache-2.0
"""Copies that a weir tune left behind: those that are reported, and those that are not."""

from __future__ import annotations

import fcntl
import os

import pytest

from weir.tune import claim


def left(directory, own=None):
    return list(claim.left_behind(directory, own))


def killed(directory, out):
    """The copy of a weir tune that was killed."""
    work = claim.work_directory(directory, claim.mark_of(out))
    with claim.claimed(work, out):
        work.mkdir()
    return work


def test_what_a_killed_one_left_is_reported_with_what_removes_it(tmp_path):
    out = tmp_path / "an out"
    work = killed(tmp_path, out)
    (one,) = left(tmp_path)
    assert (one.work, one.out) == (work, str(out))
    assert f"with -o {out} continues it" in one.text and f"rm -r {work} {work}.owner" in one.text
    assert not left(tmp_path, work), "its own is removed by the caller"


def test_one_that_runs_is_not_reported_and_leaves_nothing(tmp_path):
    work = claim.work_directory(tmp_path, "x")
    with claim.claimed(work, tmp_path / "out"):
        work.mkdir()
        assert not left(tmp_path)
        work.rmdir()
    assert not os.listdir(tmp_path)


def test_a_result_that_was_not_moved_is_reported_once_with_its_copy(tmp_path):
    work = killed(tmp_path, tmp_path / "out")
    work.with_name(f"{work.name}-result").mkdir()
    (one,) = left(tmp_path)
    assert len(one.paths) == 3
    work.rmdir()
    assert left(tmp_path)[0].work == work


def test_one_without_an_owner_is_reported_without_its_output(tmp_path):
    claim.work_directory(tmp_path, "older").mkdir()
    (one,) = left(tmp_path)
    assert one.out is None and "continues it" not in one.text


def test_where_locks_say_nothing_nothing_is_reported(tmp_path, monkeypatch):
    killed(tmp_path, tmp_path / "out")

    def refused(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refused)
    assert not left(tmp_path)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(OSError, match="copy that runs work in"):
        with claim.claimed(tmp_path / "none" / ".weir-tune-x", tmp_path / "out"):
            pass
