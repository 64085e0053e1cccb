# SPDX-License-Identifier: Apache-2.0
"""Finding small-requests: many reads and writes ask for less than 4 KiB."""

from __future__ import annotations

from weir.report.findings.finding import Finding, Limit
from weir.report.frame.amounts import number, share
from weir.report.frame.build import Report
from weir.report.requests.compute import requests_of

SHARE = Limit(
    meaning="small requests over all reads and writes",
    value=0.1,
    reason="chosen: a smaller part hardly shows in the time of the run",
)
MANY = Limit(
    meaning="reads and writes of the run",
    value=1000,
    reason="chosen: the size of fewer requests hardly matters",
)


def find(report: Report) -> str | None:
    if not report.keeps_names:
        return None  # requests of pipes and terminals are among them
    found = requests_of(report)
    if found.small_share is None or found.small_share < SHARE.value or found.of_app < MANY.value:
        return None
    small = share(found.small_app, found.of_app)
    return f"{small} of the {number(found.of_app)} reads and writes ask for less than 4 KiB."


SMALL_REQUESTS = Finding(
    name="small-requests",
    asks="Are many reads and writes smaller than a page of memory?",
    limits=(SHARE, MANY),
    page="guide/rules.md",
    find=find,
)
