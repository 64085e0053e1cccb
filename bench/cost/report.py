# SPDX-License-Identifier: Apache-2.0
"""The tables of the bench, as text, and a description of the machine they are of."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine(directory: Path) -> dict:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text()
        .split("\n") if line.startswith("model name")), "?")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "trace_file_system": file_system(directory),
        "load": os.getloadavg()[0],
    }


def file_system(directory: Path) -> str:
    """The type of the file system that the directory lies on."""
    best = ("", "?")
    for line in Path("/proc/mounts").read_text().split("\n"):
        words = line.split()
        if len(words) > 2 and (str(directory.resolve()) + "/").startswith(words[1].rstrip("/")
                + "/") and len(words[1]) >= len(best[0]):
            best = (words[1], words[2])
    return best[1]


def table(head: list[str], rows: list[list[str]]) -> str:
    """First column flush left, the others flush right, two blanks between."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, ["-" * w for w in widths], *rows]:
        cells = [cell.ljust(w) if i < 2 and not row[0].startswith("-") else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def spread(figures: dict | None, digits: int = 1) -> str:
    if figures is None:
        return "-"
    return (
        f"{figures['median']:,.{digits}f} ({figures['min']:,.{digits}f} to "
        f"{figures['max']:,.{digits}f})"
    )


def calls(result: dict) -> str:
    rows = []
    for row in result["calls"]:
        rows.append(
            [
                row["title"],
                row["tool"],
                f"{row['bare_ns']['median']:,.1f}",
                spread(row["added_ns"]),
                f"{row['floors']:.2f}",
                f"{row['tree_added_ns']['median']:,.1f}",
                spread(row["outside_added_ms"], 2),
                f"{row['bytes_per_event']:.2f} ({row['filled_bytes_per_event']:.2f})"
                if "bytes_per_event" in row else f"{row['written_bytes'] / row['calls']:.2f}*",
                str(row.get("lost_events", "-")),
            ]
        )
    head = ["call", "tool", "bare ns", "added ns in the loop", "floors", "added ns, whole",
        "ms outside the loop", "bytes/event", "lost"]
    return table(head, rows)


def text(result: dict) -> str:
    about = result["machine"]
    floor = result["floor_ns"]
    parts = [
        f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}; traces on "
        f"{about['trace_file_system']}; load {about['load']:.1f}; "
        f"{result['repeat']} repetitions",
        f"floor: {spread(floor)} ns for two readings of the clock and 32 bytes into the cache; "
        f"goal: 1.5 x = {1.5 * floor['median']:.1f} ns",
        "",
        calls(result),
        "",
        "added: median (least to most) of the differences from the untraced run of the same "
        "repetition, CPU time of the process, and of strace's,",
        "which works beside it. floors: added for each record, in floors. whole: CPU time of all "
        "processes, with start and finish. ms outside",
        "the loop: what start, finish and closing the file add. bytes/event: of the trace file (of "
        "its chunks as far as they are filled) for each",
        "record in it; *: of what was written for each call.",
        "",
        table(
            ["a process that does nothing", "", "added wall ms", "added CPU ms"],
            [[r["tool"], f"{r['runs']} runs", f"{r['added_wall_ms']:.2f}",
                f"{r['added_cpu_ms']:.2f}"] for r in result["processes"]],
        ),
        "",
    ]
    if isinstance(result["instructions"], str):
        parts.append(f"instructions: not counted, {result['instructions']}")
    else:
        rows = [[r["title"], r["tool"], f"{r['bare']:.1f}", f"{r['added']:.1f}"]
            for r in result["instructions"]]
        parts.append(table(["instructions of a call, user code", "", "bare", "added"], rows))
    parts += ["", *(f"not measured: {name}: {why}" for name, why in result["absent"].items())]
    return "\n".join(parts)
