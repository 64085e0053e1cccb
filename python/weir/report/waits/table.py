# SPDX-License-Identifier: Apache-2.0
"""Who waits for whose I/O, as tables, JSON and sentences (docs/guide/waits.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weir.analysis.names import shown
from weir.analysis.patterns import PATTERN_LEGEND, find_patterns
from weir.analysis.ranks import RankName, rank_list
from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Field, Listing, sums
from weir.report.frame.figures import percent, share, short
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.waits.alone import alone_of
from weir.report.waits.last_files import waits_of
from weir.report.waits.summary import StepWaits

MOST_RANKS = 4
LEAST_NS = 500_000  # of a file in its table
UNKNOWN_SHARE = 0.01  # of a step: worth a line
OUTLIVED_NS = 100_000_000  # less may be clocks that differ, or the end of a process
CRITICAL_SHARE = 0.02  # of a step: worth a sentence
LEGEND = (
    "for I/O: waits in MPI for a rank in I/O, summed over the waiting ranks",
    "critical path: the calls, of whichever rank, that decide when the step ends",
    "critical: time by which the step would be shorter if I/O took no time (by replay of its calls "
    "of MPI)",
)


def ranks(found: tuple[RankName, ...]) -> str:
    """The first few, and how many there are; rising when all are shown."""
    if len(found) <= MOST_RANKS:
        return rank_list(sorted(found, key=lambda one: one.rank)) or "-"
    return f"{rank_list(found[:1])} and {len(found) - 1} more"


STEP = Field("step", "text", "", "name of the step", "Step")
# Where the title of the table, and the object around it in JSON, have it.
WITHIN_STEP = replace(STEP, heading="", key=None)
WAITED = Field("waited_ns", "int", "ns",
    "rank-seconds in which others waited in MPI for a rank that was in it")
PATH = Field("path_ns", "int", "ns",
    "of it on the critical path: in ranks that decide when the step ends")
CRITICAL = Field("critical_ns", "int", "ns",
    "time by which the step would be shorter if I/O took no time: part due to this")  # fmt: skip

BY_STEP = Listing(
    "waits_by_step",
    "waits of each step that recorded MPI, as in `weir report --tables waits`; what I/O of steps "
    "without MPI delays the run by is in the sentences of `weir report` alone",
    (
        STEP,
        Field("wall_ns", "int", "ns", "from start to end", "Wall"),
        Field("io_ns", "int", "ns", "in I/O, of all ranks", "I/O", "All ranks"),
        Field("active_ns", "int?", "ns", "with at least one rank in I/O", "active", "All ranks"),
        Field("waiting_ns", "int", "ns", "in waits of MPI, of all ranks", "in MPI",
              "waits, rank-s"),
        replace(WAITED, heading="for I/O", group="waits, rank-s"),
        replace(PATH, heading="I/O", group="critical path"),
        Field("path_share", "real?", "1", "path_ns, of wall_ns", "%wall", "critical path"),
        replace(CRITICAL, heading="s", group="critical"),
        Field("critical_share", "real?", "1", "of wall_ns", "%wall", "critical"),
        Field("free_wall_ns", "int", "ns", "wall_ns if no I/O cost anything"),
        Field("background_ns", "int", "ns", "I/O of threads that do not call MPI: it counts as "
              "hidden, because the trace does not show who waits for them"),
        Field("critical_most_ns", "int", "ns", "critical_ns if ranks wait for all of that"),
        Field("unknown_ns", "int", "ns", "of all ranks in calls of MPI of which it is not known for "
              "whom they wait (intercommunicators, one-sided calls): they last as long in the "
              "replay"),
        Field("critical_path", "object", "", "the critical path by rank"),
        Field("ranks", "int", "", "ranks of the step"),
        Field("nodes", "int", "", "nodes that they ran on"),
        Field("collectives", "int", "", "collectives of which all ranks have a record"),
        Field("incomplete", "int", "", "other collectives, which are left out"),
        Field("files", "object", "", "waits by file"),
        Field("routines", "object", "", "waits by routine"),
    ),
    lambda report: [_step_row(step, waits) for step, waits in _waiting(report)],
)
BY_OPERATION = Listing(
    "critical",
    "critical I/O time of each file and operation, as in `weir report --tables waits`; only of "
    "steps whose waits in MPI were recorded",
    (
        WITHIN_STEP,
        Field("file", "path", "", "path of the file, or (no file)"),
        Field("op", "text", "", "operation"),
        WAITED,
        PATH,
        CRITICAL,
    ),
    lambda report: [
        vars(op) | {"step": step.name, "file": file.file}
        for step, waits in _waiting(report)
        for file in waits.files
        for op in file.ops
    ],
)
BY_FILE = Listing(
    "waits_by_file",
    "files that a step waits for, as in `weir report --tables waits`",
    (
        WITHIN_STEP,
        replace(CRITICAL, heading="critical"),
        Field("critical_share", "real?", "1", "of the wall time of the step", "%wall"),
        Field("alone_ns", "int?", "ns", "time by which the step would be shorter if I/O on this "
              "file alone took no time; null: not computed, little is critical", "alone"),
        replace(PATH, heading="on path"),
        replace(WAITED, heading="waited"),
        Field("io_ns", "int", "ns", "in I/O on it, of all ranks", "I/O"),
        Field("op", "text?", "", "with the largest critical and waited time", "mostly in",
              key=None, is_whole=True),
        Field("ranks", "ranks", "", "awaited ranks, those waited for longest first", "<of ranks",
              show=ranks),
        Field("file", "path", "", "path of the file, or (no file)", "File"),
        Field("ops", "object", "", "waited_s, path_s and critical_s by operation"),
    ),
    lambda report: [row for step, waits in _waiting(report) for row in _file_rows(step, waits)],
)
_BY_PATTERN = replace(BY_FILE, fields=(
    *(one for one in BY_FILE.fields if one.name not in ("alone_ns", "file")),
    Field("files", "int", "", "how many they are", "files"),
    *(replace(one, heading="File, or files of one pattern") for one in BY_FILE.fields
      if one.name == "file"),
))  # fmt: skip
BY_ROUTINE = Listing(
    "waits",
    "waiting in MPI by routine and communicator, as in `weir report --tables waits`",
    (
        WITHIN_STEP,
        Field("routine", "text", "", "routine of MPI", "Routine", is_whole=True),
        Field("communicator", "text?", "", "world, self, world/3.0, ...; null: several",
              "Communicator"),
        Field("calls", "int", "", "instances of a collective; otherwise calls with a known partner",
              "Calls"),
        Field("waiting_ns", "int", "ns", "of all ranks until the awaited one came", "waits",
              "rank-s"),
        Field("waited_ns", "int", "ns", "of it while that one was in I/O", "for I/O", "rank-s"),
        Field("last_rank", "rank?", "", "the rank that was waited for most often", "rank",
              "mostly for", key="last"),
        Field("last_share", "real?", "1", "last_times of times", "times", "mostly for"),
        Field("last_times", "int", "", "how often it was"),
        Field("times", "int", "", "calls in which any rank waited"),
    ),
    lambda report: [row for step, waits in _waiting(report) for row in _routine_rows(step, waits)],
)


BY_RANK = Listing(
    "critical_path",
    "the critical path of each step by rank, as in `weir report --tables waits`; it adds up to the "
    "wall time",
    (
        WITHIN_STEP,
        Field("rank", "rank?", "", "null: before the first rank began and after the last ended",
              "<rank"),
        Field("computing_ns", "int", "ns", "in neither I/O nor calls of MPI or MPI-IO",
              "computing"),
        Field("mpi_ns", "int", "ns", "in calls of MPI, when whom they wait for has come, and of "
              "MPI-IO, without I/O", "in MPI"),
        Field("io_ns", "int", "ns", "in I/O on files", "I/O"),
        Field("path_ns", "int", "ns", "all of it; of rank null what no rank does", "all"),
        Field("path_share", "real?", "1", "path_ns, of the wall time of the step", "%wall"),
        Field("alone_ns", "int?", "ns", "time by which the step would be shorter if the I/O of "
              "this rank alone took no time; null: not computed", "saved alone"),
    ),
    lambda report: [row for step, waits in _waiting(report) for row in _rank_rows(step, waits)],
)


def _waiting(report: Report) -> Iterator[tuple[StepReport, StepWaits]]:
    """Steps that recorded MPI."""
    for step, waits in zip(report.steps, waits_of(report)):
        if waits is not None:
            yield step, waits


def _step_row(step: StepReport, waits: StepWaits) -> dict[str, Any]:
    return vars(waits) | {
        "step": step.name, "wall_ns": step.wall_ns, "io_ns": step.all.ns,
        "active_ns": step.active_ns,
        "path_share": share(waits.path_ns, step.wall_ns),
        "free_wall_ns": max(step.wall_ns - waits.critical_ns, 0),
        "critical_path": lambda: BY_RANK.json(_rank_rows(step, waits)),
        "critical_share": share(waits.critical_ns, step.wall_ns),
        "files": lambda: BY_FILE.json(_file_rows(step, waits)),
        "routines": lambda: BY_ROUTINE.json(_routine_rows(step, waits)),
    }  # fmt: skip


def _file_rows(step: StepReport, waits: StepWaits) -> list[dict[str, Any]]:
    costs = replace(BY_OPERATION, fields=(WAITED, PATH, CRITICAL))
    alone = alone_of(step)
    return [
        vars(one)
        | {"alone_ns": alone.files.get(one.file if one.recorded is None else one.recorded)}
        | {"step": step.name, "critical_share": share(one.critical_ns, step.wall_ns)}
        | {"ranks": tuple(map(step.names.ranks.__getitem__, one.ranks))}
        | {"op": one.ops[0].op if one.ops else None}
        | {"ops": {op.op: costs.json([op])[0] for op in one.ops}}
        for one in waits.files
    ]


def _rank_rows(step: StepReport, waits: StepWaits) -> list[dict[str, Any]]:
    alone, rows = alone_of(step), []
    for one in waits.path:
        parts = {"computing_ns": one.computing_ns, "mpi_ns": one.mpi_ns, "io_ns": one.io_ns}
        rank = step.names.ranks[one.rank]
        rows.append({"rank": rank, "alone_ns": alone.ranks.get(one.rank)} | parts)
    known = sum(row[key] for row in rows for key in ("computing_ns", "mpi_ns", "io_ns"))
    rest = max(step.wall_ns - known, 0)
    rows.append({"rank": None, "alone_ns": None, "computing_ns": 0, "mpi_ns": 0, "io_ns": 0})
    for row in rows:
        row["step"] = step.name
        parts = row["computing_ns"] + row["mpi_ns"] + row["io_ns"]
        row["path_ns"] = parts if row["rank"] is not None else rest
        row["path_share"] = share(row["path_ns"], step.wall_ns)
    return rows


def _routine_rows(step: StepReport, waits: StepWaits) -> list[dict[str, Any]]:
    return [
        vars(one)
        | {"step": step.name, "communicator": one.communicator or None}
        | {"last_rank": None if one.last is None else step.names.ranks[one.last]}
        | {"last_share": share(one.last_times, one.times)}
        for one in waits.routines
    ]


def _tables(report: Report, options: Options) -> Iterator[Table]:
    """One line for each step; then, step by step, its files and its routines of MPI."""
    steps, top = list(_waiting(report)), options.limit
    if not steps:
        return
    yield _step_table(report, steps)
    for step, waits in steps:
        files = _by_pattern(_file_rows(step, waits), top)
        if any(max(row["critical_ns"], row["waited_ns"]) >= LEAST_NS for row in files[:top]):
            yield _file_table(step, files, top)
        if waits.path:
            yield _path_table(step, waits, top)
        if waits.routines:
            title = f"MPI calls in which {step.name} waits"
            remark = "mostly for: the rank that others waited for most often; its share of waits"
            rows = _routine_rows(step, waits)
            yield BY_ROUTINE.table(title, rows, cwd=step.data.cwd, top=top, remarks=[remark])


def _step_table(report: Report, steps: list[tuple[StepReport, StepWaits]]) -> Table:
    rows, rank = BY_STEP.rows(report), report.choice.rank
    added = [one.name for one in BY_STEP.columns if one.unit == "ns"]
    total = {"step": "TOTAL"} | sums(rows, *added)
    for cost in ("path", "critical"):
        total[f"{cost}_share"] = share(total[f"{cost}_ns"], total["wall_ns"])
    remarks = [*LEGEND, *["waits and critical times are of all ranks"] * (rank is not None)]
    remarks += [
        f"{step.name}: {waits.incomplete} collectives are left out: not all of their ranks have a "
        "record of them"
        for step, waits in steps
        if waits.incomplete
    ]
    remarks += [
        f"{step.name}: ranks went on for {short(step.outlived_ns / 1e9)} s after the command had "
        "ended; Wall counts until then"
        for step, _ in steps
        if step.outlived_ns >= OUTLIVED_NS
    ]
    remarks += [
        f"{step.name}: in {short(waits.unknown_ns / 1e9)} rank-s of {', '.join(waits.unknown_in)} "
        "the awaited rank is unknown: not followed"
        for step, waits in steps
        if waits.unknown_ns >= UNKNOWN_SHARE * step.wall_ns
    ]
    made = BY_STEP.table("Waits for I/O", rows, footer=[total] * (len(rows) > 1), remarks=remarks)
    (first, count), _, *others = made.groups
    who = "All ranks" if rank is None else f"Rank {rank}"
    return replace(made, groups=((first, count), (who, 2), *others))


def _file_table(step: StepReport, files: list[dict[str, Any]], top: int | None) -> Table:
    """Files that cost as much as the table can show, of those that cost most."""
    total = sums(files, "critical_ns", "path_ns", "waited_ns", "io_ns")
    total |= {"critical_share": share(total["critical_ns"], step.wall_ns), "file": "TOTAL"}
    listed = [row for row in files[:top] if max(row["critical_ns"], row["waited_ns"]) >= LEAST_NS]
    title = f"Files that {step.name} waits for, s"
    of = f" ({len(listed)} of {len(files)})" if len(listed) < len(files) else ""
    has_patterns = any(row.get("files", 1) > 1 for row in files)
    listing = _BY_PATTERN if has_patterns else BY_FILE
    return listing.table(title + of, listed, cwd=step.data.cwd, footer=[total],
        remarks=[PATTERN_LEGEND] * has_patterns)


def _by_pattern(rows: list[dict[str, Any]], most: int | None) -> list[dict[str, Any]]:
    """More than `most` files: those whose names differ in numbers as one row."""
    if most is None or len(rows) <= most:
        return rows
    made = []
    for pattern in find_patterns([row["file"] for row in rows], [()] * len(rows)):
        its = [rows[at] for at in pattern.members]
        worst = max(its, key=lambda row: row["critical_ns"] + row["waited_ns"])
        added = sums(its, "critical_ns", "path_ns", "waited_ns", "io_ns", "critical_share")
        ranks = dict.fromkeys(rank for row in its for rank in row["ranks"])
        made.append(worst | {"files": 1} if len(its) == 1 else worst | added | {
            "file": pattern.text, "files": len(its), "ranks": tuple(ranks), "alone_ns": None})
    return sorted(made, key=lambda row: (-row["critical_ns"], -row["waited_ns"], row["file"]))


def _path_table(step: StepReport, waits: StepWaits, top: int | None) -> Table:
    """Ranks with most of the critical path; the last line is all of it."""
    rows = _rank_rows(step, waits)
    added = ("computing_ns", "mpi_ns", "io_ns", "path_ns")
    total = sums(rows, *added) | {"rank": "TOTAL"}
    total["path_share"] = share(total["path_ns"], step.wall_ns)
    remarks = ["rank -: before the first rank begins and after the last ends"]
    title = f"Critical path of {step.name}, s"
    return BY_RANK.table(title, rows[:-1][:top] + rows[-1:], footer=[total], remarks=remarks)


def wait_findings(step: StepReport, waits: StepWaits | None) -> Iterator[str]:
    """Critical I/O time, when that is much."""
    if waits is None or not waits.files or waits.critical_ns < CRITICAL_SHARE * step.wall_ns:
        return
    worst = waits.files[0]
    what = f"mostly {worst.ops[0].op} of " if worst.ops else ""
    is_one = len(worst.ranks) == 1
    who = step.names.ranks[worst.ranks[0]].title if is_one else f"{len(worst.ranks)} ranks"
    yield (
        f"I/O delays the step by {short(waits.critical_ns / 1e9)} s "
        f"({percent(waits.critical_ns, step.wall_ns)} of the wall "
        f"time); the file that delays it most, by {short(worst.critical_ns / 1e9)} s, "
        f"{what}{who}: {shown(worst.file, step.data.cwd)}"
    )


WAITS = TableKind(
    name="waits",
    heading="Who waits for whose I/O",
    short_heading="Waits",
    shows="files and MPI calls that delay the run, and by how much",
    tables=_tables,
    why_empty="waits are recorded of MPI programs, at level trace without --no-mpi",
    page="early",
    json=lambda report, _: {"waits": BY_STEP.json(BY_STEP.rows(report))},
    has_rows=lambda report: any(_waiting(report)),
    listings=(BY_OPERATION, BY_ROUTINE, BY_STEP, BY_FILE, BY_RANK),
)
