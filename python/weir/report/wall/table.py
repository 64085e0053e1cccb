# SPDX-License-Identifier: Apache-2.0
"""Tables wall_time and wall_time_by_rank: where the time of the ranks goes (docs/guide/waits.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from weir.analysis.ranks import RankName
from weir.report.frame.amounts import plain, share
from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.declared import Field, Listing, Made, sums
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.programs import one_of, plural
from weir.report.frame.table import Table
from weir.report.waits.locations import names_of
from weir.report.wall.compute import PARTS, Parts, WallTime, may_be_known, wall_time_of
from weir.trace.ops import op_named

MOST_STEPS = 8  # of a remark
_UNITS = 1000  # shares are rounded to these, so that they add up to 1
_TIMES = (
    Field("rank_ns", "int", "ns", "wall time of these ranks, added up: the sum of the next five",
          "rank-s"),
    Field("computing_ns", "int", "ns", "in neither I/O nor calls of MPI that are recorded"),
    Field("io_ns", "int", "ns", "in I/O on files"),
    Field("io_wait_ns", "int", "ns",
          "waiting in MPI for a rank in I/O, or for one that waits for such a rank"),
    Field("imbalance_ns", "int", "ns",
          "waiting in MPI for a rank that computes, or for one that waits for such a rank"),
    Field("communication_ns", "int", "ns", "the rest of the time in MPI and MPI-IO"),
    Field("background_ns", "int", "ns",
          "I/O of other threads while the rank computes: part of computing_ns"),
)  # fmt: skip
_HEADINGS = ("computing", "I/O", "I/O wait", "imbalance", "communic.")
_OF_ALL = "% of rank-seconds"
_SHARES = tuple(
    Field(part.removesuffix("_ns") + "_share", "real", "1",
          f"{part} by rank_ns, rounded to 0.001: the five add up to 1", heading, _OF_ALL,
          show=lambda share: f"{100 * share:.1f}")
    for part, heading in zip(PARTS, _HEADINGS)
)  # fmt: skip
_SUMMED = (*PARTS, "background_ns")
_OF_MPI = ("io_wait_share", "imbalance_share", "communication_share")
_STEP = Field("step", "text", "", "name of the step", "Step")

LISTING = Listing(
    "wall_time",
    "wall time of the ranks of each step and of each phase, split into what they did, as in `weir "
    "report --tables wall`",
    (
        _STEP,
        Field("phase", "text?", "", "of which marks or rules tell; null: the whole step", "Phase"),
        Field("ranks", "int", "", "how many they are", "ranks"),
        *_TIMES,
        *_SHARES,
    ),
    lambda report: rows_of(report),
)
BY_RANK = Listing(
    "wall_time_by_rank",
    "wall time of each rank, split into what it did, as in `weir report --tables wall`",
    (
        Field("step", "text", "", "name of the step"),
        Field("rank", "rank", "", "rank of the process", "<Rank"),
        Field("program", "text", "", "base name of the program that it runs", "Program"),
        Field("node", "text", "", "name of its node", "Node"),
        *_TIMES,
        *_SHARES,
    ),
    lambda report: _rows_by_rank(report.steps),
)


def shares(row: dict[str, Any]) -> dict[str, float]:
    """The parts by their sum, rounded so that they add up to 1 as well."""
    whole = sum(row[part] for part in PARTS)
    exact = [_UNITS * row[part] for part in PARTS]
    units = [one // whole if whole else 0 for one in exact]
    rest = [one % whole if whole else 0 for one in exact]
    missing = _UNITS - sum(units) if whole else 0
    for at in sorted(range(len(PARTS)), key=lambda at: -rest[at])[:missing]:
        units[at] += 1
    names = (one.name for one in _SHARES)
    return {name: one / _UNITS for name, one in zip(names, units)}


def _row(parts: dict[str, int], **about: Any) -> dict[str, Any]:
    return about | {"rank_ns": sum(parts[part] for part in PARTS)} | parts | shares(parts)


def _chosen(step: StepReport, found: WallTime) -> np.ndarray:
    """The ranks that the report is about."""
    return np.flatnonzero(step.choice.chosen(found.locations.rank, found.locations.number))


@figure
def rows_of(report: Report) -> list[dict[str, Any]]:
    """Of all steps."""
    return [row for step in report.steps for row in rows_of_step(step)]


def rows_of_step(step: StepReport) -> Iterator[dict[str, Any]]:
    """Of the step, and of its phases where these are not stretches between barriers."""
    found = wall_time_of(step)
    if found is not None:
        at = _chosen(step, found)
        yield _row(found.of_ranks.sums(at), step=step.name, phase=None, ranks=len(at))
        yield from _phase_rows(step, found, at)


def _phase_rows(step: StepReport, found: WallTime, at: np.ndarray) -> Iterator[dict[str, Any]]:
    spans = found.spans
    if spans.source == "barriers":
        return
    is_chosen = np.isin(spans.location, at)
    for number, phase in enumerate(spans.names):
        rows = np.flatnonzero(is_chosen & (spans.phase == number))
        ranks = len(np.unique(spans.location[rows]))
        yield _row(found.of_spans.sums(rows), step=step.name, phase=phase, ranks=ranks)


def by_rank(step: StepReport) -> Made:
    """In the order of programs and ranks. cost: each row is made when it is asked for; times_of()
    has the figures of all ranks at once."""
    return _rows_by_rank([step])


@dataclass(frozen=True)
class Times:
    """Rows of by_rank(), without their texts. ns: a column for each of PARTS, and background_ns."""

    ranks: list[RankName]
    nodes: list[str]
    ns: np.ndarray


@figure
def times_of(step: StepReport) -> Times | None:
    """None where the wall time is not known."""
    found = wall_time_of(step)
    if found is None:
        return None
    at, names = _chosen(step, found), names_of(step.data, step.names.ranks, found.locations)
    nodes = [one.node for one in step.data.files]
    return Times([names[one] for one in at.tolist()],
        [nodes[one] for one in found.locations.node[at].tolist()],
        np.column_stack([getattr(found.of_ranks, one)[at] for one in _SUMMED]))


def _rows_by_rank(steps: Sequence[StepReport]) -> Made:
    """by_rank() of some steps."""
    every = [(step, found) for step in steps if (found := wall_time_of(step)) is not None]
    names = [names_of(step.data, step.names.ranks, found.locations) for step, found in every]
    places = [(at, rank) for at, one in enumerate(every) for rank in _chosen(*one).tolist()]

    def row(place: int) -> dict[str, Any]:
        at, rank = places[place]
        (step, found), locations = every[at], every[at][1].locations
        return _row(
            {one.name: int(getattr(found.of_ranks, one.name)[rank]) for one in fields(Parts)},
            step=step.name,
            rank=names[at][rank],
            program=step.data.members[int(locations.speaker[rank])].process.program,
            node=step.data.files[int(locations.node[rank])].node,
        )

    return Made(len(places), row)


def before_mpi_of(step: StepReport) -> np.ndarray:
    """From the start of each process to MPI_Init, ns, by row of by_rank(): loading the program, and
    imports of Python. 0 where it is not called. The wall time is known."""
    found, value = wall_time_of(step), op_named("MPI_Init").value
    assert found is not None
    begun = step.seen_where(lambda some: some.op == value)
    before = np.full(len(found.locations), np.iinfo(np.int64).max)
    location = found.locations.of_member[begun.member]
    its = location >= 0
    np.minimum.at(before, location[its], begun.first_ns[its])
    before = np.where(before == np.iinfo(np.int64).max, 0, before - found.begin_ns)
    return np.maximum(0, before)[_chosen(step, found)]


def by_node(step: StepReport, times: Times) -> list[dict[str, Any]]:
    """Rows of ranks, added up by node; `ranks`: how many they are."""
    return _added(step, times, times.nodes)


def _added(step: StepReport, times: Times, names: list[str]) -> list[dict[str, Any]]:
    """By the name of each rank, as `node`."""
    number = {name: at for at, name in enumerate(dict.fromkeys(names))}
    of = np.array([number[name] for name in names], np.int64)
    ns = np.zeros((len(number), len(_SUMMED)), np.int64)
    np.add.at(ns, of, times.ns)
    return [
        _row(dict(zip(_SUMMED, its)), step=step.name, node=name, ranks=ranks)
        for name, its, ranks in zip(number, ns.tolist(), np.bincount(of).tolist())
    ]


def _largest(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Those with most time, and one row for the rest."""
    if len(rows) <= most:
        return rows
    ordered = sorted(rows, key=lambda row: -row["rank_ns"])
    kept, rest = ordered[: most - 1], ordered[most - 1 :]
    parts = sums(rest, *_SUMMED)
    ranks = sum(row["ranks"] for row in rest)
    return [*kept, _row(parts, step=rows[0]["step"], node=f"{len(rest)} others", ranks=ranks)]


