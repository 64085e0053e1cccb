# SPDX-License-Identifier: Apache-2.0
"""What the kernel counted of each process beside what weir saw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.processes.compute import ProcessFigures, all_processes

SHOWN_BYTES = 500  # less is printed as 0.000 MB


def process_table(report: Report, top: int | None = 20) -> Table:
    """What the kernel counted beside what weir saw."""

    def mb(count: int | None) -> str:
        return "?" if count is None else f"{megabytes(count):.3f}"

    every = all_processes(report)
    moved = [one for one in every if not _is_idle(one)]
    listed = sorted(moved, key=lambda one: not one.is_incomplete)[:top]
    several = len({one.node for one in every}) > 1
    rows = tuple(
        (
            one.step, *((one.node,) if several else ()), "-" if one.rank < 0 else str(one.rank), str(one.pid), mb(one.kernel_read), mb(one.seen_read),
            mb(one.kernel_written), mb(one.seen_written), mb(one.unseen), "INCOMPLETE" if one.is_incomplete else "", one.end, one.command[:100],
        )
        for one in listed
    )  # fmt: skip
    of = f" ({len(listed)} of {len(moved)})" if len(listed) < len(moved) else ""
    which = ("<Step", *(("<node",) if several else ()), "rank", "pid")
    columns = (*which, "kernel", "seen", "kernel", "seen", "MB", "<", "<end", "<command")
    groups = (("", len(which)), ("MB read", 2), ("MB written", 2), ("not seen", 1), ("", 3))
    return Table(f"Processes{of}", columns, rows, groups, remarks=tuple(_remarks(listed, len(every) - len(moved))))


def _is_idle(one: ProcessFigures) -> bool:
    """Whether it ended in order, and the table would show nothing but zeros of it."""
    figures = (one.kernel_read, one.kernel_written, one.seen_read, one.seen_written, one.unseen)
    return one.end in ("exit", "_exit", "exec") and all(count is not None and count < SHOWN_BYTES for count in figures)


def _remarks(listed: list[ProcessFigures], idle: int) -> Iterator[str]:
    yield "kernel: counted by Linux for calls. seen: recorded by weir. not seen: counted by"
    yield "Linux, also for mapped files, and not recorded."
    if any(one.is_incomplete for one in listed):
        yield "INCOMPLETE: more than 1 MiB and 1 % of the bytes of the process were not seen"
    if idle:
        yield f"{idle} {'process' if idle == 1 else 'processes'} with less than {SHOWN_BYTES} bytes: not listed (--json lists them)"


def _process(one: Any) -> dict[str, Any]:
    return {
        "step": one.step, "node": one.node, "pid": one.pid, "rank": one.rank, "command": one.command, "end": one.end,
        "calls": one.calls, "seconds": one.seconds, "kernel_bytes_read": one.kernel_read,
        "kernel_bytes_written": one.kernel_written, "seen_bytes_read": one.seen_read,
        "seen_bytes_written": one.seen_written, "incomplete": one.is_incomplete, "launcher": one.is_launcher,
    }  # fmt: skip


PROCESSES = TableKind(
    name="processes",
    heading="Processes",
    shows="bytes that the kernel counted beside those that weir saw",
    tables=lambda report, options: [process_table(report, options.limit)],
    page="last",
    json=lambda report, _: {"processes": [_process(one) for one in all_processes(report)]},
)
