# SPDX-License-Identifier: Apache-2.0
"""Small files of the OLAM model under what comes nearest to each of the five techniques of "Small-
File Access in Parallel File Systems" (P. Carns and others, IPDPS 2009), which the study plans to
evaluate: writing, reading back, listing and removing them, by requests and seconds. The names of
the techniques are derived from settings of its file system, PVFS (docs/guide/olam.md)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import weir_command
from weir.bench._scratch import scratch
from weir.bench.olam import LUSTRE, Bench
from weir.bench.olam_places import Place, open_place
from weir.report.frame.table import Table

# A tenth of the study's sizes, ten times written.
FRAMES, SIZES = 10, ("--plot-kb", 20, "--result-kb", 50, "--history-mb", 0.2, "--input-mb", 0.1)
PATTERNS = ("plot.*", "result.*", "history.*")
STEPS = ("write", "read back", "list", "remove")
_TIMED = """
import subprocess, sys, time
begin = time.monotonic()
lines = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout.count(b"\\n")
print(f"timed: seconds={time.monotonic() - begin:.6f} lines={lines}")
"""


@dataclass(frozen=True)
class Row:
    """stack: of the rule for all files, {0} a directory in memory. is_precreated: the names are
    there before the run. drains: files reach their place after the run."""

    name: str
    techniques: str
    stack: str = ""
    is_precreated: bool = False
    drains: bool = False


ROWS = (
    Row("plain", "-"),
    Row("names made before the run", "precreation", is_precreated=True),
    Row("stage", "precreation, coalescing", "stage:tier={0}", drains=True),
    Row("bufa", "eager I/O", "bufa:1MiB:2"),
    Row("forward", "eager I/O", "forward:512:32"),
    Row("pack", "stuffing, coalescing, readdirplus", "pack:name=files.zip"),
)


@dataclass(frozen=True)
class Step:
    """later_s: until all is at its place, beyond the seconds of the program."""

    metadata: float
    data: float
    seconds: float
    later_s: float = 0.0


@dataclass(frozen=True)
class Found:
    row: Row
    files: int
    steps: dict[str, Step]
    error: str = ""


def files_of(ranks: int) -> int:
    return ranks + FRAMES * ranks + FRAMES


def techniques(bench: Bench, place: Path) -> Iterator[Found]:
    """One row after the other; a run that fails is the row's error."""
    ranks = max(bench.options.ranks)
    for row in ROWS:
        runs: list[dict[str, Step]] = []
        try:
            for repetition in range(bench.options.repeat):
                bench.note(f"small files, {row.name}, {repetition + 1} of {bench.options.repeat}")
                with open_place(place, place, LUSTRE, 1) as nodes, scratch() as memory:
                    runs.append(_Job(bench, nodes, row, ranks, memory).all())
        except RunFailed as error:
            yield Found(row, files_of(ranks), {}, str(error))
            continue
        yield Found(row, files_of(ranks), {name: _medians([one[name] for one in runs])
            for name in runs[0]})


def _medians(runs: Sequence[Step]) -> Step:
    return Step(*(median([getattr(one, name) for one in runs])
        for name in ("metadata", "data", "seconds", "later_s")))


class _Job:
    """The steps of one row on one mount."""

    def __init__(self, bench: Bench, nodes: Place, row: Row, ranks: int, memory: Path):
        self.bench, self.nodes, self.row, self.ranks, self.memory = bench, nodes, row, ranks, memory
        self.directory = nodes.directory / "node0"
        self.tier = memory / "tier"
        stack = row.stack.format(self.tier)
        self.rules = memory / "rules.toml"
        self.rules.write_text("".join(f'[[rule]]\nname = "{pattern}"\nstack = "{stack}"\n'
            for pattern in PATTERNS))
        self.run([*bench.mpi.command(1, bench.program, ["--setup", "--input", memory, *SIZES])],
            False)

    def all(self) -> dict[str, Step]:
        if self.row.is_precreated:
            self.olam()
            for path in self.nodes.backings[0].iterdir():
                path.write_bytes(b"")
        with self.at_place() if self.row.drains else nullcontext():
            steps = {"write": self.counted(self.olam, self.recover)}
            steps["read back"] = self.counted(lambda: self.olam("--verify"))
            steps["list"] = self.counted(lambda: self.timed("ls", "-l", self.directory))
            steps["remove"] = self.counted(lambda: self.timed("find", self.directory, "-type", "f",
                "-delete"))
        left = [path.name for path in self.nodes.backings[0].iterdir()]
        if left:
            raise RunFailed(f"{len(left)} files were left after all had been removed: {left[0]}")
        return steps

    @contextmanager
    def at_place(self) -> Iterator[None]:
        """The daemon of the tier ends by itself; nothing may wait for it when the mount goes."""
        try:
            yield
        finally:
            self.recover()

    def counted(self, work: Callable[[], float], after: Callable[[], None] | None = None) -> Step:
        self.nodes.reset()
        seconds, begin = work(), time.monotonic()
        if after is not None:
            after()
        later_s = time.monotonic() - begin if self.row.drains and after else 0.0
        counts = self.nodes.counted()
        return Step(counts["metadata_requests"], counts["data_requests"], seconds, later_s)

    def olam(self, *more: object) -> float:
        """Seconds of writing, or of reading back."""
        arguments = ["--input", self.memory, "--output", self.directory, "--frames", FRAMES,
            "--state-mb", 0, "--io-only", *SIZES, *more]
        text = self.run(self.bench.mpi.command(self.ranks, self.bench.program, arguments),
            bool(self.row.stack))
        return numbers(text, "olam")["elapsed_s"]

    def timed(self, *command: object) -> float:
        text = self.run([sys.executable, "-c", _TIMED, *map(str, command)], bool(self.row.stack))
        found = numbers(text, "timed")
        if command[0] == "ls" and found["lines"] != files_of(self.ranks) + 1:  # and the total
            raise RunFailed(f"ls lists {found['lines']:.0f} lines for {files_of(self.ranks)} files")
        return found["seconds"]

    def recover(self) -> None:
        if self.row.drains and self.tier.exists():
            self.run(weir_command("stage", "recover", self.tier), False)

    def run(self, line: list[str], ruled: bool) -> str:
        if ruled:
            line = weir_command("run", "--rules", self.rules, "--", *line)
        environment = {**self.bench.environment, "WEIR_NODE_RANKS": str(self.ranks)}
        return run(line, environment, self.memory, self.bench.options.timeout_s)


def table(found: Sequence[Found]) -> Table:
    """Requests of each step, then seconds."""
    heads = ("<Configuration", "<Techniques", *(f"meta {step}" for step in STEPS), "r/w write",
        "r/w read back", *(f"{step}, s" for step in STEPS))
    rows = tuple((one.row.name, one.row.techniques, *_cells(one)) for one in found)
    files = found[0].files if found else 0
    remarks = [f"{one.row.name}: failed: {one.error}" for one in found if one.error]
    remarks += [f"{one.row.name}: all files were at their place {one.steps['write'].later_s:.2f} s "
        "after the program had ended; their requests are counted" for one in found
        if one.steps and one.row.drains]
    return Table(f"{files} small files: requests at the file system, and seconds", heads, rows,
        remarks=tuple(remarks))


def _cells(one: Found) -> Iterator[str]:
    if not one.steps:
        return iter(("",) * (2 * len(STEPS) + 2))
    steps = [one.steps[name] for name in STEPS]
    return iter([*(f"{step.metadata:,.0f}" for step in steps),
        *(f"{step.data:,.0f}" for step in steps[:2]), *(f"{step.seconds:.2f}" for step in steps)])
