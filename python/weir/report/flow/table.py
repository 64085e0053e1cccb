# SPDX-License-Identifier: Apache-2.0
"""Data flow between steps as tables and JSON: the transfer matrix, what is only carried along, the
graph, what is read more than once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from weir.analysis.names import matches
from weir.analysis.ranks import RankNames
from weir.analysis.patterns import Pattern
from weir.report.files.last_names import namings_of
from weir.report.flow.compute import (
    CARRIED,
    INPUT,
    OUTPUT,
    ROLES,
    Edge,
    FileFlow,
    Flow,
    FlowStep,
    Moved,
    Passage,
    Row,
    Use,
    flow,
    who,
)
from weir.report.flow.rereads import Extents, Reread, extents, read_again, read_by_all, uses_between
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing, sums
from weir.report.frame.figures import megabytes, percent, short
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.waits.last_files import waits_of


# rows of rank, file and operation; of more the flow takes seconds
QUICK_ROWS = 300_000


def flow_steps(report: Report) -> list[FlowStep]:
    """What the analysis of the flow looks at: the chosen I/O on files of each step, and who gave
    names to files, chosen or not."""
    made = []
    for step in report.steps:
        ranks = frozenset(one.number for one in step.data.members if not one.is_launcher)
        made.append(FlowStep(step.name, ranks, step.columns, namings_of(step)))
    return made


def report_flow(report: Report, pattern: str | None = None) -> Flow:
    """The flow of the chosen steps and ranks, of files whose name fits the pattern; found once."""
    found = report.figures.setdefault(report_flow, {})
    if pattern not in found:
        found[pattern] = _found_flow(report, pattern)
    return found[pattern]


def _found_flow(report: Report, pattern: str | None) -> Flow:
    wanted = None if pattern is None else [number for number, name in enumerate(report.names.names)
        if matches(name, pattern)]

    def split(step: int, timestamps: dict[int, list[int]],
            classes: str) -> dict[tuple[int, int], list[Moved]]:
        one = report.steps[step]
        return uses_between(one.data, one.members, report.names, timestamps,
            classes) if one.level == "trace" else {}

    return flow(flow_steps(report), report.names, report.cwd, wanted, split)


def report_rereads(report: Report, found: Flow) -> tuple[list[Reread], list[Reread]]:
    """Files that all ranks of a step read, and files that one rank read more than once. cost: a
    pass over all records."""
    steps: list[Extents | None] = [extents(step.data, step.members, report.names, found.file_of)
        if step.level == "trace" else None for step in report.steps]
    return read_by_all(found, steps), read_again(found, flow_steps(report), steps)


LISTING = Listing(
    "flow",
    "files, or patterns of files, by what becomes of them in the run, as in `weir report --tables "
    "flow`",
    (
        Field("bytes_written", "int", "bytes", "written to them", "MB written"),
        Field("bytes_read", "int", "bytes", "read from them", "MB read"),
        Field("write_ns", "int", "ns", "in writes", "write", "s"),
        Field("read_ns", "int", "ns", "in reads", "read", "s"),
        Field("other_ns", "int", "ns", "in other calls", "other", "s"),
        Field("ns", "int", "ns", "in all calls", "s"),
        Field("written_in", "list", "", "steps that write them", "<written in", key=None),
        Field("read_in", "list", "", "steps that read them", "<read in", key=None),
        Field("removed", "int", "", "files of them that the run removed"),
        Field("gone", "text", "", "yes: all of them; N of them", "removed", key=None),
        Field("count", "int", "", "how many files they are", "files", key=None),
        Field("pattern", "text", "", "path, or pattern of the paths", "File"),
        Field("role", "text", "", "role of the files in the run"),
        Field("numbers", "object", "", "letter, least, most, count of each number in the pattern"),
        Field("files", "object", "", "paths"),
        Field("also", "object", "", "other paths of these files"),
        Field("uses", "object", "", "of each step that used them"),
        Field("passages", "object", "",
              "from (null: existed before), to, writers, readers, files, bytes"),
    ),
    lambda report: _flow_rows(report_flow(report)),
)
PASSAGES = Listing(
    "passages",
    "bytes from the step that wrote a file to the step that read it, as in `weir report --tables "
    "graph`",
    (
        Field("bytes", "int", "bytes", "read", "MB"),
        Field("from_step", "text", "", "step that wrote; (before): the file existed before the run",
              "from"),
        Field("writers", "text", "", "its ranks that wrote", "ranks"),
        Field("to_step", "text", "", "step that read", "to"),
        Field("readers", "text", "", "its ranks that read", "ranks"),
        Field("files", "int", "", "how many files", "files"),
        Field("pattern", "text", "", "path, or pattern of the paths", "File"),
    ),
    lambda report: _passage_rows(report_flow(report)),
)
REREADS = Listing(
    "rereads",
    "files that all ranks of a step read, or one rank more than once, as in `weir report --tables "
    "reads`",
    (
        Field("bytes", "int", "bytes", "read", "MB read"),
        Field("distinct_bytes", "int?", "bytes",
              "of these, each byte counted once; null: offsets are not known", "MB distinct"),
        Field("ratio", "real?", "", "bytes by distinct_bytes", "times", show="{:.1f}".format,
              key=None),
        Field("opens", "int", "", "of one rank, at most", "opens",
              show=lambda count: str(count or "")),
        Field("step", "text", "", "name of the step", "Step"),
        Field("readers", "text", "", "ranks in words: all, sev, ...", "ranks", key=None),
        Field("count", "int", "", "how many files they are", "files", key=None),
        Field("pattern", "text", "", "path, or pattern of the paths", "File"),
        Field("ranks", "text", "", "ranks as a list: 0-3,8"),
        Field("files", "list", "", "their paths"),
        Field("by_all", "bool", "", "all ranks read them; else the same rank more than once",
              key=None),
    ),
    lambda report: [row for rows in _reread_rows(report, None) for row in rows],
)


def _flow_rows(found: Flow, rows: Iterable[Row] | None = None) -> list[dict[str, Any]]:
    return [_flow_row(found, row) for row in (found.rows if rows is None else rows)]


def _flow_row(found: Flow, row: Row) -> dict[str, Any]:
    written, read = (_steps_of(found, steps) for steps in _carried_ends(row))
    removed, count = sum(file.removed for file in row.files), len(row.files)
    added = ("bytes_written", "bytes_read", "write_ns", "read_ns", "other_ns", "ns")
    return {key: row.sum(key) for key in added} | {
        "written_in": written, "read_in": read, "removed": removed, "count": count,
        "gone": "" if not removed else "yes" if removed == count else f"{removed} of them",
        "pattern": row.pattern.text, "role": row.role, "files": [file.file for file in row.files],
        "numbers": [vars(one) for one in row.pattern.numbers],
        "also": lambda: sorted({name for file in row.files for name in file.names}
            - {file.file for file in row.files}),
        "uses": lambda: [_use_json(found, step, use) for step, use in enumerate(row.uses)
            if use is not None],
        "passages": lambda: [_passage_json(found, edge) for edge in row.passages],
    }  # fmt: skip


def _passage_rows(found: Flow) -> list[dict[str, Any]]:
    """Most bytes first."""
    ends = ("from_step", "writers", "to_step", "readers")
    made = [
        {"bytes": edge.bytes, "files": edge.files, "pattern": row.pattern.text} | dict(zip(ends,
            _ends(found, edge)))
        for row in found.rows
        for edge in row.passages
    ]
    return sorted(made, key=lambda one: (-one["bytes"], one["pattern"]))


def _reread_rows(report: Report, pattern: str | None) -> list[list[dict[str, Any]]]:
    """Of files that all ranks of a step read; of those that the same rank read more than once."""
    found = report_flow(report, pattern)
    return [
        [
            {
                "bytes": one.bytes, "distinct_bytes": one.distinct, "opens": one.times,
                "by_all": by_all,
                "ratio": one.bytes / one.distinct if one.distinct else None,
                "step": found.steps[one.step],
                "readers": who(one.ranks, found.ranks[one.step], found.names),
                "count": len(one.files),
                "pattern": one.row.pattern.text, "ranks": found.names.text(one.ranks),
                "files": list(one.files),
            }
            for one in every
        ]
        for by_all, every in zip((True, False), report_rereads(report, found))
    ]  # fmt: skip


def flow_tables(report: Report, top: int | None = 20,
        pattern: str | None = None) -> Iterator[Table]:
    """The transfer matrix; files that are only carried from step to step; files written and never
    read."""
    found = report_flow(report, pattern)
    yield _matrix(report, found, top)
    carried, unread = found.of(CARRIED), found.of(OUTPUT)
    if carried:
        yield _carried_table(report, found, carried, top)
    if unread:
        yield _unread_table(found, unread, top)


def graph_tables(report: Report, top: int | None = 20,
        pattern: str | None = None) -> Iterator[Table]:
    """The edges of the flow: from the step that wrote to the step that read, most bytes first."""
    found = report_flow(report, pattern)
    rows = _passage_rows(found)
    total = sums(rows, "bytes") | {"pattern": "TOTAL"}
    yield PASSAGES.table("Bytes from step to step, by MB", rows, top=top, footer=[total],
        remarks=_unfollowed(found))


def read_tables(report: Report, top: int | None = 20,
        pattern: str | None = None) -> Iterator[Table]:
    """Files that all ranks of a step read; files that the same rank read more than once."""
    for rows, title, remark in zip(
        _reread_rows(report, pattern),
        ("Read by all ranks of a step", "Read more than once by the same rank"),
        (
            "MB distinct: what would do if one rank read it for all; -: offsets are not known "
            "(stdio, or no records)",
            "-: offsets are not known; the rank opened the file so many times and only read it",
        ),
    ):
        if rows:
            yield REREADS.table(title, rows, top=top, remarks=[remark])


def _of(shown: int, every: int) -> str:
    return f" ({shown} of {every})" if shown < every else ""


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def cell(use: Use | None, everyone: frozenset[int], names: RankNames) -> str:
    """Who, and the direction: -> 0 is a read by rank 0, all -> a write by all ranks, -> 0 -> both.
    """
    if use is None or not use.direction:
        return ""
    read, written = (who(every, everyone, names) for every in (use.read, use.written))
    if not use.written:
        return f"-> {read}"
    if not use.read:
        return f"{written} ->"
    return f"-> {read} ->" if read == written else f"-> {read}, {written} ->"


def numbers_text(pattern: Pattern) -> str:
    """How far the numbers of a pattern go: 001-004; with gaps, how many there are."""
    texts = []
    for one in pattern.numbers:
        of = f" ({one.count})" if one.has_gaps else ""
        texts.append(f"{one.least}-{one.most}{of}")
    if len(texts) < 2:
        return "".join(texts)
    return ", ".join(f"{one.letter} {text}" for one, text in zip(pattern.numbers, texts))


def _matrix(report: Report, found: Flow, top: int | None) -> Table:
    rows = tuple(
        (
            row.pattern.text, str(len(row.files)), numbers_text(row.pattern),
            *(cell(use, ranks, found.names) for use, ranks in zip(row.uses, found.ranks)), row.role,
            *_volume(row),
        )
        for row in found.rows[:top]
    )  # fmt: skip
    columns = ("<File", "files", "<numbers", *(f"<{step}" for step in found.steps), "<role",
        "MB written", "MB read", "s")
    lines = "1 line" if len(found.rows) == 1 else f"{len(found.rows)} lines"
    title = f"Data flow: {_files(found.files)} in {lines}, by MB{_of(len(rows), len(found.rows))}"
    if not report.keeps_names:
        return Table(title, columns, rows,
            remarks=("level summary keeps no names of files: its steps show nothing here",))
    return Table(title, columns, rows, remarks=(*_role_remark(found), *_unfollowed(found)))


def _volume(*rows: Row) -> tuple[str, str, str]:
    """MB written, MB read, seconds."""
    written, read, ns = (sum(row.sum(figure) for row in rows)
        for figure in ("bytes_written", "bytes_read", "ns"))
    return f"{megabytes(written):.3f}", f"{megabytes(read):.3f}", f"{ns / 1e9:.3f}"


def _role_remark(found: Flow) -> Iterator[str]:
    parts = []
    for role in ROLES:
        rows = found.of(role)
        if rows:
            written, read, _ = _volume(*rows)
            moved = (
                f"{read} MB read"
                if role == INPUT
                else f"{written} MB written"
                if role == OUTPUT
                else f"{written} MB written, {read} read"
            )
            parts.append(f"{role} {_files(sum(len(row.files) for row in rows))}, {moved}")
    if parts:
        yield "; ".join(parts)
    yield (
        "-> 0: rank 0 reads the file; 0 ->: writes it; -> 0 ->: both; -> 1, 0 ->: rank 1 reads it, "
        "rank 0 writes it; sev: several ranks, all: all of them, other: programs without a rank"
    )


def _unfollowed(found: Flow) -> tuple[str, ...]:
    """What the trace cannot tell of the flow, and what is not as it looks."""
    said = []
    others = sum(file.has_other_names for row in found.rows for file in row.files)
    if others:
        was = "was" if others == 1 else "were"
        said.append(f"{_files(others)} {was} written or read under other names, too (renamed or "
                    f"linked; --json lists them)")
    if found.renamed:
        was = "was" if len(found.renamed) == 1 else "were"
        said.append(f"{_files(len(found.renamed))} {was} renamed or linked: the trace does not "
                    f"have the new name, the flow ends there")
    if found.mapped:
        was = "was" if len(found.mapped) == 1 else "were"
        said.append(f"{_files(len(found.mapped))} {was} mapped into memory and not read otherwise: "
                    f"which bytes moved is not seen")
    return tuple(said)


def _steps_of(found: Flow, steps: Iterable[int]) -> list[str]:
    return [found.steps[step] for step in sorted(set(steps))]


def _carried_ends(row: Row) -> tuple[set[int], set[int]]:
    """Steps that wrote the row's files, steps that read them."""
    written = {step for step, use in enumerate(row.uses) if use is not None and use.written}
    return written, {step for step, use in enumerate(row.uses) if use is not None and use.read}


