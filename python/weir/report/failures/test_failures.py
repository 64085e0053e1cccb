# SPDX-License-Identifier: Apache-2.0
"""Calls that failed and usually do not: with the reason at level trace, without it at others."""

from __future__ import annotations

import errno
import json

import pytest
from wait_trace import WaitTrace

from weir.report import build
from weir.report.failures.compute import failures_of
from weir.report.failures.table import failure_statement

CALLS = (  # operation, file, errno
    ("write", "/data/out", errno.ENOSPC), ("write", "/data/out", errno.ENOSPC),
    ("write", "/data/out", 0), ("open", "/data/nowhere", errno.ENOENT),
    ("open", "/data/out", errno.EACCES), ("open", "/data/input", errno.EACCES),
    ("open", "/data/other", errno.EROFS), ("copy_file_range", "/data/copy", errno.EXDEV),
    ("fsync", "/data/out", errno.EIO), ("stat", "/data/x", 2),
    ("read", "pipe:[1]", errno.EAGAIN),
)  # fmt: skip


@pytest.fixture
def run(tmp_path):
    program = WaitTrace(1)
    for op, file, error in CALLS:
        program.io(0, 10, file, op, error=error)
    program.write(tmp_path / "run" / "s")
    return tmp_path / "run"


def test_searches_and_attempts_are_no_failures(run):
    found = {(one.op, one.file, one.error): one.calls for one in failures_of(build(str(run)))}
    assert found == {
        ("write", "/data/out", errno.ENOSPC): 2, ("open", "/data/out", errno.EACCES): 1,
        ("open", "/data/other", errno.EROFS): 1, ("fsync", "/data/out", errno.EIO): 1,
    }  # fmt: skip


def test_the_statement_begins_with_writes(run):
    said = failure_statement(build(str(run)))
    assert said is not None
    assert said.startswith("2 calls of write on /data/out failed: No space left on device; 1 ")
    assert said.endswith("1 more call failed (--tables failures)")


FULL = "dd if=/dev/zero of=big bs=4k count=64 status=none; cat nowhere; true"


@pytest.mark.parametrize(("level", "reason"), [
    ("trace", "failed: No space left on device (--tables failures)"),
    ("detail", "failed; level trace records the reasons (--tables failures)"),
])  # fmt: skip
def test_a_full_disk_is_named_on_the_first_screen(weir, tmp_path, level, reason):
    """Of dd and cat, with a layer that makes the 9th write to the file fail."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "big"\nstack = "error:op=write:errno=ENOSPC:rate=1:after=8:times=1"\n')
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--level", level, "--", "sh", "-c",
        FULL, cwd=tmp_path)
    screen = " ".join(weir("report", tmp_path / "run").stdout.split())
    assert f"1 write of big {reason}" in screen
    (one,) = json.loads(weir("report", tmp_path / "run", "--json").stdout)["failures"]
    assert (one["op"], one["calls"]) == ("write", 1)
    assert one["error"] == (errno.ENOSPC if level == "trace" else None)
    table = weir("report", tmp_path / "run", "--tables", "failures").stdout
    assert "Calls that failed" in table
