# SPDX-License-Identifier: Apache-2.0
"""Finding one-binary: of a job with many starts, and with few."""

from __future__ import annotations

import pytest
from advised import MIB, MS, S, advise_on, names, the
from wait_trace import WaitTrace


def started(number: int, start_ms: int) -> WaitTrace:
    """A step whose ranks begin some time behind it, and compute for a second."""
    trace = WaitTrace(2)
    trace.begin_ns = start_ms * MS
    trace.now = [trace.begin_ns] * 2
    trace.barrier()
    for rank in (0, 1):
        trace.compute(rank, S)
        trace.io(rank, MS, f"/scratch/an/out.{number}.{rank}", "pwrite", MIB, 0)
    trace.barrier()
    return trace


def test_many_starts_are_found_with_what_they_cost(tmp_path):
    one = the(advise_on(tmp_path, *(started(n, 500) for n in range(4))), "one-binary")
    assert "4 parallel programs" in one.sentence.replace("\u00a0", " ")
    # three of four starts are spared
    assert one.saving.critical.high == pytest.approx(3 * 0.5, rel=0.02)
    assert one.saving.critical.low == pytest.approx(one.saving.critical.high / 2)


@pytest.mark.parametrize(("steps", "start_ms"), [(2, 500), (4, 10)])
def test_few_or_short_ones_are_not(tmp_path, steps, start_ms):
    report = advise_on(tmp_path, *(started(n, start_ms) for n in range(steps)))
    assert "one-binary" not in names(report)
