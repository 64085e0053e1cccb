# SPDX-License-Identifier: Apache-2.0
"""Sizes and durations of requests, in bins of powers of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import class_codes
from weir.analysis.step import StepData
from weir.report.frame.build import Report, figure
from weir.trace._abi import BINS
from weir.trace.ops import BELOW

SMALL_BYTES = 4096
_SMALL_BINS = SMALL_BYTES.bit_length()  # bins 0..12 hold sizes 0..4095: the share is exact


@dataclass(frozen=True)
class SizeBin:
    """Requests of least_bytes to most_bytes (None: open). below_*: made by a language's library for
    its statements."""

    least_bytes: int
    most_bytes: int | None
    reads: int
    writes: int
    below_reads: int
    below_writes: int


@dataclass(frozen=True)
class DurationBin:
    """Requests that took from_ns to to_ns (None: open)."""

    from_ns: int
    to_ns: int | None
    reads: int
    writes: int


@dataclass(frozen=True)
class Requests:
    """Bins from the first to the last that is not empty; small_*: requests under 4 KiB, of_*: of
    how many."""

    sizes: tuple[SizeBin, ...]
    durations: tuple[DurationBin, ...]
    small_app: int
    of_app: int
    small_below: int
    of_below: int

    @property
    def small_share(self) -> float | None:
        return self.small_app / self.of_app if self.of_app else None


def requests(steps: list[StepData], masks: list[np.ndarray], *,
        all_names: bool = False) -> Requests:
    """Requests (reads and writes, failed ones too) of the chosen members of some steps."""
    sizes, durations = np.zeros((4, BINS), np.int64), np.zeros((2, BINS), np.int64)
    slopes = [1 << 48]
    for data, mask in zip(steps, masks):
        table = data.sums.histograms
        _add(table[mask[table["member"]] & ((table["is_file"] != 0) | all_names)], sizes, durations)
        slopes += [line.multiplier for line in data.lines]
    app, below = sizes[:2].sum(axis=0), sizes[2:].sum(axis=0)
    return Requests(
        _size_bins(sizes),
        _duration_bins(durations, slopes[-1] / 2**48),
        int(app[:_SMALL_BINS].sum()),
        int(app.sum()),
        int(below[:_SMALL_BINS].sum()),
        int(below.sum()),
    )


def _add(table: np.ndarray, sizes: np.ndarray, durations: np.ndarray) -> None:
    codes = class_codes()[table["op"]]
    is_below = (table["flags"] & BELOW) != 0
    for i, code in enumerate(b"RW"):
        for j, below in enumerate((False, True)):
            chosen = table[(codes == code) & (is_below == below)]
            sizes[i + 2 * j] += chosen["by_size"].sum(axis=0).astype(np.int64)
            if not below:
                durations[i] += chosen["by_duration"].sum(axis=0).astype(np.int64)


def _span(counts: np.ndarray) -> range:
    used = np.flatnonzero(counts.sum(axis=0))
    return range(int(used[0]), int(used[-1]) + 1) if len(used) else range(0)


def _size_bins(counts: np.ndarray) -> tuple[SizeBin, ...]:
    return tuple(
        SizeBin(_low(k), None if k == BINS - 1 else _low(k + 1) - 1,
            *(int(n) for n in counts[:, k])) for k in _span(counts)
    )


def _duration_bins(counts: np.ndarray, ns_per_tick: float) -> tuple[DurationBin, ...]:
    """Bins are of ticks: their limits in ns are those of one of the clocks, which run alike on
    nodes of one kind."""
    return tuple(
        DurationBin(
            round(_low(k) * ns_per_tick),
            None if k == BINS - 1 else round(_low(k + 1) * ns_per_tick),
            *(int(n) for n in counts[:, k]),
        )
        for k in _span(counts)
    )


def _low(k: int) -> int:
    return 0 if k == 0 else 1 << (k - 1)


@figure
def requests_of(report: Report) -> Requests:
    """Of the chosen members, all steps together."""
    return requests(report.data, report.masks, all_names=report.choice.everything)