def _carried_table(report: Report, found: Flow, every: Sequence[Row], top: int | None) -> Table:
    every = sorted(every, key=lambda row: (-row.sum("ns"), row.pattern.text))
    rows, critical = _flow_rows(found, every), _critical_ns(report, every)
    added = ("bytes_written", "bytes_read", "write_ns", "read_ns", "other_ns", "ns", "count")
    total = sums(rows, *added) | {"pattern": "TOTAL"}
    remark = (
        f"made in the run, read by a later step and not used after: in memory, or on a burst "
        f"buffer, these files would take "
        f"{short(total['ns'] / 1e9)} s of I/O ({percent(total['ns'], report.all.ns)} of all "
        f"ranks') off the file system"
        + ("" if critical is None else f"; {short(critical / 1e9)} s of it are critical I/O time")
    )
    title = "Only carried from step to step"
    return LISTING.table(title, rows, top=top, without=["ns"], footer=[total], remarks=[remark])


def _critical_ns(report: Report, rows: Sequence[Row]) -> int | None:
    """Critical time of the I/O on the files of some rows; None where MPI was not recorded."""
    files = {name for row in rows for file in row.files for name in (file.file, *file.names)}
    every = [waits for waits in waits_of(report) if waits is not None]
    return sum(one.critical_ns for waits in every for one in waits.files
        if one.file in files) if every else None


