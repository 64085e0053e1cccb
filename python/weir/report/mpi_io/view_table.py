# SPDX-License-Identifier: Apache-2.0
"""File views of MPI-IO as a drawing of characters and as a table of figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weir.analysis.ranks import RankName, rank_list
from weir.analysis.names import matches, shown
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.mpi_io.views import FileView, ViewGroup, all_views, view_groups

COLUMNS = 64  # of a drawing
MOST_ROWS = 16
LONGEST_RANKS = 12
_LISTED = 4  # blocks in the text
_SIGNS = "# all of them, + some, . none"


def _first_blocks(runs: Any) -> str:
    return " ".join(map(str, runs[:_LISTED])) + " ..." * (len(runs) > _LISTED) or "-"


VIEWS = Listing(
    "views",
    "file views: which bytes of the file each rank sees, of the first calls of MPI_File_set_view",
    (
        Field("step", "text", "", "name of the step"),
        Field("file", "path", "", "path of the file"),
        Field("view", "int", "", "number of the call on the file in the process, from 1"),
        Field("rank", "rank", "", "rank of the process", "Rank",
              show=lambda rank: rank if isinstance(rank, str) else rank.label),
        Field("displacement", "int", "bytes", "where the view begins", "displacement", show=str),
        Field("etype_bytes", "int", "bytes", "data of the elementary type", "etype", show=str),
        Field("data_bytes", "int", "bytes", "data of the file type", "data", show=str),
        Field("extent_bytes", "int", "bytes", "distance of its repetitions", "extent", show=str),
        Field("blocks", "int?", "", "its contiguous blocks; null: not all are known", "blocks"),
        Field("runs", "list", "", "its blocks as OFFSET+LENGTH; with *COUNT/STRIDE so many of "
              "them, each STRIDE bytes behind the one before it; again behind that: of all these", "<first blocks",
              show=_first_blocks),
        Field("recorded", "text", "", "all blocks, the first ones, or unknown (not decoded)"),
    ),
    lambda report: [_row(one) for one in all_views(report)],
)  # fmt: skip


def _row(view: FileView, ranks: str = "") -> dict[str, Any]:
    made = vars(view) | {"blocks": view.blocks, "runs": tuple(map(str, view.runs))}
    return made | {"rank": ranks} if ranks else made


def title_of(group: ViewGroup, cwd: str | None) -> str:
    numbers = ", ".join(map(str, group.numbers))
    return f"File view{'s' * (len(group.numbers) > 1)} {numbers} of {shown(group.file, cwd)} in " \
        f"{group.step}"


def chosen(group: ViewGroup, most: int) -> tuple[tuple[FileView, tuple[RankName, ...]], ...]:
    """The first views and the last one, where they are more."""
    every = group.by_rank
    return every if len(every) <= most else (*every[:most - 1], every[-1])


def drawing(group: ViewGroup, title: str, begin: int, unit: int, cells: int) -> Table:
    """A row for each view, a character for each `unit` bytes from `begin` on."""
    edges = begin + unit * np.arange(cells + 1, dtype=np.int64)
    rows = []
    for view, ranks in chosen(group, MOST_ROWS):
        seen, unknown = view.seen(edges), view.unrecorded(edges)
        signs = np.select([unknown > 0, seen >= unit, seen > 0], ["?", "#", "+"], ".")
        rows.append((_label(ranks), "".join(signs)))
    end = f"{int(edges[-1])}"
    scale = f"{begin}".ljust(max(cells - len(end), len(f"{begin}") + 1)) + end
    signs = _SIGNS + ", ? not recorded" * any("?" in row[1] for row in rows)
    remarks = [f"a character: {unit} byte{'s' * (unit > 1)}; {signs}"]
    if len(rows) < len(group.by_rank):
        remarks.append(f"{len(rows)} of {len(group.by_rank)} different views: the first ones and "
                       "the last")
    return Table(title, ("<Rank", "<bytes of the file"), tuple(rows), footer=(("", scale),),
        remarks=tuple(remarks))


def _label(ranks: tuple[RankName, ...]) -> str:
    text = rank_list(ranks)
    return text if len(text) <= LONGEST_RANKS else text[:LONGEST_RANKS - 3] + "..."


def drawings(group: ViewGroup, title: str) -> Iterator[Table]:
    """One file type of every rank; where the characters are too coarse for it, a part too, if it
    can be, where two ranks begin."""
    if not all(view.is_drawable for view, _ in group.by_rank):
        return
    begin, end = group.range
    unit, length = group.unit, end - begin
    if length <= 0:
        return
    is_exact = length <= COLUMNS * unit
    cell = -(-length // (COLUMNS * unit)) * unit
    yield drawing(group, title, begin, cell, -(-length // cell))
    near = 2 * group.shortest_period
    if not is_exact and near and 2 * near <= length:
        cell = -(-near // (COLUMNS * unit)) * unit
        firsts = sorted(view.displacement + view.runs[0].offset for view, _ in group.by_rank
            if view.runs)
        pairs = zip(firsts, firsts[1:])
        first = next((one for one, after in pairs if after - one < near), firsts[0])
        yield drawing(group, f"Detail of {title[0].lower()}{title[1:]}", first, cell,
            -(-near // cell))


def figures(group: ViewGroup, most: int = MOST_ROWS) -> Table:
    rows = [_row(view, _label(ranks)) for view, ranks in chosen(group, most)]
    return VIEWS.table("Bytes of the views", rows, remarks=(
        "blocks of the file type, in bytes from its begin: OFFSET+LENGTH, *COUNT/STRIDE: so many "
        "of them, each STRIDE bytes behind the one before it",))


def _tables(report: Report, options: Options) -> Iterator[Table | str]:
    groups = [one for one in view_groups(report) if options.pattern is None
        or matches(one.file, options.pattern)]
    plain = sum(len(one.numbers) for one in groups if one.is_plain)
    wanted = [one for one in groups if not one.is_plain]
    files = list(dict.fromkeys((one.step, one.file) for one in wanted))
    top = options.detail_limit
    for group in wanted:
        if (group.step, group.file) not in files[:top]:
            continue
        yield from drawings(group, title_of(group, report.cwd))
        yield figures(group)
    if top is not None and len(files) > top:
        yield f"({top} of {len(files)} files; --tables views --top 0 prints all)"
    if plain and options.names(FILE_VIEWS):
        yield f"(not drawn: {plain} view{'s' * (plain > 1)} in which every rank sees all bytes)"


FILE_VIEWS = TableKind(
    name="views",
    heading="File views",
    shows="MPI-IO: which bytes of a file each rank sees",
    tables=_tables,
    why_empty="MPI_File_set_view was called by no rank, or the run was recorded at level summary",
    page="own",
    json=lambda report, _: {"views": VIEWS.json(VIEWS.rows(report))},
    has_rows=lambda report: any(not one.is_plain for one in view_groups(report)),
    listings=(VIEWS,),
)
