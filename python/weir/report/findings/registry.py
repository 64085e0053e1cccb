# SPDX-License-Identifier: Apache-2.0
"""All findings, the most important first: the overview shows them in this order."""

from __future__ import annotations

from weir.report.findings.read_modify_write import READ_MODIFY_WRITE
from weir.report.findings.small_requests import SMALL_REQUESTS
from weir.report.findings.uneven_ranks import UNEVEN_RANKS
from weir.report.findings.uneven_steps import UNEVEN_STEPS
from weir.report.frame.build import Report

FINDINGS = (
    UNEVEN_STEPS,
    UNEVEN_RANKS,
    READ_MODIFY_WRITE,
    SMALL_REQUESTS,
)


def findings_of(report: Report) -> list[tuple[str, str]]:
    """Name and sentence of each finding of the run."""
    found = ((one.name, one.find(report)) for one in FINDINGS)
    return [(name, sentence) for name, sentence in found if sentence is not None]
