# SPDX-License-Identifier: Apache-2.0
"""Table forwarding: by node, the ranks that do I/O and what they do for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weir.report.forwarding.compute import forwarding_of, may_forward
from weir.report.frame.declared import Field, declared_table


def _remarks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    ranks, doing = (sum(row[key] for row in rows) for key in ("ranks", "io_ranks"))
    yield (
        f"{doing} of {ranks} ranks do I/O (1 % of what the busiest rank moves, or more); forwarded: "
        "the most that they wrote for other ranks: what they gathered, what they received in "
        "messages beyond what they sent, and what MPI-IO gave them"
    )


FORWARDING = declared_table(
    name="forwarding",
    heading="I/O that ranks do for others, by node",
    short_heading="Forwarding",
    shows="ranks that do I/O for others, by node, and how much",
    why_empty="no rank writes for others, or calls of MPI were not recorded (level trace)",
    fields=[
        Field("step", "text", "", "name of the step", "Step"),
        Field("node", "text", "", "the node", "Node"),
        Field("ranks", "int", "", "ranks on it", "all", "ranks"),
        Field("io_ranks", "int", "", "ranks that move 1 % or more of the bytes that the rank with "
            "most bytes moves to and from files", "I/O", "ranks"),
        Field("which", "ranks", "", "these ranks", "which", "ranks"),
        Field("written_bytes", "int", "bytes", "that these ranks wrote to files", "written", "MB"),
        Field("forwarded_bytes", "int", "bytes", "of the bytes written, at most so many for other "
            "ranks: rank by rank the smaller one of what it wrote, and net_bytes + mpi_io_bytes",
            "forwarded", "MB"),
        Field("forwarded_share", "real?", "1", "forwarded_bytes / written_bytes", "%", "MB"),
        Field("received_bytes", "int", "bytes", "that other ranks sent to these ranks in messages, "
            "MPI_Gather and MPI_Gatherv, whatever for", "received", "MB"),
        Field("remote_bytes", "int", "bytes", "of these from other nodes", "remote", "MB"),
        Field("net_bytes", "int", "bytes", "of received_bytes, what came in MPI_Gather and "
            "MPI_Gatherv, and what came in messages beyond what the rank sent in messages"),
        Field("mpi_io_bytes", "int", "bytes", "that these ranks wrote to files of MPI-IO beyond "
            "what they asked to write, for ranks that wrote less than they asked", "MPI-IO", "MB"),
        Field("read_bytes", "int", "bytes", "that these ranks read from files", "read", "MB"),
        Field("sent_bytes", "int", "bytes", "that these ranks sent to others in messages, "
            "MPI_Bcast (once for each receiver), MPI_Scatter and MPI_Scatterv, whatever for",
            "sent", "MB"),
    ],
    rows=forwarding_of,
    has_rows=lambda report: may_forward(report) and bool(forwarding_of(report)),
    remarks=_remarks,
)  # fmt: skip
