# SPDX-License-Identifier: Apache-2.0
"""Tables as titles, columns and cells of text, in the layout of the reference; how they reach the screen is left to render."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.analysis.files import FileTotals, chosen
from weir.analysis.layers import LayeredFile
from weir.analysis.names import shown
from weir.analysis.routines import Routine, RoutineTable
from weir.analysis.totals import Totals
from weir.report.build import Report, StepReport
from weir.report.figures import duration, megabytes, milliseconds, percent, rate, short, size, thousands, whole

_OTHER_NAMES = 3  # of a file, that its line shows


@dataclass(frozen=True)
class Table:
    """Columns that begin with '<' are aligned left. groups: spans of columns with a heading of their own, by width."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, int], ...] = ()
    footer: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = field(default=())


def step_table(report: Report) -> Table:
    """Wall; task 0 and all tasks: calls, GB, seconds, files; active seconds."""

    def half(one: Totals, files: bool = True) -> tuple[str, ...]:
        count = "-" if one.files is None else str(one.files)
        return thousands(one.calls), short(one.bytes / 1e9), short(one.seconds), count if files else ""

    def task0(one: Totals, files: bool = True) -> tuple[str, ...]:
        return half(one, files) if report.choice.rank in (None, 0) else ("-", "-", "-", "-" if files else "")

    def active(ns: int | None) -> str:
        return "-" if ns is None else short(ns / 1e9)

    rows = tuple(
        (one.name, short(one.wall_ns / 1e9), *task0(one.task0), *half(one.all), active(one.active_ns)) for one in report.steps
    )
    wall = report.wall_ns / 1e9
    total = ("TOTAL", short(wall), *task0(report.task0, False), *half(report.all, False), active(report.active_ns))
    shares = [percent(seconds, wall) for seconds in (report.task0.seconds, report.all.seconds)]
    active_share = "-" if report.active_ns is None else percent(report.active_ns / 1e9, wall)
    if report.choice.rank not in (None, 0):
        shares[0] = "-"
    share = ("%WALL", "", "", "", shares[0], "", "", "", shares[1], "", active_share)
    columns = ("<Step", "Wall", "Calls", "GB", "sec", "files", "Calls", "GB", "sec", "files", "sec")
    groups = (("", 2), ("Task 0 I/O", 4), ("All tasks I/O", 4), ("Active", 1))
    return Table("Steps", columns, rows, groups, (total, share))


def summary_table(step: StepReport, rank: int | None) -> Table:
    """Routines of one task (None: of all) in one step."""
    table = step.routines(rank)

    def cells(row: Routine) -> tuple[str, ...]:
        figures = (megabytes(row.bytes), milliseconds(row.ns), rate(row.bytes, row.ns))
        return (row.routine, str(row.calls), *map(decimals, figures))

    tasks = sum(one >= 0 for one in step.ranks)
    everyone = f"all {tasks} tasks" + (" and other processes" if -1 in step.ranks else "")
    who = everyone if rank is None else f"task {rank}"
    remarks = _below_remarks(table)
    title = f"Summary for {step.name}, {who}"
    columns = ("<Routine", "Calls", "MB", "msec", "MB/s")
    return Table(title, columns, tuple(map(cells, table.rows)), footer=(cells(table.total),), remarks=remarks)


def decimals(value: float) -> str:
    """Whole numbers as in the reference; three decimals where these would say nothing."""
    return f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.3f}"


def _below_remarks(table: RoutineTable) -> tuple[str, ...]:
    if not table.below:
        return ()
    lines = [
        f"{r.routine:<12} {r.calls:>9} {megabytes(r.bytes):>11.3f} {milliseconds(r.ns):>11.3f} {rate(r.bytes, r.ns):>9.0f}"
        for r in table.below
    ]
    return ("below Fortran statements, not in TOTAL:", *lines)


def file_table(
    report: Report, rank: int | None, *, by: str = "msec", top: int | None = 20, threshold_ns: int = 0, pattern: str | None = None
) -> Table:
    """Files by time, or another key, over all steps of the report."""
    every = report.files_of(rank)
    files = chosen(every, by=by, top=top, threshold_ns=threshold_ns, pattern=pattern)
    rows = tuple(_file_cells(one, report.cwd) for one in files)
    who = "all tasks" if rank is None else f"task {rank}"
    which = "Files" if threshold_ns == 0 else f"Files above {threshold_ns / 1e6:g} msec"
    of = f" ({len(files)} of {len(every)})" if len(files) < len(every) else ""
    return Table(f"{which}, {who}, by {by}{of}", ("MSEC", "MB", "RATE", "CALLS", "<File"), rows)


def _file_cells(one: FileTotals, cwd: str | None) -> tuple[str, ...]:
    msec, mb = milliseconds(one.ns), megabytes(one.bytes)
    return decimals(msec), decimals(mb), whole(one.rate_mb_s), str(one.calls), shown(one.file, cwd) + _other_names(one, cwd)


def _other_names(one: FileTotals, cwd: str | None) -> str:
    if not one.also:
        return ""
    more = f" and {len(one.also) - _OTHER_NAMES} more" if len(one.also) > _OTHER_NAMES else ""
    return f" (was {', '.join(shown(name, cwd) for name in one.also[:_OTHER_NAMES])}{more})"


def file_system_table(report: Report) -> Table:
    """I/O by mounted file system."""
    rows = tuple(
        (
            one.mount.point, one.mount.kind, one.mount.source, str(one.nodes), str(one.files), str(one.calls),
            f"{megabytes(one.bytes_read):.3f}", f"{megabytes(one.bytes_written):.3f}", f"{one.ns / 1e9:.3f}",
            whole(rate(one.bytes_read + one.bytes_written, one.ns)),
        )
        for one in report.file_systems
    )  # fmt: skip
    columns = ("<Mount", "<kind", "<source", "nodes", "files", "calls", "MB", "MB", "sec", "MB/s")
    return Table("File systems", columns, rows, (("", 6), ("read", 1), ("written", 1), ("", 2)))


