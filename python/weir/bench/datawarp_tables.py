# SPDX-License-Identifier: Apache-2.0
"""The table of ``weir bench datawarp`` and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from weir.bench.datawarp import SMALL_FILES, Options, Row, Step
from weir.bench.nersc_tables import machine
from weir.bench.wrf import sizes
from weir.report.frame.table import Table, text_lines

# "Improving I/O Performance of the Weather Research and Forecast (WRF) Model", T. Balle and
# P. Johnsen, CUG 2016: what its two charts compare. Its text has no figures of them.
REFERENCE = ("3 DataWarp nodes against 3 and 16 Lustre OST stripes", "output", "input")


def header(options: Options, mpi: str) -> str:
    return (f"{options.frames} frames of the domains {sizes(options.scale)}; {options.ranks} ranks;"
            f" {options.ost_mb:g} MB/s an OST, {options.burst_mb:g} MB/s a burst buffer node;"
            f" {mpi}")


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Seconds and rates; then the bytes of each kind of server."""
    ways = [row for row in rows if "output" in row.steps or (row.error and row.name != "node-b")]
    base = next((row for row in ways if row.name == "lustre-3" and row.steps), None)
    remarks = tuple(f"{row.title}: failed: {row.error}" for row in rows if row.error)
    yield Table("Output and input that the model waits for, and staging beside it",
        ("<File system", "output, s", "MB/s", "of 3 stripes", "stage_out, s", "stage_in, s",
            "input, s", "MB/s", "of 3 stripes"),
        tuple((row.title, *_way(row, base)) for row in ways), remarks=remarks)
    yield Table("MB at the servers, program and staging together",
        ("<File system", "<Step", "<Servers", "read", "written", "least a server",
            "most a server"),
        tuple(line for row in rows for step, one in row.steps.items()
            for line in _servers(row, step, one)))
    for row in rows:
        if row.name == "node-b" and row.steps:
            yield Table("Written on node A, read on node B", ("<What", "s", "requests"),
                (("striped files", *_plain(row.steps["striped"])),
                (f"container of {SMALL_FILES} files", *_plain(row.steps["container"]))))


def _plain(step: Step) -> tuple[str, str]:
    return f"{step.seconds:.2f}", f"{step.requests:,}"


def _way(row: Row, base: Row | None) -> Iterator[str]:
    if not row.steps:
        return iter(("",) * 8)
    cells = []
    for name in ("output", "input"):
        one = row.steps[name]
        gain = base.steps[name].seconds / one.seconds if base else 0
        cells.append((f"{one.seconds:.2f}", f"{one.bytes / one.seconds / 1e6:.0f}",
            f"{gain:.1f}" if base else ""))
    staged = (f"{row.steps[name].seconds:.2f}" if name in row.steps else ""
        for name in ("stage_out", "stage_in"))
    return iter([*cells[0], *staged, *cells[1]])


def _servers(row: Row, step: str, one: Step) -> Iterator[tuple[str, ...]]:
    for kind in ("ost", "burst"):
        found = [both for name, both in one.moved.items() if name.startswith(kind)]
        if found:
            each = [read + written for read, written in found]
            yield (row.title, step, f"{len(found)} {kind}",
                *(f"{size / 1e6:.1f}" for size in (sum(r for r, _ in found),
                    sum(w for _, w in found), min(each), max(each))))


def text(found: Sequence[Table], width: int) -> str:
    return "\n\n".join("\n".join(text_lines(table, width, is_split=False)) for table in found)


def as_data(options: Options, mpi: str, rows: Sequence[Row]) -> dict[str, Any]:
    return {"machine": machine(), **asdict(options), "mpi": mpi, "reference": REFERENCE,
        "rows": [asdict(row) for row in rows]}
