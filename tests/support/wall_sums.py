# SPDX-License-Identifier: Apache-2.0
"""That the parts of the wall time of each rank, and of each stretch of a phase, add up exactly."""

from __future__ import annotations

import os

import numpy as np

from weir.report import build
from weir.report.frame.build import StepReport
from weir.report.wall.compute import PARTS, WallTime, wall_time_of


def split_exactly(step: StepReport) -> WallTime:
    """The split of a step, after a check of its sums in ns."""
    found = wall_time_of(step)
    assert found is not None, "the step has no records of single calls, or of MPI"
    for parts, length in (
        (found.of_ranks, found.end_ns - found.begin_ns),
        (found.of_spans, found.spans.end_ns - found.spans.begin_ns),
    ):
        columns = [getattr(parts, part) for part in PARTS]
        assert all((column >= 0).all() for column in columns)
        assert np.array_equal(sum(columns), length)
        assert (parts.background_ns <= parts.computing_ns).all()
    return found


def splits_of(run: str | os.PathLike[str]) -> list[WallTime]:
    """Of all steps of a run."""
    return [split_exactly(step) for step in build(run).steps]
