# SPDX-License-Identifier: Apache-2.0
"""Fortran units: statements against the system requests that they became."""

from __future__ import annotations

from typing import Any

from weir.analysis.names import shown
from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, milliseconds
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.units.compute import units_of


def unit_table(report: Report, top: int | None = 20) -> Table:
    """Fortran units: statements against the system requests that they became."""
    units = units_of(report)[:top]
    rows = tuple(
        (
            ",".join(map(str, one.units)) or "-", str(one.reads), str(one.writes), f"{megabytes(one.payload_bytes):.3f}",
            f"{milliseconds(one.ns):.3f}", str(one.system_requests), f"{megabytes(one.system_bytes):.3f}",
            shown(one.file, report.cwd),
        )
        for one in units
    )  # fmt: skip
    statements, became = sum(u.statements for u in units_of(report)), sum(u.system_requests for u in units_of(report))
    remarks = (f"{statements} statements became {became} system requests",) if units_of(report) else ()
    of = f" ({len(units)} of {len(units_of(report))})" if len(units) < len(units_of(report)) else ""
    columns = ("Unit", "READ", "WRITE", "MB", "ms", "system", "MB", "<File")
    groups = (("", 1), ("statements", 4), ("requests", 2), ("", 1))
    return Table(f"Fortran units{of}", columns, rows, groups, remarks=remarks)


def _units_json(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "units": list(u.units), "file": u.file, "reads": u.reads, "writes": u.writes, "others": u.others,
            "payload_bytes": u.payload_bytes, "seconds": u.ns / 1e9, "system_requests": u.system_requests,
            "system_bytes": u.system_bytes,
        }
        for u in units_of(report)
    ]  # fmt: skip


UNITS = TableKind(
    name="units",
    heading="Fortran units",
    short_heading="Fortran",
    shows="Fortran statements by unit, and the requests they became",
    tables=lambda report, options: [unit_table(report, options.limit)] if units_of(report) else [],
    why_empty="no Fortran statement read or wrote",
    json=lambda report, _: {"fortran_units": _units_json(report)},
    has_rows=lambda report: bool(units_of(report)),
)
