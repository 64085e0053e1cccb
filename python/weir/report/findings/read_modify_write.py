# SPDX-License-Identifier: Apache-2.0
"""Finding read-modify-write: files are read back, block by block, while they are written."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from weir.analysis.patterns import find_patterns
from weir.report.files.compute import files_of
from weir.report.findings.finding import Finding, Limit
from weir.report.frame.amounts import amount, number
from weir.report.frame.build import Report
from weir.report.patterns.compute import patterns_of

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


def _is_read_back(read: dict[str, Any], written: dict[str, Any]) -> bool:
    """Whether the file is made from its beginning, and read less than it is written meanwhile."""
    is_made = written["begin"] == 0 and 0 < read["bytes"] < written["bytes"]
    moved = read["bytes"] + written["bytes"]
    is_much = moved >= AMOUNT.value * max(read["end"], written["end"])
    return is_made and is_much and written["switches"] >= SWITCHES.value


def find(report: Report) -> str | None:
    if not any(0 < one.bytes_read < one.bytes_written for one in files_of(report)):
        return None  # without a pass over the records
    rows: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in patterns_of(report):
        rows[row["step"], row["file"]][row["way"]] = row
    both = [one for one in rows.values() if len(one) == 2]
    found = [one for one in both if _is_read_back(one["read"], one["write"])]
    if not found:
        return None
    names = sorted({one["write"]["file"] for one in found})
    patterns = find_patterns(names, [0] * len(names))
    first = max(patterns, key=lambda one: len(one.members)).text
    more = f" and {number(len(patterns) - 1)} more" if len(patterns) > 1 else ""
    read, written = (sum(one[way]["bytes"] for one in found) for way in ("read", "write"))
    size = sum(max(one["read"]["end"], one["write"]["end"]) for one in found)
    return (
        f"{first}{more}: {amount(written)} are written and {amount(read)} read back for "
        f"{amount(size)} of files, with {number(sum(one['write']['switches'] for one in found))} "
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
