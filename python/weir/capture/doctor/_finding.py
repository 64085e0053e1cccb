# SPDX-License-Identifier: Apache-2.0
"""One thing that ``weir doctor`` has to say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FINE, NOTE, FINDING = "fine", "note", "finding"


@dataclass(frozen=True)
class Finding:
    """``name`` is stable, for scripts; ``status`` is fine, note (good to know) or finding
    (something is wrong or unseen)."""

    name: str
    status: str
    text: str


def any_findings(findings: Iterable[Finding]) -> bool:
    return any(f.status == FINDING for f in findings)