def _unread_table(found: Flow, every: Sequence[Row], top: int | None) -> Table:
    rows = _flow_rows(found, every)
    total = sums(rows, "bytes_written", "ns", "count") | {"pattern": "TOTAL"}
    without = ("bytes_read", "write_ns", "read_ns", "other_ns", "read_in", "gone")
    title = "Output: never read in this run, or only while it is written"
    return LISTING.table(title, rows, top=top, without=without, footer=[total])


def _ends(found: Flow, edge: Passage) -> tuple[str, str, str, str]:
    read = (found.steps[edge.to_step], who(edge.readers, found.ranks[edge.to_step], found.names))
    if edge.from_step is None:
        return "(before)", "", *read
    written = who(edge.writers, found.ranks[edge.from_step], found.names)
    return found.steps[edge.from_step], written, *read


def flow_json(report: Report, pattern: str | None = None) -> dict[str, Any]:
    """Key `flow`: the matrix row by row, exact."""
    found = report_flow(report, pattern)
    carried = found.of(CARRIED)
    critical = _critical_ns(report, carried)
    return {
        "steps": [{"step": name, "ranks": sum(rank >= 0 for rank in ranks)}
            for name, ranks in zip(found.steps, found.ranks)],
        "rows": LISTING.json(_flow_rows(found)),
        "carried": {
            "rows": [index for index, row in enumerate(found.rows) if row.role == CARRIED],
            "files": sum(len(row.files) for row in carried),
            **{key: sum(row.sum(key) for row in carried)
                for key in ("bytes_written", "bytes_read")},
            **{f"{key}_s": sum(row.sum(f"{key}_ns") for row in carried) / 1e9
                for key in ("write", "read", "other")},
            "critical_s": None if critical is None else critical / 1e9,
        },
        "renamed": list(found.renamed),
        "mapped": list(found.mapped),
    }


