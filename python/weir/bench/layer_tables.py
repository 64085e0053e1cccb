# SPDX-License-Identifier: Apache-2.0
"""The lines of the layers' bench as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from weir.bench._statistics import Spread
from weir.bench.lab import Check, Figure, Line, Outcome
from weir.bench.nersc_tables import machine


def text(line: Line, outcome: Outcome) -> str:
    """What one line found."""
    rows = [f"{line.name}: {line.title}"]
    if outcome.error:
        return "\n".join([*rows, f"  error: {outcome.error}", ""])
    rows += [_figure(figure) for figure in outcome.figures]
    rows += [_check(check) for check in outcome.checks]
    return "\n".join([*rows, ""])


def _figure(figure: Figure) -> str:
    s: Spread = figure.spread
    return (
        f"  {figure.name:<30}{_number(s.median):>12} {figure.unit:<8} ({_number(s.low)} to "
        f"{_number(s.high)})"
    )


def _check(check: Check) -> str:
    sign = ">=" if check.least else "<="
    return (
        f"  {check.what:<30}{_number(check.value):>12} {'':<8} goal {sign} {check.goal:g}: "
        f"{'met' if check.met else 'MISSED'}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def as_data(found: Sequence[tuple[Line, Outcome]], **conditions: Any) -> dict[str, Any]:
    lines = [
        {
            "name": line.name,
            "title": line.title,
            "error": outcome.error or None,
            "figures": [asdict(figure) for figure in outcome.figures],
            "checks": [{**asdict(check), "met": check.met} for check in outcome.checks],
        }
        for line, outcome in found
    ]
    return {"machine": machine(), **conditions, "lines": lines}
