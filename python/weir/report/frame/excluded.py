# SPDX-License-Identifier: Apache-2.0
"""What a report leaves out of its figures by weir.analysis.exclusion, for its note and its JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.totals import Totals, totals
from weir.report.frame.build import Report, figure


@dataclass(frozen=True)
class Excluded:
    """files: names with a call. words: calls by the word that they are left out by, most first."""

    files: int
    totals: Totals
    words: dict[str, int]

    @property
    def calls(self) -> int:
        return self.totals.calls


@figure
def excluded_of(report: Report) -> Excluded:
    """Of the chosen ranks, all steps together."""
    columns = Columns.joined([step.excluded for step in report.steps])
    numbers, at = np.unique(columns.name, return_inverse=True)
    calls = np.zeros(len(numbers), np.int64)
    np.add.at(calls, at, columns.app_calls)
    words: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), calls.tolist()):
        if report.exclusion is not None:
            words[report.exclusion.word_of(report.names[number])] += count
    return Excluded(len(numbers), totals(columns), dict(words.most_common()))