def _passage_json(found: Flow, edge: Passage) -> dict[str, Any]:
    return {
        "from": None if edge.from_step is None else found.steps[edge.from_step],
        "to": found.steps[edge.to_step],
        "writers": found.names.text(edge.writers), "readers": found.names.text(edge.readers),
        "files": edge.files, "bytes": edge.bytes,
    }  # fmt: skip


def _use_json(found: Flow, step: int, use: Use) -> dict[str, Any]:
    everyone, names = found.ranks[step], found.names
    return {
        "step": found.steps[step], "direction": use.direction,
        "readers": who(use.read, everyone, names), "reading_ranks": names.text(use.read),
        "writers": who(use.written, everyone, names), "writing_ranks": names.text(use.written),
        "bytes_read": use.bytes_read, "bytes_written": use.bytes_written,
        "read_s": use.read_ns / 1e9, "write_s": use.write_ns / 1e9, "other_s": use.other_ns / 1e9,
    }  # fmt: skip


def graph_json(report: Report, pattern: str | None = None) -> dict[str, Any]:
    """Key `graph`: nodes are ranks of steps, edges go from the ranks that wrote a file in one step
    to those that read it in another."""
    found = report_flow(report, pattern)
    files = [file for row in found.rows for file in row.files]
    nodes = {(step, rank) for file in files for step, use in enumerate(file.uses)
        if use is not None for rank in (*use.read, *use.written)}
    return {
        "nodes": [{"id": _node(found, step, rank), "step": found.steps[step],
            "rank": found.names[rank].rank, "rank_label": found.names[rank].label}
            for step, rank in sorted(nodes)],
        "edges": [one for file in files for one in _edges_json(found, file)],
    }


