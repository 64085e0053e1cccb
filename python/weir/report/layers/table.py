# SPDX-License-Identifier: Apache-2.0
"""Files under layers: what the program asked for beside what reached the file system."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.analysis.names import shown
from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.layers.compute import LayeredFile, layers_of
from weir.report.layers.compute import Requests as LayerRequests


def layer_table(report: Report, top: int | None = 20) -> Table:
    """Files under layers: what the program asked for beside what reached the file system."""

    def system(one: LayeredFile) -> tuple[str, str, str]:
        below = one.system
        if below is None:
            return "-", "-", "-"
        ratio = f"{one.logical.count / below.count:.1f}" if below.count else "-"
        return str(below.count), f"{megabytes(below.bytes):.3f}", ratio

    files = layers_of(report)[:top]
    rows = tuple(
        (
            str(one.logical.count), f"{megabytes(one.logical.bytes):.3f}", f"{one.iowait_ns / 1e9:.3f}", *system(one),
            shown(one.file, report.cwd),
        )
        for one in files
    )  # fmt: skip
    of = f" ({len(files)} of {len(layers_of(report))})" if len(files) < len(layers_of(report)) else ""
    columns = ("requests", "MB", "IOWAIT", "requests", "MB", "fewer", "<File")
    return Table(f"Files under layers{of}", columns, rows, (("logical", 3), ("system", 3), ("", 1)))


# Why a layer bypasses a file (Reason of native/layers/machinery/stack/layer.h), for people.
REASONS = {
    "large_requests": "requests of half a buffer and more: the layer would only copy",
    "shared": "a file system of this node alone: its ranks share the kernel's cache already (always=1 uses the layer)",
    "mapped": "the program maps the file (mmap)",
    "locked": "the program locks byte ranges of it",
    "direct": "the program opened it with O_DIRECT",
    "forked": "a child process shares the descriptor",
    "replaced": "exec passed it to another program",
    "conflict": "it is open a second time on the node, and one of both writes",
    "no_daemon": "no write-back daemon: bytes of a killed process would be lost",
    "no_memory": "no memory for buffers",
    "unsupported": "an operation that layers do not handle (aio, io_uring, splice, O_APPEND by several)",
    "random": "no order of requests that reading ahead could use",
    "cached": "the kernel has its pages in memory already (always=1 uses the layer)",
    "special": "no regular file",
    "no_messages": "nodes do not reach each other: each reads its blocks for itself",
    "held_up": "a rank that lives and does not continue has locked something shared",
}


def layer_figure_table(report: Report, top: int | None = 20) -> Table:
    """What each layer counted, and why it bypassed files."""
    rows = []
    for one in layers_of(report)[:top]:
        file = shown(one.file, report.cwd)
        rows += [(file, f.layer, f.name, str(f.value), f.unit) for f in one.figures if f.value]
        rows += [(file, bypass.layer, f"bypassed: {bypass.reason}", str(bypass.times), "times") for bypass in one.bypassed]
        if one.deferred_errors:
            rows.append((file, "-", "bytes lost after write() accepted them", str(one.lost_bytes), "bytes"))
    seen = dict.fromkeys(bypass.reason for one in layers_of(report)[:top] for bypass in one.bypassed)
    remarks = tuple(f"bypassed: {reason}: {REASONS[reason]}" for reason in seen)
    columns = ("<File", "<Layer", "<Figure", "Value", "<Unit")
    return Table("What layers counted", columns, tuple(rows), remarks=remarks)


def _tables(report: Report, options: Options) -> Iterator[Table]:
    if layers_of(report):
        yield layer_table(report, options.limit)
        figures = layer_figure_table(report, options.limit)
        if figures.rows:
            yield figures


def _layered(one: LayeredFile) -> dict[str, Any]:
    def requests(of: LayerRequests | None) -> dict[str, Any] | None:
        if of is None:
            return None
        return {
            "requests": of.count, "reads": of.reads, "writes": of.writes, "bytes": of.bytes,
            "read_bytes": of.read_bytes, "written_bytes": of.written_bytes, "sizes": of.sizes, "seconds": of.ns / 1e9,
        }  # fmt: skip

    return {
        "file": one.file,
        "logical": requests(one.logical),
        "system": requests(one.system),
        "iowait_s": one.iowait_ns / 1e9,
        "events": {str(position): requests(seen) for position, seen in sorted(one.events.items())},
        "bypassed": [{"layer": bypass.layer, "reason": bypass.reason, "times": bypass.times} for bypass in one.bypassed],
        "statistics": [{"layer": f.layer, "name": f.name, "value": f.value, "unit": f.unit} for f in one.figures],
        "deferred_errors": one.deferred_errors,
        "lost_bytes": one.lost_bytes,
    }


LAYERS = TableKind(
    name="layers",
    heading="Files under layers",
    short_heading="Layers",
    shows="calls on files under layers beside requests below them",
    tables=_tables,
    why_empty="no file had layers",
    json=lambda report, _: {"layers": [_layered(one) for one in layers_of(report)]},
    has_rows=lambda report: bool(layers_of(report)),
)
