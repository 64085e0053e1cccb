# SPDX-License-Identifier: Apache-2.0
"""Files under layers: what the program asked for beside what reached the file system."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.analysis.names import shown
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing
from weir.report.frame.figures import megabytes, seconds
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table
from weir.report.layers.compute import TOPMOST, LayeredFile, Requests, layers_of
from weir.rules.layers import kinds

FILES = Listing(
    "layers",
    "files under layers: calls of the program beside requests below the layers",
    (
        Field("requests", "int", "", "reads and writes of the program", "calls", "program",
              key=None),
        Field("bytes", "int", "bytes", "of these", "MB", "program", key=None),
        Field("iowait_ns", "int", "ns", "in the program's own calls on the file", "s", "program"),
        Field("system_requests", "int?", "",
              "requests that the lowest event layer of the stack saw, and calls of the program "
              "that went past the layers; null: none stood below another layer, or requests "
              "went past it that were not counted", "requests", "file system", key=None),
        Field("past_requests", "int?", "",
              "of these: calls that went past the layers, because one bypasses the file", "past",
              "file system", key=None),
        Field("system_bytes", "int?", "bytes", "of system_requests", "MB", "file system",
              key=None),
        Field("fewer", "real?", "", "requests by system_requests", "calls/request", "",
              "{:.1f}".format),
        Field("deferred_errors", "int", "", "failed writes of bytes that write() had accepted"),
        Field("lost_bytes", "int", "bytes", "of these"),
        Field("file", "path", "", "path of the file", "File"),
        Field("logical", "object", "",
              "requests, reads, writes, bytes, read_bytes, written_bytes, sizes (queries of layers "
              "for the size; among the requests), seconds"),
        Field("system", "object", "", "the same of system_requests; null: as there"),
        Field("past", "object", "", "the same of past_requests; null: as there"),
        Field("events", "object", "", "the same by position of the event layer in the stack"),
        Field("bypassed", "object", "", "layer, reason, times"),
        Field("statistics", "object", "", "layer, name, value, unit"),
    ),
    lambda report: [_row(one) for one in layers_of(report)],
)
FIGURES = Listing(
    "layer_figures",
    "what each layer counted on a file, and why it bypassed it",
    (
        Field("file", "path", "", "path of the file", "File"),
        Field("layer", "text?", "", "name of the layer", "Layer"),
        Field("figure", "text", "",
            "statistic of its layer.toml, or bypassed: REASON (it passed requests through "
            "unchanged)", "Figure"),
        Field("value", "int", "", "of all openings of the file", "Value"),
        Field("unit", "text", "", "of the value", "Unit"),
    ),
    lambda report: _figures(layers_of(report)),
)

_LEGEND = (
    "program: its reads and writes; s: time in all its calls on the file, added up over ranks",
    "file system: requests that the layers made of them; calls/request: calls of the program for "
    "each of these",
)
_PAST = (
    "past: of these requests, calls that the program made of the kernel itself, because a layer "
    "bypasses the file"
)
_WENT_PAST = (
    "-: not counted, because requests went past the layers (mapped memory, or a stream of the C "
    "library, of a file that they bypass; or a forwarding process made them)"
)
_NOT_SEEN = (
    "-: not counted, because the stack has no layer `event` below the others, or because the layer "
    "makes its requests on another file (pack: on the archive)"
)
_BYPASSED = "bypassed: from then on the layer passed requests of the file through unchanged"
LEAST_NS = 500_000  # what takes less shows as 0
_SYSTEM = "system"  # its reads and writes are the columns of the first table

# Why a layer bypasses a file (Reason of native/layers/machinery/stack/layer.h), for people.
REASONS = {
    "large_requests": "requests of half a buffer and more: the layer would only copy",
    "shared": "a file system of this node alone: its ranks share the kernel's cache already "
              "(always=1 uses the layer)",
    "mapped": "the program maps the file (mmap)",
    "locked": "the program locks byte ranges of it",
    "direct": "the program opened it with O_DIRECT",
    "forked": "another process shares the descriptor",
    "replaced": "exec passed it to another program",
    "conflict": "it is open a second time on the node, and one of both writes",
    "no_daemon": "no write-back daemon: bytes of a killed process would be lost",
    "no_memory": "no memory for buffers",
    "streams": "the program copied its descriptor onto a number that a stream of the C library may "
               "use (dup2 to 0, 1, 2), as dd does: what streams write is not seen",
    "unsupported": "an operation that layers do not handle (aio, io_uring, splice, O_APPEND by "
                   "several, freopen of a standard stream)",
    "random": "no order of requests that reading ahead could use",
    "cached": "the kernel has its pages in memory already (always=1 uses the layer)",
    "special": "no regular file",
    "no_messages": "nodes do not reach each other: each reads its blocks for itself",
    "held_up": "a rank that lives and does not continue has locked something shared",
    "tier_full": "the tier is full: the file is at its place",
    "no_tier": "the tier cannot be used: the file is at its place",
    "no_forwarder": "no forwarding process: ranks make their requests themselves",
}


def _row(one: LayeredFile) -> dict[str, Any]:
    system, ratio = one.system, None
    if system is not None and system.count:
        ratio = one.logical.count / system.count
    return vars(one) | {
        "requests": one.logical.count, "bytes": one.logical.bytes, "fewer": ratio,
        "system_requests": None if system is None else system.count,
        "past_requests": None if system is None else one.past.count,
        "system_bytes": None if system is None else system.bytes,
        "logical": _requests(one.logical), "system": None if system is None else _requests(system),
        "past": None if system is None else _requests(one.past),
        "events": {str(at): _requests(seen) for at, seen in sorted(one.events.items())},
        "bypassed": [vars(bypass) for bypass in one.bypassed],
        "statistics": [vars(figure) for figure in one.figures],
    }  # fmt: skip


def _requests(of: Requests) -> dict[str, Any]:
    counts = {key: count for key, count in vars(of).items() if key != "ns"}
    return {"requests": of.count, "bytes": of.bytes, "seconds": of.ns / 1e9, **counts}


def _figures(files: list[LayeredFile]) -> list[dict[str, Any]]:
    made = []
    for one in files:
        found = [(f.layer, f.name, f.value, f.unit) for f in one.figures if f.value]
        found += [(b.layer, f"bypassed: {b.reason}", b.times, "times") for b in one.bypassed]
        if one.deferred_errors:
            what = "bytes lost after write() accepted them"
            found.append((None, what, one.lost_bytes, "bytes"))
        names = ("layer", "figure", "value", "unit")
        made += [{"file": one.file, **dict(zip(names, values))} for values in found]
    return made


def _tables(report: Report, options: Options) -> Iterator[Table]:
    every = layers_of(report)
    files = every if options.top is not None else [one for one in every
        if one.iowait_ns >= LEAST_NS or one.deferred_errors] or every
    if not files:
        return
    cwd, top = report.cwd, options.limit
    listed = files[:top]
    uncounted = any(one.went_past for one in listed)
    past = any(one.system is not None and one.past.count for one in listed)
    unseen = any(one.system is None and not one.went_past for one in listed)
    less = len(every) - len(files)
    left_out = f"not listed: {less} with less than {LEAST_NS / 1e9} s; --top 0 lists all"
    yield FILES.table("Files under layers", [_row(one) for one in files], cwd=cwd, top=top,
        without=() if past else ("past_requests",),
        remarks=(*_LEGEND, *[_PAST] * past, *[_WENT_PAST] * uncounted, *[_NOT_SEEN] * unseen,
            *[left_out] * bool(less)))
    figures = [row for row in _figures(listed) if row["layer"] != _SYSTEM]
    if figures:
        yield FIGURES.table("What layers counted", [_as_text(row) for row in figures], cwd=cwd,
            remarks=_legend(listed))


def _as_text(row: dict[str, Any]) -> dict[str, Any]:
    """Its value in the unit that tables have; the topmost layer stands for the stack."""
    if row["layer"] == TOPMOST and row["unit"] == "times":
        row = row | {"layer": "all"}
    texts = {"ns": lambda value: (seconds(value), "s"),
        "bytes": lambda value: (f"{megabytes(value):.3f}", "MB")}
    if row["unit"] not in texts or row["layer"] is None:  # lost bytes are counted to the last
        return row
    return row | dict(zip(("value", "unit"), texts[row["unit"]](row["value"])))


def _legend(files: list[LayeredFile]) -> Iterator[str]:
    """What the figures and reasons of these files mean."""
    counted = dict.fromkeys((f.layer, f.name) for one in files for f in one.figures
        if f.value and f.layer != _SYSTEM)
    for layer, name in counted:
        if meaning := (kinds()[layer].statistics.get(name) if layer in kinds() else None):
            yield f"{layer}, {name}: {meaning}"
    reasons = dict.fromkeys(bypass.reason for one in files for bypass in one.bypassed)
    if reasons:
        yield _BYPASSED
    for reason in reasons:
        yield f"bypassed: {reason}: {REASONS[reason]}"


def bypass_statement(report: Report) -> str | None:
    """Of the file under layers with the most time, where they bypassed it."""
    most = next(iter(layers_of(report)), None)
    if most is None or not most.iowait_ns or not most.bypassed:
        return None
    who = {one.layer: one.reason for one in most.bypassed}
    said = "; ".join(
        f"{'all its layers' if layer == TOPMOST else f'layer {layer}'}: {REASONS[reason]}"
        for layer, reason in who.items()
    )
    return (
        f"{shown(most.file, report.cwd)}, the file under layers with the most I/O time, was "
        f"bypassed by {said} (--tables layers)"
    )


LAYERS = TableKind(
    name="layers",
    heading="Files under layers",
    short_heading="Layers",
    shows="calls on files under layers beside requests below them",
    tables=_tables,
    why_empty="no file had layers",
    json=lambda report, _: {"layers": FILES.json(FILES.rows(report))},
    has_rows=lambda report: bool(layers_of(report)),
    listings=(FILES, FIGURES),
)
