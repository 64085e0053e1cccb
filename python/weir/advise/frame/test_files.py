# SPDX-License-Identifier: Apache-2.0
"""Files side by side: what the arrays have is what each file has."""

from __future__ import annotations

import numpy as np
import pytest
from advised import KIB, MS, US, stream
from wait_trace import WaitTrace

from weir.advise.advise import advise
from weir.advise.findings.small_requests.finding import (
    _is_small_on,
    _may_be_small_on,
    candidates,
    cured_ways,
    is_small,
)
from weir.advise.frame.facts import Facts
from weir.advise.frame.files import NAMES
from weir.report import build


@pytest.fixture
def facts(tmp_path):
    """Two steps: streams of small and of large calls, a file in common, one that is queried, one
    that is not found; buffered streams whose calls are small as requests alone."""
    for step in ("one", "two"):
        trace = WaitTrace(3)
        trace.barrier()
        stream(20, 8 * KIB, 300)(trace)
        stream(3, 4096 * KIB, 3, "/scratch/an/in.{rank}", "pread")(trace)
        for rank in range(3):
            trace.io(rank, 50 * US, "/scratch/an/common", "pwrite", 512, 512 * rank)
            trace.io(rank, 50 * US, "/scratch/an/common", "lseek")
        trace.io(1, 70 * US, "/scratch/an/queried", "stat")
        trace.io(1, 70 * US, "/scratch/an/queried", "stat", 0, error=2)
        for _ in range(2):
            trace.io(1, 70 * US, "/scratch/an/missing", "access", 0, error=2)
        for path, us in (("buffered", 600), ("cached", 3)):
            for call in range(320):
                trace.io(0, us * US if call % 32 == 31 else 100, f"/scratch/an/{path}", "fwrite",
                    128)
        trace.io(0, 30 * MS, "/scratch/an/buffered", "fread", 4 * KIB)
        trace.barrier()
        trace.write(tmp_path / "run" / step)
    return Facts(build(str(tmp_path / "run")))


def test_arrays_have_the_figures_of_each_file(facts):
    files = facts.files
    assert len(files) == 11 and list(files) == files.paths == sorted(files.paths)
    for at, path in enumerate(files):
        one = files[path]
        assert (one.path, one.ns, one.written) == (path, files.ns[at], files.written[at])
        assert one.critical_ns == files.critical_ns[at] == files.critical_of([path])
        for mine, every in ((one.read, files.read), (one.write, files.write)):
            for name in (*NAMES, "seconds", "span", "mean_bytes", "call_s", "outlier_s"):
                assert getattr(mine, name) == getattr(every, name)[at], (path, name)
            assert one.in_order(mine) == files.in_order(every)[at]
            assert mine.is_slow(30e6) == every.is_slow(30e6)[at]
        for some in (("stat",), ("pwrite", "lseek"), ("open", "no such operation")):
            assert one.of(some) == tuple(column[at] for column in files.of(some))
        for letters in ("O", "OCM", "RW"):
            assert one.of_class(letters) == tuple(column[at] for column in files.of_class(letters))
        for letter in "RW":
            assert one.on_streams(letter) == files.on_streams(letter)[at]
        assert one.totals.failed == files.failed[at]
    assert files["/scratch/an/buffered"].write.outlier_s > 0.5e-3
    assert files["/scratch/an/buffered"].write.longest_ns == 600 * US, "the longest of two steps"
    assert files["/scratch/an/queried"].totals.failed == 2
    assert files.missing == {"/scratch/an/missing"}


def test_masks_choose_what_conditions_on_one_file_do(facts):
    files, every = facts.files, list(facts.files.values())
    for name in ("read", "write"):
        mask = is_small(getattr(files, name))
        assert mask.tolist() == [is_small(getattr(one, name)) for one in every]
        small = [one.path for one in every if _is_small_on(one, name)]
        assert set(small) <= {one.path for one in files.chosen(_may_be_small_on(files, name))}
        assert ("/scratch/an/buffered" in small) and "/scratch/an/cached" not in small
    assert not is_small(files["/scratch/an/buffered"].write), "its calls are not slow, as requests"
    cured = [one for one in every if cured_ways(one)]
    assert [one for one in facts.among(candidates(files)) if cured_ways(one)] == cured
    assert {f"/scratch/an/out.{rank}" for rank in range(3)} <= {one.path for one in cured}
    assert "/scratch/an/buffered" in {one.path for one in cured}
    assert not any(one.path.startswith("/scratch/an/in.") for one in cured)
    mask = files.mask(["/scratch/an/queried", "/no/such/file"])
    assert [one.path for one in files.chosen(mask)] == ["/scratch/an/queried"]


def test_no_object_is_made_of_files_that_no_finding_is_about(tmp_path):
    trace = WaitTrace(2)
    trace.barrier()
    for rank in range(2):
        for number in range(50):
            trace.io(rank, 2, f"/scratch/an/{rank}.{number}", "pread", 4096)
    trace.barrier()
    trace.write(tmp_path / "run" / "s")
    facts = Facts(build(str(tmp_path / "run")))
    found = advise(facts)
    assert not found.advices and len(facts.files) == 100 and not facts.files.made
    assert np.array_equal(facts.files.places(["/scratch/an/0.0"]), [0])
