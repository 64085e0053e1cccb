# SPDX-License-Identifier: Apache-2.0
"""Table ranks: one line for each rank of each step, those with most I/O time first in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing, sums
from weir.report.frame.figures import share_text, short
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.ranks.compute import ranks_of

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
_SUMMED = tuple(one.name for one in LISTING.fields[4:12])


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """A table for each step: all ranks in their order, or those with most I/O time of many."""
    for step in report.steps:
        rows = [row for row in ranks_of(report) if row["step"] == step.name]
        if not rows:
            continue
        top = options.limit
        is_cut = top is not None and top < len(rows)
        listed = sorted(rows, key=lambda row: -row["ns"]) if is_cut else rows
        ranks = [row for row in rows if row["rank"].is_rank]
        means = {key: round(of / len(ranks)) for key, of in sums(ranks, *_SUMMED).items()
            } if len(ranks) > 1 else {}
        footer = [{"rank": "MEAN", **means,
            "wall_share": sum(row["wall_share"] for row in ranks) / len(ranks)}] if means else []
        is_parallel = bool(step.data.worlds)
        title = (_HEADING if is_parallel else "I/O of each program") + (f" of {step.name}" if len(report.steps) > 1 else "")
        nodes = {row["node"] for row in rows}
        without = ["step", *(["node"] if len(nodes) == 1 else [])]
        if all(row["processes"] == 1 or row["rank"].is_rank for row in rows):
            without.append("processes")
        made = LISTING.table(title, listed, top=top, which=", those with most I/O time",
            without=without, footer=footer)
        yield made if is_parallel else replace(made, columns=("<Program", *made.columns[1:]))


RANKS = TableKind(
    name="ranks",
    heading=_HEADING,
    short_heading="Ranks",
    shows=_SHOWS,
    tables=_tables,
    json=lambda report, options: {"ranks": LISTING.first(ranks_of(report), options.json_limit)},
    has_rows=lambda report: any(step.ranks for step in report.steps),
    listings=(LISTING,),
)
