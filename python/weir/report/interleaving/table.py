# SPDX-License-Identifier: Apache-2.0
"""Table interleaving: what remains of the order of each rank's requests on its node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weir.report.frame.declared import Field, declared_table, sums
from weir.report.frame.figures import percent
from weir.report.interleaving.compute import COUNTS, interleaving_of

_MOST_NODES = 8
_UNDER = "contiguous calls, %"


def _remarks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of all files of each node together."""
    nodes = sorted({(row["step"], row["node"]) for row in rows})
    for step, node in nodes[:_MOST_NODES]:
        found = sums([row for row in rows if (row["step"], row["node"]) == (step, node)], *COUNTS)
        calls = found["calls"]
        yield (f"{node} in {step}: {calls} calls, of which {percent(found['of_rank'], calls)} begin "
               f"where the last one of the same rank ended, {percent(found['of_node'], calls)} where "
               f"the last one of the node did")
    if len(nodes) > _MOST_NODES:
        yield f"{len(nodes) - _MOST_NODES} more nodes: weir query has them in interleaving"


INTERLEAVING = declared_table(
    name="interleaving",
    heading="Contiguous calls of a rank that are not contiguous on its node",
    shows="contiguous requests of a rank, and of its node",
    fields=[
        Field("step", "text", "", "name of the step", "Step"),
        Field("node", "text", "", "name of the node", "Node"),
        Field("ranks", "int", "", "ranks of the node that read or write the file", "ranks"),
        Field("calls", "int", "", "transfers of known offset at the lowest level seen", "calls"),
        Field("bytes", "int", "bytes", "that they moved", "MB"),
        Field("of_rank", "int", "", "calls that begin where the last one of the same rank, on any "
              "file, ended"),
        Field("of_file", "int", "", "calls that begin where the last one of any rank of the node "
              "on this file ended"),
        Field("of_node", "int", "", "calls that begin where the last one of any rank of the node "
              "on any file ended"),
        Field("of_rank_share", "real", "1", "of_rank of calls", "rank", _UNDER),
        Field("of_file_share", "real", "1", "of_file of calls", "file", _UNDER),
        Field("of_node_share", "real", "1", "of_node of calls", "node", _UNDER),
        Field("file", "path", "", "path that the file had last in the run", "File"),
    ],
    rows=interleaving_of,
    remarks=_remarks,
    why_empty="it has no reads or writes at level trace",
    in_all=False,
)  # fmt: skip
