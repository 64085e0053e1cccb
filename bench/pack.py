#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many small files, plain, under the layer pack, and under pack with `weir pack extract` behind it.

    bench/pack.py [--on lustre,tmpfs,glusterfs] [--mpi NAME] [--files N] [--repeat N] [--disk DIR]

An unmodified program (tests/programs/small_files.c): 8 ranks create 20,000 files of 2,048 bytes in
one directory, read back those of other ranks, and one process reads all. Seconds between the
program's barriers, and of the whole step with the start of processes and the container's end;
medians of interleaved runs. Requests are those that `weir testfs` counted. Needs `make build`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from weir_glusterfs import GlusterFs, why_not  # noqa: E402
from weir_mpi import IMPLEMENTATIONS, Mpi  # noqa: E402

from weir.bench._process import numbers, run  # noqa: E402
from weir.bench._programs import clean_environment, weir_command  # noqa: E402
from weir.bench._scratch import scratch  # noqa: E402
from weir.testfs import Mount, mounted  # noqa: E402

RANKS, BYTES, LIMIT_S = 8, 2048, 1800
STACK = "pack:name=files.zip"


@dataclass(frozen=True)
class Step:
    """What one step took, and what the file system served; None where nobody counts. cpu_s: of all
    ranks, without waiting for each other; a busy machine changes it little."""

    seconds: float
    whole_s: float
    cpu_s: float
    metadata: int | None = None
    data: int | None = None


@dataclass(frozen=True)
class Place:
    """A directory on the file system that is measured."""

    directory: Path
    mount: Mount | None = None

    def counted(self, work: Callable[[], tuple[float, float, float]]) -> Step:
        if self.mount is None:
            return Step(*work())
        self.mount.reset()
        seconds = work()
        stats = self.mount.stats()
        return Step(*seconds, stats.total - stats.data_requests, stats.data_requests)


@contextmanager
def place_on(system: str, disk: str | None) -> Iterator[Place]:
    """lustre and other presets of the test file system, glusterfs, tmpfs, disk."""
    if system == "glusterfs":
        cluster = GlusterFs()
        try:
            yield Place(cluster.path)
        finally:
            cluster.close()
    elif system in ("tmpfs", "disk"):
        with scratch(disk if system == "disk" else None, in_memory=system == "tmpfs") as there:
            yield Place(there)
    else:
        with scratch() as there:
            for name in ("mount", "data"):
                (there / name).mkdir()
            with mounted(there / "mount", backing=there / "data", preset=system,
                    owner=os.getpid()) as mount:
                yield Place(there / "mount", mount)


