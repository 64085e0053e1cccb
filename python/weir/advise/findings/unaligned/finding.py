# SPDX-License-Identifier: Apache-2.0
"""Finding unaligned: several ranks write one file at offsets that are off its stripes, so that two
of them share a stripe and its lock."""

from __future__ import annotations

import numpy as np

from weir.advise.frame.facts import Facts, File, Files
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.small_requests.finding import SMALL, SLOW
from weir.advise.frame.grouping import Group, find_by_pattern
from weir.advise.frame.libraries import fitting
from weir.advise.frame.saving import Range
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import counted, share
from weir.report.frame.figures import size

OFF = Limit("share of writes that begin off the stripe", 0.5, "share",
    "chosen: with fewer most stripes have one writer")
LARGE = Limit("mean size of a write, more than", SMALL.value, "B",
    "smaller ones are a matter of their number (small-requests, interleaved-writes)")
_ALIGNMENTS = {"netcdf": "nc_def_var_chunking", "hdf5": "H5Pset_alignment",
    "mpi_io": "hint striping_unit"}  # fmt: skip
MOST_GAIN = 0.5  # of the time of the writes: two writers of a stripe take turns


def _candidates(facts: Facts, files: Files) -> np.ndarray:
    way = files.write
    return ((way.stripe > 0) & (way.ranks > 1) & way.is_slow(way.ranks * SLOW.value)
        & (way.mean_bytes > LARGE.value) & (way.off_stripe >= OFF.value * way.calls))


def _is_one(facts: Facts, file: File) -> bool:
    return not facts.is_local(file.path)


def _advice(facts: Facts, group: Group) -> Advice:
    ways = [one.write for one in group.files]
    calls, off, stripe = sum(w.calls for w in ways), sum(w.off_stripe for w in ways), ways[0].stripe
    parts = [(one, Range(0.0, MOST_GAIN * one.write.seconds)) for one in group.files]
    return Advice(
        "unaligned", group.what, group.paths,
        f"{share(off, calls)} of {counted(calls, 'write')} of {max(w.ranks for w in ways)} ranks "
        f"begin off the stripe of {size(stripe)}.",
        facts.saving(parts, 0),
        f"Let each rank begin at a multiple of the stripe{fitting(group.files, _ALIGNMENTS)}.",
        Rule(group.pattern, f"gather:{max(stripe, 1 << 16) >> 10}KiB:16"),
    )  # fmt: skip


UNALIGNED = Finding(
    name="unaligned",
    asks="Do ranks share stripes of a file, because they write off their beginnings?",
    shrinks="I/O",
    limits=(OFF, LARGE, SLOW),
    page="guide/patterns.md",
    table="patterns",
    cure="gather",
    decides="whether the file system locks stripes",
    find=find_by_pattern(_candidates, _advice, is_one=_is_one),
)
