# SPDX-License-Identifier: Apache-2.0
"""MPI-IO as the reference displays it: aggregator placement, hints, and the box of access patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from weir.analysis.names import matches, shown
from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, rate, size
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.mpi_io.compute import Access, MpiFile, all_mpi_files


def mpi_io_tables(report: Report, *, pattern: str | None = None, top: int | None = None) -> Iterator[Table]:
    """Three tables for each file that a step opened through MPI-IO, those with most bytes first."""
    files = [one for one in all_mpi_files(report) if pattern is None or matches(one.file, pattern)]
    files.sort(key=lambda one: (-(one.reads.bytes + one.writes.bytes), one.file, one.step))
    for one in files[:top]:
        name = shown(one.file, report.cwd)
        yield _aggregator_table(one, name)
        if one.hints or one.given:
            yield _hint_table(one, name)
        yield _access_table(one, name)


def _aggregator_table(one: MpiFile, name: str) -> Table:
    nodes = len({rank.node for rank in one.aggregators})
    rows = tuple(
        (
            str(i), str(rank.rank), rank.node, str(rank.reads), f"{megabytes(rank.read_bytes):.3f}", str(rank.writes),
            f"{megabytes(rank.written_bytes):.3f}",
        )
        for i, rank in enumerate(one.aggregators)
    )  # fmt: skip
    expected = f"; cb_nodes = {one.hints['cb_nodes']}" if "cb_nodes" in one.hints else ""
    of = f"{one.ranks} rank{'' if one.ranks == 1 else 's'}"
    count = f"{len(one.aggregators)} of {of} touch the file, on {nodes} {'node' if nodes == 1 else 'nodes'}{expected}"
    columns = ("AGG", "Rank", "<node", "reads", "MB", "writes", "MB")
    groups = (("", 3), ("system requests", 4))
    return Table(f"Aggregator placement for {name} in {one.step}", columns, rows, groups, remarks=(count,))


def _hint_table(one: MpiFile, name: str) -> Table:
    keys = sorted(one.hints.keys() | one.given.keys())
    rows = tuple((key, one.hints.get(key, "-"), one.given.get(key, "")) for key in keys)
    remarks = tuple(f"{key} = {value} was asked for and is not in force" for key, value in sorted(one.ignored.items()))
    return Table(f"MPI-IO hints for {name} in {one.step}", ("<hint", "<in force", "<given"), rows, remarks=remarks)


def _access_table(one: MpiFile, name: str) -> Table:
    both = (one.reads, one.writes)
    rows: list[tuple[str, ...]] = []

    def line(label: str, *cells: object) -> None:
        rows.append((label, *map(str, cells)))

    def count(label: str, key: str) -> None:
        line(label, *(getattr(of, key) for of in both))

    count("independent calls", "independent")
    count("collective calls", "collective")
    for label, key in (("shared pointer", "shared"), ("non-blocking", "nonblocking"), ("split", "split")):
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
    line("average system request", *(of.system_bytes // of.system if of.system else "-" for of in both))
    line("gaps", *(_gap(of, "gaps") for of in both))
    line("average gap", *(of.gaps.skipped_bytes // of.gaps.gaps if of.gaps and of.gaps.gaps else "-" for of in both))
    line("steps back", *(_gap(of, "back") for of in both))
    line("sec in calls, all ranks", *(f"{of.ns / 1e9:.3f}" for of in both))
    line("sec in calls, busiest rank", *(f"{of.busiest_ns / 1e9:.3f}" for of in both))
    line("MB/s", *(_speed(of) for of in both))
    ranks = f"{one.ranks} rank{'' if one.ranks == 1 else 's'}"
    opened = f"opened {_times(one.opens)} by {ranks}; file views set: {one.views}" if one.opens else "opened by no rank"
    if one.failed_opens:
        opened += f"; could not be opened {_times(one.failed_opens)}"
    remarks = (opened, _NONBLOCKING) if any(of.nonblocking for of in both) else (opened,)
    return Table(f"MPI-IO access patterns for {name} in {one.step}", ("<", "reads", "writes"), tuple(rows), remarks=remarks)


SMALL_BYTES = 64 << 10  # an independent call of less than this, from many ranks, is what collective buffering is for
MANY_CALLS = 1000


def mpi_io_findings(one: MpiFile, cwd: str | None) -> Iterator[str]:
    """Sentences on a file of MPI-IO that costs more than it must: what was asked for in vain, and many small calls of each rank for itself."""
    name = shown(one.file, cwd)
    for key, value in sorted(one.ignored.items()):
        if one.hints:  # else this MPI does not tell
            yield f"MPI-IO, {name}: the hint {key} = {value} is not in force ({key} = {one.hints.get(key, 'not set')})"
    for of, verb in ((one.reads, "reads"), (one.writes, "writes")):
        if of.independent >= MANY_CALLS and of.independent_ranks > 1 and of.bytes < SMALL_BYTES * of.calls:
            yield (
                f"MPI-IO, {name}: {of.independent} independent {verb} of {of.bytes // of.calls} bytes on average, by {of.independent_ranks} ranks: "
                "collective calls would make few large requests of them"
            )


_STRIPE = {"lustre": "stripe size", "hint": "stripe size (hint)", "block size": "block size of the file system", "": "stripe size"}


_NONBLOCKING = "non-blocking calls may return before the data has moved: what MPI_Wait takes is not in sec, and MB/s is not known"


def _speed(of: Access) -> str:
    """MB/s of the busiest rank's time, three digits; how long non-blocking calls take is not known."""
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
    return asdict(one) | {"ignored_hints": one.ignored}


def _tables(report: Report, options: Options) -> Iterator[Table | str]:
    top = options.detail_limit
    yield from mpi_io_tables(report, pattern=options.pattern, top=top)
    if top is not None and len(all_mpi_files(report)) > top:
        yield f"({top} of {len(all_mpi_files(report))} files: those with most bytes; --tables mpi-io --top 0 prints all)"


MPI_IO = TableKind(
    name="mpi-io",
    heading="MPI-IO",
    shows="MPI-IO: aggregators, hints in force, access patterns",
    tables=_tables,
    why_empty="no file was opened through MPI-IO",
    json=lambda report, _: {"mpi_io": [mpi_io_json(one) for one in all_mpi_files(report)]},
    has_rows=lambda report: bool(all_mpi_files(report)),
)
