# SPDX-License-Identifier: Apache-2.0
"""MPI-IO as the reference displays it: aggregator placement, hints, and the box of access patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from weir.analysis.names import matches, shown
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import rate, size
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.mpi_io.compute import Access, MpiFile, all_mpi_files


_OF_FILE = (
    Field("step", "text", "", "name of the step"),
    Field("file", "path", "", "path of the file"),
)
AGGREGATORS = Listing(
    "mpi_io_aggregators",
    "ranks that made requests to the system on a file that was opened through MPI-IO",
    (
        *_OF_FILE,
        Field("number", "int", "", "from 0, for each file", "AGG"),
        Field("rank", "rank", "", "rank of the process", "Rank"),
        Field("node", "text", "", "name of its node", "node"),
        Field("reads", "int", "", "system requests that read", "reads", "system requests"),
        Field("read_bytes", "int", "bytes", "read by them", "MB", "system requests"),
        Field("writes", "int", "", "system requests that write", "writes", "system requests"),
        Field("written_bytes", "int", "bytes", "written by them", "MB", "system requests"),
    ),
    lambda report: [row for one in all_mpi_files(report) for row in _aggregators(one)],
)
HINTS = Listing(
    "mpi_io_hints",
    "hints of each file that was opened through MPI-IO",
    (
        *_OF_FILE,
        Field("hint", "text", "", "its key", "hint"),
        Field("in_force", "text?", "", "value that MPI reports; null: none", "in force"),
        Field("given", "text", "", "value that the program gave; empty: none", "given"),
    ),
    lambda report: [row for one in all_mpi_files(report) for row in _hints(one)],
)
ACCESSES = Listing(
    "mpi_io",
    "access patterns of each file that was opened through MPI-IO, a row for reads and one for "
    "writes",
    (
        *_OF_FILE,
        Field("direction", "text", "", "read or write"),
        Field("ranks", "int", "", "ranks that opened the file"),
        Field("opens", "int", "", "times that it was opened"),
        Field("failed_opens", "int", "", "times that it could not be opened"),
        Field("views", "int", "", "file views set"),
        Field("independent", "int", "", "independent calls"),
        Field("collective", "int", "", "collective calls"),
        Field("shared", "int", "", "of these calls: by the shared pointer"),
        Field("nonblocking", "int", "", "of these calls: non-blocking"),
        Field("split", "int", "", "of these calls: split collective"),
        Field("independent_ranks", "int", "", "ranks with independent calls"),
        Field("bytes", "int", "bytes", "asked for"),
        Field("ns", "int", "ns", "in these calls, of all ranks"),
        Field("busiest_ns", "int", "ns", "of the busiest rank"),
        Field("system", "int", "", "requests to the system"),
        Field("system_bytes", "int", "bytes", "of these"),
        Field("system_ns", "int", "ns", "in these, of all ranks"),
        Field("system_ranks", "int", "", "ranks that made them: aggregators"),
        Field("gaps", "int?", "",
              "requests that begin behind the end of the last; null: no records"),
        Field("skipped_bytes", "int?", "bytes", "in these gaps"),
        Field("back", "int?", "", "requests that begin before the end of the last"),
        Field("stripe_sized", "int?", "", "requests of the size of a stripe"),
    ),
    lambda report: [row for one in all_mpi_files(report) for row in _accesses(one)],
)


def _aggregators(one: MpiFile) -> list[dict[str, Any]]:
    of_file = {"step": one.step, "file": one.file}
    return [{**vars(rank), **of_file, "number": i} for i, rank in enumerate(one.aggregators)]


def _hints(one: MpiFile) -> list[dict[str, Any]]:
    return [
        {"step": one.step, "file": one.file, "hint": key}
        | {"in_force": one.hints.get(key), "given": one.given.get(key, "")}
        for key in sorted(one.hints.keys() | one.given.keys())
    ]


def _accesses(one: MpiFile) -> Iterator[dict[str, Any]]:
    unknown = dict.fromkeys(("gaps", "skipped_bytes", "back", "stripe_sized"))
    for direction, of in (("read", one.reads), ("write", one.writes)):
        gaps = unknown if of.gaps is None else vars(of.gaps)
        yield vars(one) | vars(of) | gaps | {"direction": direction}


def mpi_io_tables(report: Report, *, pattern: str | None = None,
        top: int | None = None) -> Iterator[Table]:
    """Three tables for each file that a step opened through MPI-IO, those with most bytes first."""
    files = [one for one in all_mpi_files(report) if pattern is None or matches(one.file, pattern)]
    files.sort(key=lambda one: (-(one.reads.bytes + one.writes.bytes), one.file, one.step))
    for one in files[:top]:
        name = shown(one.file, report.cwd)
        yield _aggregator_table(report, one, name)
        if one.hints or one.given:
            yield _hint_table(one, name)
        yield _access_table(report, one, name)


def _aggregator_table(report: Report, one: MpiFile, name: str) -> Table:
    nodes = len({rank.node for rank in one.aggregators})
    expected = f"; cb_nodes = {one.hints['cb_nodes']}" if "cb_nodes" in one.hints else ""
    on = f"on {nodes} {'node' if nodes == 1 else 'nodes'}{expected}"
    count = f"{len(one.aggregators)} of {_ranks(one)} touch the file, {on}"
    if report.choice.rank is not None:
        verb = "makes" if one.aggregators else "makes no"
        count = (f"{report.choice.who} {verb} requests to the system on the file; what other ranks "
                 f"do is not looked at{expected}")
    title = f"Aggregator placement for {name} in {one.step}"
    return AGGREGATORS.table(title, _aggregators(one), remarks=[count])


def _hint_table(one: MpiFile, name: str) -> Table:
    ignored = sorted(one.ignored.items())
    remarks = (f"{key} = {value} was asked for and is not in force" for key, value in ignored)
    return HINTS.table(f"MPI-IO hints for {name} in {one.step}", _hints(one), remarks=remarks)


def _ranks(one: MpiFile) -> str:
    return f"{one.ranks} rank{'' if one.ranks == 1 else 's'}"


def _access_table(report: Report, one: MpiFile, name: str) -> Table:
    both = (one.reads, one.writes)
    rows: list[tuple[str, ...]] = []

    def line(label: str, *cells: object) -> None:
        rows.append((label, *map(str, cells)))

    def count(label: str, key: str) -> None:
        line(label, *(getattr(of, key) for of in both))

    count("independent calls", "independent")
    count("collective calls", "collective")
    for label, key in (("shared pointer", "shared"), ("non-blocking", "nonblocking"),
            ("split", "split")):
        if any(getattr(of, key) for of in both):
            count(f"  of them {label}", key)
    count("ranks with independent calls", "independent_ranks")
    count("aggregators", "system_ranks")
    if one.stripes is not None:
        line("stripe count", one.stripes, one.stripes)
    if one.stripe_bytes is not None:
        line(_STRIPE[one.stripe_source], size(one.stripe_bytes), size(one.stripe_bytes))
    count("system requests", "system")
    if one.stripe_bytes is not None:
        line("  of that size", *(_gap(of, "stripe_sized") for of in both))
    count("bytes asked for", "bytes")
    count("bytes of system requests", "system_bytes")
    line("average system request", *(of.system_bytes // of.system if of.system else "-"
        for of in both))
    line("gaps", *(_gap(of, "gaps") for of in both))
    line("average gap", *(of.gaps.skipped_bytes // of.gaps.gaps if of.gaps and of.gaps.gaps
        else "-" for of in both))
    line("steps back", *(_gap(of, "back") for of in both))
    line("s in calls, all ranks", *(f"{of.ns / 1e9:.3f}" for of in both))
    line("s in calls, busiest rank", *(f"{of.busiest_ns / 1e9:.3f}" for of in both))
    line("MB/s", *(_speed(of) for of in both))
    ranks = _ranks(one) if report.choice.rank is None else report.choice.who
    opened = (
        f"opened {_times(one.opens)} by {ranks}; file views set: {one.views}"
        if one.opens
        else "opened by no rank" if report.choice.rank is None else f"not opened by {ranks}"
    )
    if one.failed_opens:
        opened += f"; could not be opened {_times(one.failed_opens)}"
    remarks = (opened, _NONBLOCKING) if any(of.nonblocking for of in both) else (opened,)
    return Table(f"MPI-IO access patterns for {name} in {one.step}", ("<", "reads", "writes"),
        tuple(rows), remarks=remarks)


# an independent call of less than this, from many ranks, is what collective buffering is for
SMALL_BYTES = 64 << 10
MANY_CALLS = 1000


def mpi_io_findings(one: MpiFile, cwd: str | None) -> Iterator[str]:
    """Sentences on a file of MPI-IO that costs more than it must: what was asked for in vain, and
    many small calls of each rank for itself."""
    name = shown(one.file, cwd)
    for key, value in sorted(one.ignored.items()):
        if one.hints:  # else this MPI does not tell
            yield (
                f"MPI-IO, {name}: the hint {key} = {value} is not in force ({key} = "
                f"{one.hints.get(key, 'not set')})"
            )
    for of, verb in ((one.reads, "reads"), (one.writes, "writes")):
        if (
            of.independent >= MANY_CALLS
            and of.independent_ranks > 1
            and of.bytes < SMALL_BYTES * of.calls
        ):
            yield (
                f"MPI-IO, {name}: {of.independent} independent {verb} of {of.bytes // of.calls} "
                f"bytes on average, by {of.independent_ranks} ranks: "
                "collective calls would make few large requests of them"
            )


_STRIPE = {"lustre": "stripe size", "hint": "stripe size (hint)",
    "block size": "block size of the file system", "": "stripe size"}


_NONBLOCKING = (
    "non-blocking calls may return before the data has moved: what MPI_Wait takes is not in s, and "
    "MB/s is not known"
)


def _speed(of: Access) -> str:
    """MB/s of the busiest rank's time, three digits; how long non-blocking calls take is not known.
    """
    if of.nonblocking or not of.busiest_ns:
        return "-"
    found = rate(of.bytes, of.busiest_ns)
    return f"{found:.0f}" if found >= 100 or not found else f"{found:.3g}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _gap(of: Access, key: str) -> str:
    """Of the records; at lower levels of the trace there are none."""
    return "-" if of.gaps is None else str(getattr(of.gaps, key))


def mpi_io_json(one: MpiFile) -> dict[str, Any]:
    """The same figures; gaps are null where there are no records."""
    aggregators = [vars(agg) | {"rank": agg.rank.rank, "rank_label": agg.rank.label}
        for agg in one.aggregators]
    return asdict(one) | {"aggregators": aggregators, "ignored_hints": one.ignored}


def _tables(report: Report, options: Options) -> Iterator[Table | str]:
    top = options.detail_limit
    yield from mpi_io_tables(report, pattern=options.pattern, top=top)
    if top is not None and len(all_mpi_files(report)) > top:
        yield (
            f"({top} of {len(all_mpi_files(report))} files: those with most bytes; --tables mpi-io "
            f"--top 0 prints all)"
        )


MPI_IO = TableKind(
    name="mpi-io",
    heading="MPI-IO",
    shows="MPI-IO: aggregators, hints in force, access patterns",
    tables=_tables,
    why_empty="no file was opened through MPI-IO",
    json=lambda report, _: {"mpi_io": [mpi_io_json(one) for one in all_mpi_files(report)]},
    has_rows=lambda report: bool(all_mpi_files(report)),
    listings=(ACCESSES, AGGREGATORS, HINTS),
)
