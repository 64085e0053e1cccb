# SPDX-License-Identifier: Apache-2.0
"""What the bench of layers measures, line by line, and the goals. All figures of a line are of one
interleaved run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from weir.bench._statistics import Spread
from weir.bench.lab import Check, Figure, Lab, Line, Outcome, Run, spread

KIB, MIB = 1 << 10, 1 << 20
# Layers as the lines use them; `weir bench layers --stack NAME=STACK` takes others.
STACKS = {
    "read": "bufa:1MiB:16",
    "stride": "bufa:64KiB:64",
    "fread": "bufa:1MiB:16",
    "write": "bufa:1MiB:16",
    "dump": "bufa:1MiB:80",
    "global": "global:512:8",
    "gather": "gather:1MiB:16",
    "keep": "keep",
    "nothing": "bufa:1MiB:4",
    "through": "error:op=write:errno=EIO:rate=0",
}


def rate(run: Run) -> float:
    """MB per second of the program."""
    return run["bytes"] / run["seconds"] / 1e6


def per_call_us(run: Run) -> float:
    return 1e6 * run["seconds"] / run["calls"]


def filled(lab: Lab, name: str, size: int, piece: int = 4 * MIB, stride: int | None = None) -> Path:
    """A file of known contents behind the mount, written once; its path on the mount."""
    path = lab.backing / name
    if not path.exists() or path.stat().st_size != size:
        lab.alone("fill", path, size, piece, stride or piece)
    return lab.directory / name


def whole(size: float, unit: int) -> int:
    """At least one, and a whole number of units, in bytes."""
    return max(1, round(size / unit)) * unit


def read_small(lab: Lab) -> Outcome:
    size = whole(256 * MIB * lab.scale, 4 * MIB)
    file, few = filled(lab, "read.dat", size), lab.count(4096)

    def reads(count: int, stack: str | None = None) -> Run:
        return lab.alone("read", file, KIB, count, KIB, 1, stack=stack)

    many = lab.worthwhile(few, size // KIB, reads, lambda count: reads(count, lab.stacks["read"]))
    runs = lab.interleaved(
        plain=lambda: reads(few),
        layered=lambda: reads(many, lab.stacks["read"]),
        limit=lambda: lab.alone("parallel", file, size, 16),
    )
    figures = tuple(Figure(name, "MB/s", spread(runs[name], rate)) for name in runs)
    plain, layered, limit = (figure.spread.median for figure in figures)
    return Outcome(figures, (Check("x plain", layered / plain, 350),
        Check("of the limit", layered / limit, 0.97)))


def stride(lab: Lab, step: int) -> Outcome:
    count = lab.count(8192)
    name = f"stride{step // KIB}.dat"
    file, few = filled(lab, name, count * step, KIB, step), min(count, lab.count(1024))
    runs = lab.interleaved(
        plain=lambda: lab.alone("read", file, KIB, few, step, 1),
        layered=lambda: lab.alone("read", file, KIB, count, step, 1, stack=lab.stacks["stride"]),
    )
    figures = tuple(Figure(name, "us/call", spread(runs[name], per_call_us)) for name in runs)
    return Outcome(figures,
        (Check("x plain", figures[0].spread.median / figures[1].spread.median, 20),))


def fread_bytes(lab: Lab) -> Outcome:
    size = whole(64 * MIB * lab.scale, MIB)
    file = filled(lab, "fread.dat", size)
    runs = lab.interleaved(
        plain=lambda: lab.alone("fread", file, size),
        layered=lambda: lab.alone("fread", file, size, stack=lab.stacks["fread"]),
    )
    figures = tuple(Figure(name, "ns/call", spread(runs[name], lambda r: 1e3 * per_call_us(r)))
        for name in runs)
    return Outcome(figures, (Check("ns a call", figures[1].spread.median, 5, least=False),))


def write_small(lab: Lab) -> Outcome:
    few, many = lab.count(2048), lab.count(4 << 20)
    file = lab.directory / "write.dat"

    def written(count: int, stack: str | None) -> Run:
        result = lab.alone("write", file, 64, count, 1, stack=stack)
        lab.alone("check", lab.backing / "write.dat", 64 * count)
        return result

    many = lab.worthwhile(few, many, lambda count: written(count, None),
        lambda count: written(count, lab.stacks["write"]))
    runs = lab.interleaved(plain=lambda: written(few, None),
        layered=lambda: written(many, lab.stacks["write"]))
    figures = tuple(Figure(name, "MB/s", spread(runs[name], rate)) for name in runs)
    return Outcome(figures,
        (Check("x plain", figures[1].spread.median / figures[0].spread.median, 1000),))


def dump(lab: Lab) -> Outcome:
    size, rounds = whole(64 * MIB * lab.scale, MIB), 5
    file = lab.directory / "dump.dat"

    def dumped(stack: str | None) -> Run:
        # A second of computing in between: on a loaded machine less would time the writing of the
        # dump before, not the copy.
        result = lab.alone("dump", file, size, 64 * KIB, rounds, 1000, stack=stack)
        lab.alone("check", lab.backing / "dump.dat", (rounds + 1) * size)
        return result

    runs = lab.interleaved(plain=lambda: dumped(None), layered=lambda: dumped(lab.stacks["dump"]))
    stalls = tuple(Figure(f"{name} stall", "ms", spread(runs[name], lambda r: 1e3 * r["seconds"]))
        for name in runs)
    copies = Figure("memcpy", "ms", spread(runs["layered"], lambda r: 1e3 * r["memcpy_s"]))
    times = spread(runs["layered"], lambda r: r["seconds"] / r["memcpy_s"])
    return Outcome((*stalls, copies), (Check("x memcpy", times.median, 1.2, least=False),))


def global_nodes(lab: Lab) -> Outcome:
    """The eight nodes have the cores of one machine here, so the server gets slower in that
    proportion: by the preset's bandwidth copies between the nodes would be measured, not what they
    save."""
    with lab.bandwidth_mb(125 * (os.cpu_count() or 1)):
        return _global_nodes(lab)


def _global_nodes(lab: Lab) -> Outcome:
    size, ranks = whole(256 * MIB * lab.scale, 2 * MIB), 8
    file = filled(lab, "global.dat", size)

    def all_read(stack: str | None, path: Path = file) -> Run:
        return lab.together(ranks, "read", path, size, 256 * KIB, stack=stack,
            environment={"WEIR_NODE_RANKS": "1"})

    runs = lab.interleaved(
        plain=lambda: all_read(None),
        layered=lambda: all_read(lab.stacks["global"]),
        # what the cores of this machine can copy
        memory=lambda: all_read(None, lab.backing / "global.dat"),
    )
    figures = tuple(Figure(name, "MB/s", spread(runs[name], rate)) for name in runs)
    served = Figure("server bytes", "x file", spread(runs["layered"], lambda r: r["moved"] / size))
    faster = figures[1].spread.median / figures[0].spread.median
    exact = Check("server bytes / file", round(served.spread.median, 2), 1.0, least=False)
    return Outcome((*figures, served), (Check("x plain, of 8", faster, 7), exact))


def gather(lab: Lab) -> Outcome:
    ranks, piece, count = 8, 512, lab.count(8192)
    file = lab.directory / "gather.dat"

    def written(stack: str | None) -> Run:
        (lab.backing / "gather.dat").unlink(missing_ok=True)
        result = lab.together(ranks, "write", file, count, piece, stack=stack)
        lab.alone("check", lab.backing / "gather.dat", ranks * count * piece)
        return result

    runs = lab.interleaved(plain=lambda: written(None),
        layered=lambda: written(lab.stacks["gather"]))
    seconds = tuple(Figure(name, "s", spread(runs[name], lambda r: r["seconds"])) for name in runs)
    requests = tuple(Figure(f"{name} requests", "", spread(runs[name], lambda r: r["requests"]))
        for name in runs)
    faster = seconds[0].spread.median / seconds[1].spread.median
    fewer = requests[0].spread.median / max(1, requests[1].spread.median)
    return Outcome((*seconds, *requests),
        (Check("x plain", faster, 50), Check("x fewer requests", fewer, 500)))


def keep(lab: Lab, program: str) -> Outcome:
    few, many = lab.count(1500), lab.count(100_000)
    file = lab.directory / f"{program}.dat"
    filled(lab, "stat.dat", 4096)

    def called(count: int, stack: str | None) -> Run:
        if program == "append":
            (lab.backing / "append.dat").unlink(missing_ok=True)
        result = lab.alone(program, file, count, stack=stack)
        if program == "append":
            lab.alone("check", lab.backing / "append.dat", 96 * count)
        return result

    many = lab.worthwhile(few, many, lambda count: called(count, None),
        lambda count: called(count, lab.stacks["keep"]))
    runs = lab.interleaved(plain=lambda: called(few, None),
        layered=lambda: called(many, lab.stacks["keep"]))
    figures = tuple(Figure(name, "us/call", spread(runs[name], per_call_us)) for name in runs)
    return Outcome(figures,
        (Check("x plain", figures[0].spread.median / figures[1].spread.median, 500),))


def nothing_to_gain(lab: Lab) -> Outcome:
    """Files in memory, files that the kernel has cached, large aligned requests: each plain beside
    the layer."""

    def settled(arguments: tuple[object, ...], stack: str | None) -> Run:
        os.sync()  # else the disk is busy with what the run before has written
        return lab.alone(*arguments, stack=stack)

    figures, checks = [], []
    for name, arguments in _nothing(lab):
        runs = lab.interleaved(
            plain=lambda a=arguments: settled(a, None), layered=lambda a=arguments: settled(a,
                lab.stacks["nothing"])
        )
        of = [spread(runs[way], rate) for way in ("plain", "layered")]
        figures += [Figure(f"{name}, plain", "MB/s", of[0]),
            Figure(f"{name}, layered", "MB/s", of[1])]
        checks.append(Check(f"x plain, {name}", of[1].median / of[0].median, 0.97))
    return Outcome(tuple(figures), tuple(checks))


def _nothing(lab: Lab) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Programs that do the same several times and say how long the quickest took: differences of 3
    % are looked for."""
    size, times = whole(64 * MIB * lab.scale, 4 * MIB), 7
    for place, directory in (("tmpfs", lab.place), ("page cache", lab.disk)):
        file = directory / "nothing.dat"
        lab.alone("fill", file, size, 4 * MIB, 4 * MIB)
        for piece, label in ((4 * KIB, "4 KiB"), (MIB, "1 MiB")):
            yield f"{place} read {label}", ("read", file, piece, size // piece, piece, times)
            yield f"{place} write {label}", ("write", directory / "written.dat", piece,
                size // piece, times)
    file = filled(lab, "large.dat", size)
    yield "testfs read 4 MiB", ("read", file, 4 * MIB, size // (4 * MIB), 4 * MIB, times)
    yield "testfs write 4 MiB", ("write", lab.directory / "written.dat", 4 * MIB, size // (4 * MIB),
        times)


def added_per_call(lab: Lab, stack: str, limit_ns: float) -> Outcome:
    """What a call costs more than without the library: each repetition's difference from its own
    plain run."""
    file, count = lab.place / "calls.dat", lab.count(4_000_000, least=1000)
    file.write_bytes(b"\0" * 4096)
    runs = lab.interleaved(plain=lambda: lab.alone("calls", file, count),
        layered=lambda: lab.alone("calls", file, count, stack=stack))
    figures = tuple(Figure(name, "ns/call", spread(runs[name], lambda r: r["best_ns"]))
        for name in runs)
    added = Spread.of([b["best_ns"] - a["best_ns"] for a, b in zip(runs["plain"], runs["layered"],
        strict=True)])
    # Nanoseconds are judged by the quickest run of each side: others on the machine only ever add
    # to one.
    quickest = figures[1].spread.low - figures[0].spread.low
    return Outcome((*figures, Figure("added", "ns/call", added)),
        (Check("ns a call, quickest", quickest, limit_ns, least=False),))


def unmatched(lab: Lab) -> Outcome:
    """The library is there, with a rule for files of another name."""
    return added_per_call(replace(lab, pattern="*.other"), lab.stacks["through"], 2)


LINES: tuple[Line, ...] = (
    Line("read", "bufa: 1 KB sequential reads, uncached", read_small),
    Line("stride64k", "bufa: 1 KB every 64 KB", lambda lab: stride(lab, 64 * KIB)),
    Line("stride1m", "bufa: 1 KB every 1 MB", lambda lab: stride(lab, MIB)),
    Line("fread", "bufa: fread of one byte", fread_bytes),
    Line("write", "bufa: write-behind of 64-byte records", write_small),
    Line("dump", "bufa: visible stall of a dump", dump),
    Line("global", "global: 8 nodes read one file", global_nodes),
    Line("gather", "gather: interleaved small writes of 8 ranks", gather),
    Line("append", "keep: open, append, close", lambda lab: keep(lab, "append")),
    Line("stat", "keep: stat storm", lambda lab: keep(lab, "stat")),
    Line("nothing", "nothing to gain: never below plain", nothing_to_gain),
    Line("through", "a stack that only passes through",
        lambda lab: added_per_call(lab, lab.stacks["through"], 10)),
    Line("unmatched", "files without a rule", unmatched),
)
