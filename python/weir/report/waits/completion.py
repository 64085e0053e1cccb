# SPDX-License-Identifier: Apache-2.0
"""Collectives that do not block, but that no rank completed before the last one came to complete
it: meetings where they are waited for.

MPI moves such a collective on while its ranks are within MPI. A rank that does I/O between
MPI_Iallreduce and MPI_Wait then keeps the others waiting, although it began the collective in time.
That it was so is seen when nobody left before the last of them came to its wait.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.report.waits.instances import Arrivals, instance_keys
from weir.report.waits.locations import Locations


def met_at_completion(arrivals: Arrivals, completions: Arrivals, locations: Locations) -> Arrivals:
    """The arrivals; those of such collectives are where the rank began to wait. completions: by
    collective and rank, when it waited for it."""
    started = np.flatnonzero(~arrivals.is_blocking)
    if not len(started) or not len(completions.comm):
        return arrivals
    keys = instance_keys(arrivals.comm[started], arrivals.sequence[started])
    _, at = np.unique(np.r_[keys, instance_keys(completions.comm, completions.sequence)],
        return_inverse=True)
    of, sought = at[: len(started)], at[: len(started)] * len(
        locations) + arrivals.location[started]
    pairs = at[len(started) :] * len(locations) + completions.location
    order = np.argsort(pairs, kind="stable")
    place = np.minimum(np.searchsorted(pairs[order], sought), len(pairs) - 1)
    is_known = pairs[order][place] == sought
    row = order[place]
    last_came, first_left = np.full(of.max() + 1, np.iinfo(np.int64).min), np.full(of.max() + 1,
        np.iinfo(np.int64).max)
    np.maximum.at(last_came, of, completions.start_ns[row])
    np.minimum.at(first_left, of, np.where(is_known, completions.end_ns[row],
        np.iinfo(np.int64).min))
    is_met = first_left[of] >= last_came[of]  # not, when a rank's completion is not known
    into, came = started[is_met], row[is_met]
    changed = {}
    for column in ("start_ns", "end_ns", "routine"):
        changed[column] = getattr(arrivals, column).copy()
        changed[column][into] = getattr(completions, column)[came]
    changed["is_blocking"] = arrivals.is_blocking.copy()
    changed["is_blocking"][into] = True
    return replace(arrivals, **changed)
