# SPDX-License-Identifier: Apache-2.0
"""The bench of layers: a mounted test file system, programs run plain or under a stack, interleaved
repetitions.

What is measured, and against which goals, is layer_lines.py's.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weir._errors import Error
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment, weir_command
from weir.bench._scratch import scratch
from weir.bench._statistics import Spread
from weir.bench.nersc import file_system
from weir.report.frame.build import Report, build
from weir.report.layers.compute import layers_of
from weir.report.notes import notes
from weir.report.processes.compute import is_complete
from weir.testfs import Mount

Run = dict[str, float]

# Statistics of layers: for other ranks, their locks and blocks; and (bufa) for own read-ahead.
WAITS = ("waits", "write_waits", "stalls", "revoked")
# Requests that a layer makes of files of its own, one for each part of a call.
MEMBER_REQUESTS = ("piece_reads", "piece_writes")
MOST_NOTES = 5  # on a trace that is incomplete


@dataclass(frozen=True)
class Figure:
    """Something measured: what, in which unit, over the repetitions."""

    name: str
    unit: str
    spread: Spread


@dataclass(frozen=True)
class Check:
    """A goal and what came of it; `least`: the value must not be below, otherwise not above."""

    what: str
    value: float
    goal: float
    least: bool = True

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.least else self.value <= self.goal


@dataclass(frozen=True)
class Outcome:
    """What a line of the bench found; `error` says why it found nothing."""

    figures: tuple[Figure, ...] = ()
    checks: tuple[Check, ...] = ()
    error: str = ""


@dataclass
class Lab:
    """Programs and places. Every method that runs something raises RunFailed when it does not
    succeed."""

    build: Path
    mount: Mount
    backing: Path
    place: Path  # in memory
    disk: Path  # on a disk, cached by the kernel
    repeat: int
    mpi_name: str | None
    scale: float
    timeout_s: float = 300
    pattern: str = "*.dat"  # the files that the rule is for
    stacks: Mapping[str, str] = field(default_factory=dict)
    note: Callable[[str], None] = lambda text: None

    @property
    def directory(self) -> Path:
        """The mounted one."""
        return Path(self.mount.path)

    def count(self, number: int, least: int = 16) -> int:
        """A number of calls at this scale."""
        return max(least, round(number * self.scale))

    def alone(self, *arguments: object, stack: str | None = None) -> Run:
        """One rank; `stack` None is plain, without the library."""
        return self._run([str(self._program("alone")), *(str(a) for a in arguments)], "alone",
            stack, {})

    def sweep(self, *arguments: object, stack: str | None = None) -> Run:
        """Several ranks without MPI. Under a stack also `waits` and `members` (requests of a
        layer's own files), as layers count."""
        command, trace = [str(self._program("sweep")),
            *(str(a) for a in arguments)], self.place / "trace"
        if stack is None:
            return self._run(command, "sweep", None, {})
        try:
            found = self._run(command, "sweep", stack, {}, trace)
            counted = _counted(build(trace))
            waits, members = (sum(counted.get(name, 0) for name in names)
                for names in (WAITS, MEMBER_REQUESTS))
            return {**found, "waits": float(waits), "members": float(members)}
        finally:
            shutil.rmtree(trace, ignore_errors=True)

    def extend(self, name: str, size: int, stack: str | None = None) -> None:
        """A file of that many bytes, without writing them where the stack allows it."""
        (self.backing / name).touch()
        command = ["truncate", "-s", str(size), str(self.directory / name)]
        if stack is None:
            with open(self.backing / name, "r+b") as file:
                file.truncate(size)
        else:
            (self.backing / name).unlink()
            run(self._under(stack, command, None), clean_environment(), self.place, self.timeout_s)

    def together(self, ranks: int, *arguments: object, stack: str | None = None,
            environment: Mapping[str, str] | None = None) -> Run:
        """Several ranks of an MPI program."""
        mpi = self.mpi()
        command = mpi.command(ranks, self._program(f"{mpi.name}/together"), arguments)
        return self._run(command, "together", stack, {**mpi.environment, **(environment or {})})

    @contextmanager
    def bandwidth_mb(self, most: float) -> Iterator[None]:
        """A server no quicker than this, in 10^6 bytes per second, for a while."""
        before = self.mount.stats().options["bandwidth_mb"]
        self.mount.control(bandwidth_mb=min(most, before) if before else most)
        try:
            yield
        finally:
            self.mount.control(bandwidth_mb=before)

    def mpi(self) -> Mpi:
        return choose_mpi(self.mpi_name, self.build / "bench" / "layers" / "{mpi}" / "together")

    def _program(self, name: str) -> Path:
        return self.build / "bench" / "layers" / name

    def _under(self, stack: str, command: list[str], trace: Path | None) -> list[str]:
        rules = self.place / "rules.toml"
        rules.write_text(f'[[rule]]\nname = "{self.pattern}"\nstack = "{stack}"\n')
        return weir_command("run", "--rules", rules, *(("--trace", trace) if trace else ()), "--",
            *command)

    def _run(self, command: list[str], name: str, stack: str | None, environment: Mapping[str, str],
            trace: Path | None = None) -> Run:
        """With what the file system counted meanwhile: `requests` (reads and writes),
        `all_requests`, `moved` bytes."""
        if stack is not None:
            command = self._under(stack, command, trace)
        self.mount.reset()
        result = numbers(run(command, {**clean_environment(), **environment}, self.place,
            self.timeout_s), name)
        counted = self.mount.stats()
        moved = counted.bytes_read + counted.bytes_written
        return {**result, "requests": counted.data_requests, "all_requests": counted.total,
            "moved": moved}

    def worthwhile(self, few: int, many: int, plain: Callable[[int], Run],
            layered: Callable[[int], Run]) -> int:
        """`many` calls for the layered run where a trial of `few` shows that it is the quicker one
        by far, else `few`: a layer that bypasses a file would need hours for what it should do in a
        second."""
        slow, quick = plain(few), layered(few)
        return many if quick["seconds"] * 5 < slow["seconds"] else min(few, many)

    def interleaved(self, **ways: Callable[[], Run]) -> dict[str, list[Run]]:
        """Each way once in every repetition, one after the other."""
        runs: dict[str, list[Run]] = {name: [] for name in ways}
        for repetition in range(self.repeat):
            for name, way in ways.items():
                self.note(f"{name}, {repetition + 1} of {self.repeat}")
                runs[name].append(way())
        return runs


def _counted(report: Report) -> dict[str, int]:
    """Statistics of all layers. Raises RunFailed when the trace does not have all of the run."""
    if not is_complete(report):
        raise RunFailed("; ".join(notes(report)[:MOST_NOTES]))
    found: Counter[str] = Counter()
    for file in layers_of(report):
        for one in file.figures:
            found[one.name] += one.value
    return found


@dataclass(frozen=True)
class Line:
    """One line of the bench, which can be run alone."""

    name: str
    title: str
    measure: Callable[[Lab], Outcome]


def spread(runs: Sequence[Run], value: Callable[[Run], float]) -> Spread:
    return Spread.of([value(one) for one in runs])


def measure(lab: Lab, line: Line) -> Outcome:
    """The line's outcome; an error of weir or of the program is the line's error, not the bench's.
    """
    try:
        return line.measure(lab)
    except (Error, OSError) as error:
        return Outcome(error=str(error))


@contextmanager
def open_lab(
    build: Path,
    repeat: int,
    mpi: str | None,
    scale: float,
    preset: str,
    directory: str | None,
    note: Callable[[str], None],
) -> Iterator[Lab]:
    """A file system mounted for the time of the bench."""
    with (
        scratch(directory) as place,
        file_system(place, preset) as (mount, backing),
        scratch(in_memory=False) as disk,
    ):
        yield Lab(build, mount, backing, place, disk, repeat, mpi, scale, note=note)