class Bench:
    """The steps of one program on one file system."""

    steps = (("create", "create", RANKS, 0), ("read back", "read", RANKS, 1),
        ("one reader", "read", 1, 0))

    def __init__(self, mpi: Mpi, place: Place, files: int, rules: Path):
        self.mpi, self.place, self.files, self.rules = mpi, place, files, rules
        self.program = mpi.cc(ROOT / "tests" / "programs" / "small_files.c", name="small_files")
        self.environment = {**clean_environment(), **mpi.env}
        self.runs = 0
        self.plain = self.packed = place.directory / "none"

    def step(self, what: str, ranks: int, packed: bool, shift: int = 0) -> Step:
        directory = self.packed if packed else self.plain
        line = self.mpi.launch(ranks, self.program, what, directory, self.files, BYTES, shift)
        if packed:
            line = weir_command("run", "--rules", self.rules, "--", *line)
        return self.place.counted(lambda: self._timed(line))

    def _timed(self, line: list[str]) -> tuple[float, float, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        text = run(line, self.environment, self.rules.parent, LIMIT_S)
        whole_s = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if "small_files" in text:
            found = numbers(text, "small_files")
            return found["seconds"], whole_s, found["cpu"]
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return whole_s, whole_s, cpu_s

    def extract(self) -> Step:
        """Real files of all packed ones."""
        containers = sorted(self.packed.glob("*.zip"))
        if not containers:
            return Step(0.0, 0.0, 0.0, 0, 0)
        line = weir_command("pack", "extract", *containers)
        return self.place.counted(lambda: self._timed(line))

    def once(self) -> dict[str, dict[str, Step]]:
        """By step and column; the plain one of each step just before the packed one."""
        if self.place.mount is not None:
            for directory in (self.plain, self.packed):
                shutil.rmtree(directory, ignore_errors=True)
        self.runs += 1
        self.plain = self.place.directory / f"plain{self.runs}"
        self.packed = self.place.directory / f"packed{self.runs}"
        self.plain.mkdir()
        self.packed.mkdir()
        found: dict[str, dict[str, Step]] = {}
        for name, what, ranks, shift in self.steps:
            found[name] = {"plain": self.step(what, ranks, False, shift),
                "pack": self.step(what, ranks, True, shift)}
        found["create"]["extract"] = total(found["create"]["pack"], self.extract())
        return found


def total(one: Step, other: Step) -> Step:
    metadata = None if one.metadata is None else one.metadata + (other.metadata or 0)
    data = None if one.data is None else one.data + (other.data or 0)
    return Step(one.seconds + other.seconds, one.whole_s + other.whole_s,
        one.cpu_s + other.cpu_s, metadata, data)


def medians(runs: list[Step]) -> Step:
    counts = [None if runs[0].metadata is None else
        round(statistics.median([getattr(one, name) for one in runs])) for name in
        ("metadata", "data")]
    times = [statistics.median([getattr(one, name) for one in runs]) for name in
        ("seconds", "whole_s", "cpu_s")]
    return Step(*times, *counts)


HEAD = """\
| file system | MPI | step | | seconds | plain/this | CPU s of ranks | whole step, s | \
metadata requests | plain/this | reads and writes |
|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|"""


def lines(system: str, mpi: str, found: list[dict[str, dict[str, Step]]]) -> Iterator[str]:
    for step, columns in found[0].items():
        plain = medians([one[step]["plain"] for one in found])
        for column in columns:
            one = medians([each[step][column] for each in found])
            counts = "| - | - | -" if one.metadata is None else (
                f"| {one.metadata:,} | {plain.metadata / max(one.metadata, 1):,.0f} "
                f"| {one.data:,}")
            yield (f"| {system} | {mpi} | {step} | {column} | {one.seconds:.3f} "
                   f"| {plain.seconds / one.seconds:.1f} | {one.cpu_s:.2f} | {one.whole_s:.2f} "
                   f"{counts} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--on", default="lustre,tmpfs,glusterfs", metavar="LIST",
        help="presets of the test file system, glusterfs, tmpfs, disk")
    parser.add_argument("--mpi", default="", metavar="NAME", help="openmpi or mpich alone")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--without-one-reader", action="store_true",
        help="leave out the step that takes longest, reading by one process")
    parser.add_argument("--disk", metavar="DIR", help="directory for --on disk")
    options = parser.parse_args()
    print(f"{RANKS} ranks, files of {BYTES:,} bytes, medians of {options.repeat}; "
          f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}\n\n{HEAD}",
        flush=True)
    for system in options.on.split(","):
        if system == "glusterfs" and (reason := why_not()):
            print(f"\nnot measured: {reason}\n", flush=True)
            continue
        for mpi in IMPLEMENTATIONS.values():
            if options.mpi not in ("", mpi.name) or mpi.missing():
                continue
            with scratch() as room, place_on(system, options.disk) as place:
                rules = room / "rules.toml"
                rules.write_text(f'[[rule]]\nname = "file.*"\nstack = "{STACK}"\n')
                bench = Bench(mpi, place, options.files, rules)
                if options.without_one_reader:
                    bench.steps = Bench.steps[:2]
                found = [bench.once() for _ in range(options.repeat)]
            title = f"{system}, {options.files:,} files"
            print("\n".join(lines(title, mpi.name, found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
