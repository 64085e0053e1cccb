# SPDX-License-Identifier: Apache-2.0
"""I/O by mounted file system."""

from __future__ import annotations

from typing import Any

from weir.report.file_systems.compute import file_systems_of
from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, rate, whole
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table


def file_system_table(report: Report) -> Table:
    """I/O by mounted file system."""
    rows = tuple(
        (
            one.mount.point, one.mount.kind, one.mount.source, str(one.nodes), str(one.files), str(one.calls),
            f"{megabytes(one.bytes_read):.3f}", f"{megabytes(one.bytes_written):.3f}", f"{one.ns / 1e9:.3f}",
            whole(rate(one.bytes_read + one.bytes_written, one.ns)),
        )
        for one in file_systems_of(report)
    )  # fmt: skip
    columns = ("<Mount", "<kind", "<source", "nodes", "files", "calls", "MB", "MB", "sec", "MB/s")
    return Table("File systems", columns, rows, (("", 6), ("read", 1), ("written", 1), ("", 2)))


def _file_systems_json(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "mount": fs.mount.point, "kind": fs.mount.kind, "source": fs.mount.source, "nodes": fs.nodes, "files": fs.files,
            "calls": fs.calls, "bytes_read": fs.bytes_read, "bytes_written": fs.bytes_written, "seconds": fs.ns / 1e9,
        }
        for fs in file_systems_of(report)
    ]  # fmt: skip


FILE_SYSTEMS = TableKind(
    name="filesystems",
    heading="File systems",
    shows="I/O by mounted file system",
    tables=lambda report, _: [file_system_table(report)] if file_systems_of(report) else [],
    json=lambda report, _: {"filesystems": _file_systems_json(report)},
    has_rows=lambda report: bool(file_systems_of(report)),
)
