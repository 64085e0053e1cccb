# SPDX-License-Identifier: Apache-2.0
"""I/O by mounted file system."""

from __future__ import annotations

from weir.report.file_systems.compute import FileSystemTotals, file_systems_of
from weir.report.frame.build import Report, figure
from weir.report.frame.declared import Field, Row, declared_table
from weir.report.frame.figures import rate


def _row(one: FileSystemTotals) -> Row:
    mount, moved = one.mount, one.bytes_read + one.bytes_written
    figures = one.nodes, one.files, one.calls, one.bytes_read, one.bytes_written, one.ns
    return mount.point, mount.kind, mount.source, *figures, rate(moved, one.ns)


@figure
def _rows(report: Report) -> list[Row]:
    return [_row(one) for one in file_systems_of(report)]


FILE_SYSTEMS = declared_table(
    name="filesystems",
    heading="File systems",
    shows="I/O by mounted file system",
    fields=[
        Field("mount", "text", "", "directory where it is mounted; ?: not known", heading="Mount"),
        Field("kind", "text", "", "kind of file system: ext4, nfs4, lustre, ..."),
        Field("source", "text", "", "what is mounted: a device, server:/path"),
        Field("nodes", "int", "", "nodes that used it"),
        Field("files", "int", "", "files that were opened, read or written, also unsuccessfully"),
        Field("calls", "int", "", "calls of the application on these files"),
        Field("bytes_read", "int", "bytes", "read from them", heading="MB", group="read"),
        Field("bytes_written", "int", "bytes", "written to them", heading="MB", group="written"),
        Field("ns", "int", "ns", "durations of the calls added up, of all ranks", heading="s"),
        Field("mb_per_s", "real?", "MB/s", "bytes read and written, by these seconds", heading="MB/s"),
    ],
    rows=_rows,
)
