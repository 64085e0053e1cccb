# SPDX-License-Identifier: Apache-2.0
"""Finding read-modify-write: files are read back, block by block, while they are written."""

from __future__ import annotations

import numpy as np

from weir.analysis.patterns import find_patterns
from weir.report.files.compute import files_of
from weir.report.findings.finding import Finding, Limit
from weir.report.frame.amounts import amount, number
from weir.report.frame.build import Report
from weir.report.patterns.moved import moved_of

AMOUNT = Limit(
    meaning="bytes read and written over the size of the file",
    value=1.25,
    reason="chosen: a quarter more than the file has begins to show in the time of its output",
)
SWITCHES = Limit(
    meaning="changes between reading and writing of the file",
    value=32,
    reason="chosen: a program that reads a file back once or twice has few",
)


def _read_back(rows: np.ndarray) -> list[np.ndarray]:
    """Of each file of a step that is read back: name, bytes read and written, size, switches."""
    reads, writes = rows[rows["way"] == 0], rows[rows["way"] == 1]
    is_both = np.isin(writes["name"], reads["name"])
    writes = writes[is_both]
    reads = reads[np.searchsorted(reads["name"], writes["name"])]
    name, read, written = writes["name"], reads["bytes"], writes["bytes"]
    size, switches = np.maximum(writes["end"], reads["end"]), writes["switches"]
    is_made = (writes["begin"] == 0) & (read > 0) & (read < written)
    is_much = read + written >= AMOUNT.value * size
    found = is_made & is_much & (switches >= SWITCHES.value)
    return [column[found] for column in (name, read, written, size, switches)]


def find(report: Report) -> str | None:
    if not any(0 < one.bytes_read < one.bytes_written for one in files_of(report)):
        return None  # without a pass over the records
    found = [_read_back(rows) for rows in moved_of(report)]
    name, read, written, size, switches = map(np.concatenate, zip(*found))
    if not len(name):
        return None
    names = sorted(report.names[one] for one in np.unique(name).tolist())
    patterns = find_patterns(names, [0] * len(names))
    first = max(patterns, key=lambda one: len(one.members)).text
    more = f" and {number(len(patterns) - 1)} more" if len(patterns) > 1 else ""
    return (
        f"{first}{more}: {amount(written.sum())} are written and {amount(read.sum())} read back for "
        f"{amount(size.sum())} of files, with {number(switches.sum())} "
        "changes between reading and writing. A library that fills whole blocks does so (classic "
        "netCDF reads each block before it changes it); a larger buffer, or layer bufa, avoids it."
    )


READ_MODIFY_WRITE = Finding(
    name="read-modify-write",
    asks="Is a file read back, block by block, while it is written?",
    limits=(AMOUNT, SWITCHES),
    page="guide/patterns.md",
    find=find,
)
