# SPDX-License-Identifier: Apache-2.0
"""How a finding is declared: once, in the module that looks for it. docs/extending.md adds one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weir.report.frame.build import Report


@dataclass(frozen=True)
class Limit:
    """A figure that decides whether something is found, and the reason for its value."""

    meaning: str
    value: float
    reason: str


@dataclass(frozen=True)
class Finding:
    """name: in JSON. asks: the question that it answers, one sentence. limits: all that its
    function compares with. page: of the documentation, from docs/. find: the sentence for the
    user, or None where there is nothing to say; a function of the report alone."""

    name: str
    asks: str
    limits: tuple[Limit, ...]
    page: str
    find: Callable[[Report], str | None]
