# SPDX-License-Identifier: Apache-2.0
"""Table ranks: one line for each rank of each step, those with most I/O time first in the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing, Made
from weir.report.frame.figures import share_text, short
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.ranks.compute import KINDS, ranks_of, ranks_of_step

_HEADING = "I/O of each rank"
_SHOWS = "calls, bytes and I/O time of each rank, and the mean of all"



def _millions(count: int) -> str:
    return short(count / 1e6)


def _billions(count: int) -> str:
    return short(count / 1e9)


LISTING = Listing(
    "ranks",
    f"{_SHOWS}, as in `weir report --tables ranks`",
    (
        Field("step", "text", "", "name of the step", "Step"),
        Field("rank", "rank", "", "rank of the process, -1: processes without one", "<Rank"),
        Field("processes", "int", "", "how many they are", "proc."),
        Field("node", "text", "", "its node; several with commas between them", "Node"),
        Field("read_calls", "int", "", "reads of the program", "read", "Calls"),
        Field("write_calls", "int", "", "writes of the program", "write", "Calls"),
        Field("other_calls", "int", "", "opens, closes, seeks, stat and the like", "other",
              "Calls"),
        Field("read_bytes", "int", "bytes", "read at the lowest level seen", "read", "MB",
              _millions),
        Field("write_bytes", "int", "bytes", "written at the lowest level seen", "write",
              "MB", _millions),
        Field("read_ns", "int", "ns", "time in reads", "read", "I/O seconds",
              _billions),
        Field("write_ns", "int", "ns", "time in writes", "write", "I/O seconds",
              _billions),
        Field("other_ns", "int", "ns", "time in other calls", "other", "I/O seconds",
              _billions),
        Field("ns", "int", "ns", "time in all calls"),
        Field("wall_share", "real", "1", "ns by the wall time of the step; several threads at once "
              "make more than 1", "% wall",
              show=share_text),
        Field("files", "int?", "", "files that were opened, read or written; null: level summary"),
    ),
    ranks_of,
)  # fmt: skip
_SUMMED = (*(f"{kind}_{what}" for kind, _ in KINDS for what in ("calls", "ns", "bytes")), "ns")


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """A table for each step: all ranks in their order, or those with most I/O time of many."""
    for step in report.steps:
        found, top = ranks_of_step(step), options.limit
        rows = found.rows()
        if not rows:
            continue
        listed = rows
        if top is not None and top < len(rows):
            order = np.argsort(-found.figures["ns"], kind="stable").tolist()
            listed = Made(len(rows), lambda at, rows=rows, order=order: rows[order[at]])
        ranks = np.flatnonzero(found.are_ranks)
        footer = []
        if len(ranks) > 1:
            means = {key: round(int(found.figures[key][ranks].sum()) / len(ranks))
                for key in _SUMMED}
            footer = [{"rank": "MEAN", **means,
                "wall_share": float(found.wall_share[ranks].mean())}]
        is_parallel = bool(step.data.worlds)
        title = (_HEADING if is_parallel else "I/O of each program") + (f" of {step.name}" if len(report.steps) > 1 else "")
        nodes = set(found.nodes)
        without = ["step", *(["node"] if len(nodes) == 1 else [])]
        if ((found.processes == 1) | found.are_ranks).all():
            without.append("processes")
        made = LISTING.table(title, listed, top=top, which=", those with most I/O time",
            without=without, footer=footer)
        yield made if is_parallel else replace(made, columns=("<Program", *made.columns[1:]))


def _every(report: Report) -> Sequence[dict[str, Any]]:
    """Rows of all steps; of one step only those that are asked for are made."""
    if len(report.steps) == 1:
        return ranks_of_step(report.steps[0]).rows()
    return ranks_of(report)


RANKS = TableKind(
    name="ranks",
    heading=_HEADING,
    short_heading="Ranks",
    shows=_SHOWS,
    tables=_tables,
    json=lambda report, options: {"ranks": LISTING.first(_every(report), options.json_limit)},
    has_rows=lambda report: any(step.ranks for step in report.steps),
    listings=(LISTING,),
)