_LEGEND = (
    "rank-s: each rank from the start of its process to its end, added up",
    "I/O wait: in MPI for a rank in I/O; imbalance: for a rank that computes",
    "communic.: rest of MPI and MPI-IO; computing: neither I/O nor MPI",
)
_LEGEND_OF_PROCESSES = (
    "each process from its start to its end, with those that it started; computing: not in I/O"
)
_BY_NODE, _BY_PROGRAM = (
    Listing(
        f"wall_time_by_{heading.lower()}",
        f"the same by {heading.lower()}",
        (
            Field("node", "text", "", f"name of the {heading.lower()}", heading),
            Field("ranks", "int", "", "how many they are", "ranks"),
            *_TIMES,
            *_SHARES,
        ),
        lambda report: [],
    )
    for heading in ("Node", "Program")
)


def _remarks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from _LEGEND
    background = sum(row["background_ns"] for row in rows if row.get("phase") is None)
    if background:
        yield (
            f"{background / 1e9:.3f} s of computing: other threads of the rank were in I/O beside "
            f"it"
        )


def _not_running(report: Report, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What of the wall time is no part of rank-s, as `weir advise` has it."""
    walls = {step.name: step.wall_ns for step in report.steps}
    whole = [(row["step"], walls[row["step"]] * row["ranks"], row["rank_ns"]) for row in rows
        if row["phase"] is None and row["ranks"]]
    parts = [(step, max(0, wall - ns), wall) for step, wall, ns in whole if wall]
    if len(parts) > MOST_STEPS:
        parts = [("all steps", sum(ns for _, ns, _ in parts), sum(wall for *_, wall in parts))]
    if any(ns for _, ns, _ in parts):
        listed = ", ".join(f"{step} {share(ns, wall)}" for step, ns, wall in parts)
        yield plain(f"not running (before they start, after they end), of the wall time: {listed}")


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """One line a step and phase, then the ranks of each step, by node where there are many."""
    rows, word = rows_of(report), one_of(report)
    if not rows:
        return
    without = [] if any(row["phase"] is not None for row in rows) else ["phase"]
    title = f"Where the time of the {plural(word)} goes"
    without += () if word == "rank" else _OF_MPI
    made = LISTING.table(title, rows, without=without,
        remarks=(*_remarks(rows), *_not_running(report, rows)))
    yield made if word == "rank" else _of_processes(made)
    for step in report.steps:
        times = times_of(step)
        if times is not None and len(times.ranks) > 1:
            yield _table_of_ranks(step, times, options.limit)


def _table_of_ranks(step: StepReport, times: Times, limit: int | None) -> Table:
    """All ranks; of more than the limit the nodes, or the programs where there are several."""
    word = "rank" if step.data.worlds else "process"
    if limit is not None and len(times.ranks) > limit:
        programs = [one.program for one in times.ranks]
        kind, listing = ("node", _BY_NODE) if len(set(programs)) == 1 else ("program", _BY_PROGRAM)
        if word == "process":
            rows = [row | {"node": row["rank"].label, "ranks": 1} for row in by_rank(step)]
        else:
            rows = by_node(step, times) if kind == "node" else _added(step, times, programs)
        title = f"The same of each {kind if word == 'rank' else word} of {step.name}"
        without = () if word == "rank" else (*_OF_MPI, "ranks")
        made = listing.table(title, _largest(rows, limit), without=without)
        return made if word == "rank" else _of_processes(made)
    ranks = list(by_rank(step))
    without = [key for key in ("program", "node") if len({row[key] for row in ranks}) == 1]
    without += ["program"] * any(row["rank"].program for row in ranks)
    without += () if word == "rank" else _OF_MPI
    made = BY_RANK.table(f"The same of each {word} of {step.name}", ranks, without=without)
    return made if word == "rank" else _of_processes(made)


def _of_processes(table: Table) -> Table:
    """Headings of a step without ranks."""
    words = {"ranks": "processes", "rank-s": "process-s", "<Rank": "<Process", "<Node":
        "<Process", _OF_ALL: "% of process-seconds"}
    columns = tuple(words.get(one, one) for one in table.columns)
    groups = tuple((words.get(text, text), count) for text, count in table.groups)
    remarks = tuple(one for one in table.remarks if one not in _LEGEND)
    if len(remarks) < len(table.remarks):
        remarks = (_LEGEND_OF_PROCESSES, *remarks)
    return replace(table, columns=columns, groups=groups, remarks=remarks)


WALL = TableKind(
    name="wall",
    heading="Where the time of the ranks goes",
    short_heading="Wall time",
    shows="time of ranks: computing, I/O, waiting, communication",
    tables=_tables,
    why_empty="no call of MPI but MPI_Init was recorded: level trace has them, without --no-mpi",
    page="own",
    json=lambda report, options: {
        one.name: one.first(one.rows(report), options.json_limit) for one in (LISTING, BY_RANK)
    },
    has_rows=lambda report: any(map(may_be_known, report.steps)),
    listings=(LISTING, BY_RANK),
)
