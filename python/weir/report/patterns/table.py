# SPDX-License-Identifier: Apache-2.0
"""Access patterns by file, and by file and rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from weir.analysis.names import matches
from weir.report.frame.build import Report, figure
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import percent, seconds
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.patterns.compute import WAYS, Rows, patterns_by_rank, patterns_of
from weir.report.patterns.groups import group_rows, group_table

_CLASSES = (
    Field("sequential", "int", "", "calls that begin behind the last byte of the one before "
          "(Darshan's SEQ)"),
    Field("consecutive", "int", "", "calls that begin right behind it (Darshan's CONSEC)"),
    Field("first", "int", "", "calls that are the first of their direction after an open"),
    Field("adjacent", "int", "", "of the others: right behind the one before"),
    Field("strided", "int", "", "after it, at a distance that occurs at least twice, "
          "and in one of 16 of the calls that begin after it"),
    Field("backward", "int", "", "before its end, at a distance that occurs at least twice, and in "
          "one of 16 of the calls that begin before it"),
    Field("random", "int", "", "at any other place"),
    Field("unknown", "int", "", "at an offset that is not known (O_APPEND, streams opened unseen)"),
)  # fmt: skip
_COUNTS = (
    Field("sizes", "list", "", "the four most common sizes in bytes, as SIZExCALLS"),
    Field("strides", "list", "", "the four most common distances in bytes from the end of a call "
          "to the beginning of the next, likewise; negative: backward"),
    Field("off_block", "int", "", "calls whose offset is no multiple of block"),
    Field("block", "int", "bytes", "block size of the file; 4096 where it is not known"),
    Field("off_stripe", "int?", "", "calls whose offset is no multiple of stripe"),
    Field("stripe", "int?", "bytes", "stripe of the file, where MPI-IO reports it"),
    Field("begin", "int", "bytes", "the first byte"),
    Field("end", "int", "bytes", "behind the last byte"),
    Field("again", "int", "bytes", "that a rank moved more than once, at least: its bytes less the "
          "range that they lie in"),
    Field("switches", "int", "", "changes between reading and writing of the file"),
    Field("ns", "int", "ns", "time in the calls"),
    Field("longest_ns", "int", "ns", "time of the longest one", key="longest_s"),
)  # fmt: skip
_WHAT = (
    Field("step", "text", "", "name of the step"),
    Field("file", "path", "", "path that the file had last in the run; of one that several files "
          "had, that of the calls"),
    Field("way", "text", "", "read or write"),
)
_VOLUME = (
    Field("calls", "int", "", "transfers at the lowest level seen, failed ones left out"),
    Field("bytes", "int", "bytes", "that they moved"),
)

BY_RANK = Listing(
    "access_patterns_by_rank",
    "how each rank reads and writes each file",
    (*_WHAT, Field("rank", "rank", "", "the rank, -1: a process without one"), *_VOLUME,
     *_CLASSES, *_COUNTS),
    patterns_by_rank,
)  # fmt: skip
BY_FILE = Listing(
    "access_patterns",
    "how the ranks read and write each file, as in `weir report --tables patterns`",
    (
        *_WHAT, Field("ranks", "int", "", "ranks with such calls"), *_VOLUME, *_CLASSES, *_COUNTS,
        Field("interleaved", "int", "", "ranks whose range of bytes overlaps that of another rank "
              "of their node; 0 where the report is of one rank"),
        Field("fastest_rank", "rank", "", "the rank with the least time in these calls"),
        Field("fastest_ns", "int", "ns", "its time"),
        Field("slowest_rank", "rank", "", "the rank with the most time"),
        Field("slowest_ns", "int", "ns", "its time"),
        Field("deviation_ns", "int", "ns", "standard deviation of the ranks' times"),
        Field("deviation_bytes", "int", "bytes", "standard deviation of the ranks' bytes"),
    ),
    patterns_of,
)  # fmt: skip

_OF_GROUP = {one.name: one for one in (*_CLASSES, *_COUNTS)}
BY_GROUP = Listing(
    "access_patterns_by_group",
    "how files that belong together are read and written, added up over files, ranks and steps, as "
    "in `weir report --tables patterns`",
    (
        Field("files", "text", "", "what the paths have in common: <N> and * for what differs"),
        Field("way", "text", "", "read or write"),
        Field("count", "int", "", "files with such calls"),
        *_VOLUME, *_CLASSES,
        *(_OF_GROUP[name] for name in ("off_block", "again", "switches", "ns")),
    ),
    lambda report: groups_of(report),
)  # fmt: skip


@figure
def groups_of(report: Report) -> list[dict[str, Any]]:
    """Of all files."""
    return group_rows(report, patterns_of(report))


_COLUMNS = ("Calls", "MB", "ranks", "adj.", "strided", "back", "random", "?", "size", "stride",
            "unal.", "switch", "mixed", "slowest", "s", "<", "<File")  # fmt: skip
_PARTS = ("adjacent", "strided", "backward", "random", "unknown")


def _cells(row: dict[str, Any], shown: str, is_one_rank: bool) -> tuple[str, ...]:
    calls = row["calls"]
    size = row["sizes"][0].split("x")[0] if row["sizes"] else "-"
    is_regular = bool(row["strides"]) and row["strided"] + row["backward"] > 0
    stride = row["strides"][0].split("x")[0] if is_regular else "-"
    return (
        str(calls), f"{row['bytes'] / 1e6:.3f}", str(row["ranks"]),
        *(percent(row[part], calls) for part in _PARTS), size, stride,
        percent(row["off_block"], calls), str(row["switches"]),
        "-" if is_one_rank else str(row["interleaved"]),
        row["slowest_rank"].label, seconds(row["slowest_ns"]), row["way"][0], shown,
    )  # fmt: skip


def _tables(report: Report, options: Options) -> Iterator[Table]:
    rows, wanted = patterns_of(report), options.pattern
    if wanted is not None:
        [names] = rows.columns("name")
        every = np.unique(names).tolist()
        rows = rows.chosen(np.isin(names, [n for n in every if matches(report.names[n], wanted)]))
    if not len(rows):
        return
    file = next(one for one in BY_FILE.fields if one.name == "file")
    listed = rows[: options.limit]
    of = f" ({len(listed)} of {len(rows)})" if len(listed) < len(rows) else ""
    is_one_rank = report.choice.rank is not None
    others = f"; -: other ranks than {report.choice.who} are not looked at"
    mixed = _MIXED + others * is_one_rank
    yield Table(
        f"Access patterns by MB{of}", _COLUMNS,
        tuple(_cells(row, file.cell(row["file"], report.cwd), is_one_rank) for row in listed),
        footer=tuple(_totals(rows)), remarks=(*_REMARKS, mixed),
    )  # fmt: skip
    if together := group_table(report, rows, options.limit):
        yield together


def _totals(rows: Rows) -> Iterator[tuple[str, ...]]:
    """Of all files together: reads, writes."""
    summed = ("calls", "bytes", *_PARTS, "off_block")
    of_way, *columns = rows.columns("way", *summed)
    for number, way in enumerate(WAYS):
        mine = of_way == number
        if not mine.any():
            continue
        all_of = {name: int(column[mine].sum()) for name, column in zip(summed, columns)}
        calls = all_of["calls"]
        yield (
            str(calls), f"{all_of['bytes'] / 1e6:.3f}", "",
            *(percent(all_of[part], calls) for part in _PARTS), "", "",
            percent(all_of["off_block"], calls), "", "", "", "", way[0], "TOTAL",
        )  # fmt: skip


_REMARKS: tuple[str, ...] = (
    "adj.: begins where the rank's last call ended; strided: after it, at a distance that is "
    "repeated; back: before it, likewise; random: elsewhere; ?: offset not known; the rest: first "
    "calls after an open",
    "size, stride: the most common, bytes; unal.: offset is no multiple of the block size",
)
_MIXED = "mixed: ranks whose range of bytes overlaps that of another rank of their node"


def _has_rows(report: Report) -> bool:
    return any(step.level == "trace" and bool(step.all.bytes) for step in report.steps)


def _json(report: Report, options: Options) -> dict[str, Any]:
    return {"patterns": BY_FILE.first(patterns_of(report), options.json_limit),
        "patterns_by_group": BY_GROUP.first(groups_of(report), options.json_limit)}


def _every(report: Report, options: Options) -> Iterable[Table]:
    return _tables(report, options) if _has_rows(report) else ()


PATTERNS = TableKind(
    name="patterns",
    heading="Access patterns",
    shows="sequential, strided, random access; sizes; slowest ranks",
    tables=_every,
    why_empty="it has no reads or writes at level trace",
    has_rows=_has_rows,
    json=_json,
    listings=(BY_FILE, BY_GROUP, BY_RANK),
)
