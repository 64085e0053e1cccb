# SPDX-License-Identifier: Apache-2.0
"""The four tables beside the reference's, and the same as JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from weir.bench import reference
from weir.bench._statistics import ratio
from weir.bench.nersc import Row, Table, verdict

_HEAD = (
    f"{'':<22}{'here':>10}{'':>46}  |{'reference':>12}\n"
    f"{'FFIO spec':<18}{'PEs':>4}{'LOGIO reqs':>12}{'fewer':>9}{'MB':>9}{'IOWAIT s':>10}{'MPP s':>8}{'elapsed':>8}"
    f"  |{'LOGIO reqs':>12}{'fewer':>9}{'MB':>9}{'IOWAIT s':>10}{'MPP s':>8}"
)
REQUEST_LIMIT = 1 << 20  # what Linux hands a FUSE file system at once


def text(tables: Sequence[Table]) -> str:
    """All tables of one case, with the goals under them."""
    case = tables[0].case
    lines = [f"Case {case.number}: {reference.TITLES[case.number]} ({case.shape})",
        *_HEAD.split("\n")]
    for table in tables:
        lines += [_line(table, row) for row in table.rows]
    return "\n".join([*lines, *(line for table in tables for line in _goal_lines(table))]) + "\n"


def _line(table: Table, row: Row) -> str:
    name = f"{row.spec:<18}{row.ranks:>4}"
    then = _reference(table, row)
    if row.error:
        return f"{name}  failed: {row.error}"
    base = table.row(reference.GOALS[table.case.number].base)
    requests = row.median("requests") or 0
    here = (
        f"{requests:>12,.0f}{_factor(base.median('requests'), requests):>9}{(row.median('bytes') or 0) / 1e6:>9.1f}"
        f"{row.median('io_wait_s'):>10.3f}{row.median('mpp_s'):>8.2f}{row.median('elapsed_s'):>8.2f}"
    )
    return f"{name}{here}  |{then}"


def _reference(table: Table, row: Row) -> str:
    rows = reference.ROWS[table.case.number]
    found = rows.get((row.spec, row.ranks)) or rows.get((row.spec, None))
    if found is None:
        return ""
    goal = reference.GOALS[table.case.number]
    base = rows.get((goal.base, row.ranks)) or rows.get((goal.base, None))
    size = f"{found.megabytes:,.0f}" if found.megabytes else ""
    fewer = _factor(base.requests if base else None, found.requests)
    return f"{found.requests:>12,}{fewer:>9}{size:>9}{found.io_wait_s:>10,.0f}{found.mpp_s:>8,.0f}"


def _factor(above: float | None, below: float) -> str:
    value = ratio(above, below) if above is not None else None
    if value is None or value == 1 or value < 0.95:
        return ""
    return f"{value:.{1 if value < 100 else 0}f} x"


def _goal_lines(table: Table) -> list[str]:
    outcome = verdict(table)
    if outcome is None:
        return []
    goal = outcome.goal
    asked = (
        f"goal at {table.case.ranks} PEs: {goal.base} -> {goal.row}, requests {goal.factor:g} x "
        f"fewer"
    )
    if goal.bytes_of_file:
        asked += ", bytes 1.00 x the file"
    if outcome.factor is None:
        return [f"{asked}: not measured"]
    found = f"{outcome.factor:.2f} x"
    if outcome.bytes_ratio is not None:
        found += f", {outcome.bytes_ratio:.2f} x the file"
    lines = [f"{asked}: {'met' if outcome.met else 'MISSED'} ({found})"]
    if table.case.file_bytes:
        least = math.ceil(table.case.file_bytes / REQUEST_LIMIT)
        lines.append(f"  the least there can be: {least:,} requests (Linux hands a FUSE file "
                     f"system 1 MiB at once)")
    return lines


def as_data(tables: Sequence[Table], **conditions: Any) -> dict[str, Any]:
    """JSON of everything: conditions, rows with medians and ranges, goals."""
    found = []
    for table in tables:
        outcome = verdict(table)
        found.append(
            {
                "case": table.case.number,
                "title": reference.TITLES[table.case.number],
                "ranks": table.case.ranks,
                "shape": table.case.shape,
                "rows": [_row_data(table, row) for row in table.rows],
                "goal": asdict(outcome) if outcome else None,
            }
        )
    return {"machine": machine(), **conditions, "tables": found}


def _row_data(table: Table, row: Row) -> dict[str, Any]:
    rows = reference.ROWS[table.case.number]
    then = rows.get((row.spec, row.ranks)) or rows.get((row.spec, None))
    return {
        "spec": row.spec,
        "ranks": row.ranks,
        "stack": row.stack,
        "error": row.error or None,
        "measured": {name: asdict(spread) for name, spread in row.measured.items()},
        "reference": asdict(then) if then else None,
    }


def machine() -> dict[str, Any]:
    return {"system": platform.system(), "release": platform.release(),
        "machine": platform.machine(), "cores": os.cpu_count()}