def request_table(report: Report) -> Table:
    """Requests by size."""
    found = report.requests
    has_below = found.of_below > 0
    rows = []
    for one in found.sizes:
        if not (one.reads or one.writes or one.below_reads or one.below_writes):
            continue
        last = "" if one.most_bytes is None else size(one.most_bytes + 1) if one.most_bytes else "1 B"
        label = "0 B" if one.most_bytes == 0 else f"{size(one.least_bytes)} - {last}"
        below = (str(one.below_reads), str(one.below_writes)) if has_below else ()
        rows.append((label, str(one.reads), str(one.writes), *below))
    remarks = []
    if found.small_share is not None:
        share = f"{100 * found.small_share:.1f} %"
        remarks.append(f"under 4 KiB: {found.small_app} of {found.of_app} requests of the application ({share})")
    if has_below:
        share = f"{100 * found.small_below / found.of_below:.1f} %"
        remarks.append(f"under 4 KiB: {found.small_below} of {found.of_below} system requests below calls of the application ({share})")
    columns = ("<Size", "Reads", "Writes") + (("below: reads", "writes") if has_below else ())
    return Table("Requests by size (from - below)", columns, tuple(rows), remarks=tuple(remarks))


def duration_table(report: Report) -> Table:
    """Requests by duration."""
    rows = tuple(
        (f"{duration(one.from_ns)} - {'' if one.to_ns is None else duration(one.to_ns)}", str(one.reads), str(one.writes))
        for one in report.requests.durations
        if one.reads or one.writes
    )
    return Table("Requests by duration", ("<Time", "Reads", "Writes"), rows)


def unit_table(report: Report, top: int | None = 20) -> Table:
    """Fortran units: statements against the system requests that they became."""
    units = report.units[:top]
    rows = tuple(
        (
            ",".join(map(str, one.units)) or "-", str(one.reads), str(one.writes), f"{megabytes(one.payload_bytes):.3f}",
            f"{milliseconds(one.ns):.3f}", str(one.system_requests), f"{megabytes(one.system_bytes):.3f}",
            shown(one.file, report.cwd),
        )
        for one in units
    )  # fmt: skip
    statements, became = sum(u.statements for u in report.units), sum(u.system_requests for u in report.units)
    remarks = (f"{statements} statements became {became} system requests",) if report.units else ()
    of = f" ({len(units)} of {len(report.units)})" if len(units) < len(report.units) else ""
    columns = ("Unit", "READ", "WRITE", "MB", "msec", "system", "MB", "<File")
    groups = (("", 1), ("statements", 4), ("requests", 2), ("", 1))
    return Table(f"Fortran units{of}", columns, rows, groups, remarks=remarks)


def layer_table(report: Report, top: int | None = 20) -> Table:
    """Files under layers: what the program asked for beside what reached the file system."""

    def system(one: LayeredFile) -> tuple[str, str, str]:
        below = one.system
        if below is None:
            return "-", "-", "-"
        ratio = f"{one.logical.count / below.count:.1f}" if below.count else "-"
        return str(below.count), f"{megabytes(below.bytes):.3f}", ratio

    files = report.layers[:top]
    rows = tuple(
        (
            str(one.logical.count), f"{megabytes(one.logical.bytes):.3f}", f"{one.iowait_ns / 1e9:.3f}", *system(one),
            shown(one.file, report.cwd),
        )
        for one in files
    )  # fmt: skip
    of = f" ({len(files)} of {len(report.layers)})" if len(files) < len(report.layers) else ""
    columns = ("requests", "MB", "IOWAIT", "requests", "MB", "fewer", "<File")
    return Table(f"Files under layers{of}", columns, rows, (("logical", 3), ("system", 3), ("", 1)))


def layer_figure_table(report: Report, top: int | None = 20) -> Table:
    """What each layer counted, and why it stood aside."""
    rows = []
    for one in report.layers[:top]:
        file = shown(one.file, report.cwd)
        rows += [(file, f.layer, f.name, str(f.value), f.unit) for f in one.figures if f.value]
        rows += [(file, left.layer, f"left: {left.reason}", str(left.times), "times") for left in one.left]
        if one.deferred_errors:
            rows.append((file, "-", "bytes lost after write() accepted them", str(one.lost_bytes), "bytes"))
    return Table("What layers counted", ("<File", "<Layer", "<Figure", "Value", "<Unit"), tuple(rows))


def process_table(report: Report, top: int | None = 20) -> Table:
    """What the kernel counted beside what weir saw."""

    def mb(count: int | None) -> str:
        return "?" if count is None else f"{megabytes(count):.3f}"

    every = report.processes
    listed = sorted(every, key=lambda one: not one.is_blind)[:top]
    rows = tuple(
        (
            one.step, "-" if one.rank < 0 else str(one.rank), str(one.pid), mb(one.kernel_read), mb(one.seen_read),
            mb(one.kernel_written), mb(one.seen_written), "BLIND" if one.is_blind else "", one.end, one.command[:100],
        )
        for one in listed
    )  # fmt: skip
    of = f" ({len(listed)} of {len(every)})" if len(listed) < len(every) else ""
    columns = ("<Step", "rank", "pid", "kernel", "seen", "kernel", "seen", "<", "<end", "<command")
    groups = (("", 3), ("MB read", 2), ("MB written", 2), ("", 3))
    return Table(f"Processes{of}", columns, rows, groups)