def _node(found: Flow, step: int, rank: int) -> str:
    return f"{found.steps[step]}:{found.names[rank].label}"


def _edges_json(found: Flow, file: FileFlow) -> Iterator[dict[str, Any]]:
    for (came, to), edges in groupby(sorted(file.edges, key=_step_pair), key=_step_pair):
        every = list(edges)
        yield {
            "file": file.file,
            "from": [_node(found, came, rank) for rank in every[0].writers],
            "to": [{"id": _node(found, to, edge.reader), "bytes": edge.bytes} for edge in every],
            "bytes": sum(edge.bytes for edge in every),
        }


def _step_pair(edge: Edge) -> tuple[int, int]:
    return -1 if edge.from_step is None else edge.from_step, edge.to_step


def reads_json(report: Report, pattern: str | None = None) -> dict[str, Any]:
    """Key `reads`: by_all and again."""
    by_all, again = map(REREADS.json, _reread_rows(report, pattern))
    return {"by_all": by_all, "again": again}


def _flow_tables(report: Report, options: Options) -> Iterator[Table]:
    if len(report.steps) > 1 or options.names(FLOW):
        yield from flow_tables(report, options.limit, options.pattern)


FLOW = TableKind(
    name="flow",
    heading="Data between steps",
    short_heading="Data flow",
    shows="which step and rank writes and reads each file",
    tables=_flow_tables,
    json=lambda report, options: {
        "flow": flow_json(report, options.pattern)
        if options.names(FLOW) or FLOW.is_quick(report) else None
    },
    has_rows=lambda report: len(report.steps) > 1,
    is_quick=lambda report: report.rows <= QUICK_ROWS,
    listings=(LISTING,),
)

GRAPH = TableKind(
    name="graph",
    heading="Who reads what others wrote",
    shows="bytes from the step that wrote to the step that read",
    tables=lambda report, options: graph_tables(report, options.limit, options.pattern),
    in_all=False,
    json=lambda report, options: {"graph": graph_json(report, options.pattern)},
    listings=(PASSAGES,),
)

READS = TableKind(
    name="reads",
    heading="Files read more than once",
    shows="files that all ranks read, or one rank more than once",
    tables=lambda report, options: read_tables(report, options.limit, options.pattern),
    in_all=False,
    json=lambda report, options: {"reads": reads_json(report, options.pattern)},
    listings=(REREADS,),
)
