# SPDX-License-Identifier: Apache-2.0
"""I/O by mounted file system."""

from __future__ import annotations

from weir.report.file_systems.compute import FileSystemTotals, file_systems_of
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Row, declared_table
from weir.report.frame.figures import rate


def _row(one: FileSystemTotals) -> Row:
    mount, moved = one.mount, one.bytes_read + one.bytes_written
    named = {"mount": mount.point, "kind": mount.kind, "source": mount.source}
    return {**vars(one), **named, "mb_per_s": rate(moved, one.ns)}


FILE_SYSTEMS = declared_table(
    name="filesystems",
    heading="File systems",
    shows="I/O by mounted file system",
    fields=[
        Field("mount", "text", "", "directory where it is mounted; ?: not known", "Mount"),
        Field("kind", "text", "", "kind of file system: ext4, nfs4, lustre, ...", "kind"),
        Field("source", "text", "", "what is mounted: a device, server:/path", "source"),
        Field("nodes", "int", "", "nodes that used it", "nodes"),
        Field("files", "int", "", "files that were opened, read or written, also unsuccessfully",
              "files"),
        Field("calls", "int", "", "calls of the application on these files", "calls"),
        Field("bytes_read", "int", "bytes", "read from them", "MB", "read"),
        Field("bytes_written", "int", "bytes", "written to them", "MB", "written"),
        Field("ns", "int", "ns", "durations of the calls added up, of all ranks", "s"),
        Field("mb_per_s", "real?", "MB/s", "bytes read and written, by these seconds", "MB/s"),
    ],
    rows=lambda report: [_row(one) for one in file_systems_of(report)],
)
