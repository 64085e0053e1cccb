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
    """files: names with a call. words: calls by the word that they are left out by, most first.
    asked: the part that the user's own words leave out; the rest are files of the system."""

    files: int
    totals: Totals
    words: dict[str, int]
    asked: Excluded | None = None

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
    exclusion = report.exclusion
    if exclusion is None:
        return Excluded(0, Totals(), {}, Excluded(0, Totals(), {}))
    of_name = [exclusion.word_of(report.names[number]) for number in numbers.tolist()]
    words: Counter[str] = Counter()
    for word, count in zip(of_name, calls.tolist()):
        words[word] += count
    by_calls = dict(words.most_common())
    is_asked = np.array([word in exclusion.excluded for word in of_name], bool)
    asked = Excluded(
        int(is_asked.sum()), totals(columns.where(is_asked[at])),
        {word: count for word, count in by_calls.items() if word in exclusion.excluded},
    )  # fmt: skip
    return Excluded(len(numbers), totals(columns), by_calls, asked)
