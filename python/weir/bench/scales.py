# SPDX-License-Identifier: Apache-2.0
"""``weir bench scales``: the reference's comparison of writers (CDI-PIO, ECHAM) through the
workload echam, beside ecCodes alone, cdo, and plain pwrite of the same bytes.

Each repetition runs every writer twice on each number of PEs: encoding its records, as the
reference did, and writing records that were encoded before the clock started. Plain pwrite by as
many PEs takes its turn with them.
"""

from __future__ import annotations

import hashlib
import math
import os
import resource
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from weir._errors import UsageError
from weir.bench._journal import Journal
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment, weir_command
from weir.bench._scratch import remove, scratch
from weir.bench._statistics import Spread

Run = dict[str, float]
REFERENCE_BYTES = 47e9  # of a run; the paper's 5.9 GB do not fit its own times and rates
MOST_PES = 64
DEFAULT = "direct"  # the writer that weir would choose


@dataclass(frozen=True)
class Method:
    """One way of writing: a writer of native/output/writer, the calls that it makes, and how many
    PEs of a number stand beside the collectors."""

    name: str
    title: str
    writer: str
    io: str = "pwrite"
    is_single: bool = False  # one PE
    writers: Callable[[int], int] = lambda pes: pes
    collectors: Callable[[int], int] = lambda pes: pes
    least: int = 1  # PEs
    needs_locks: bool = False  # of files, that all nodes see

    def pes(self, asked: Sequence[int]) -> list[int]:
        return [1] if self.is_single else [n for n in asked if n >= self.least]


def _beside(name: str, title: str, io: str, writers: Callable[[int], int]) -> Method:
    return Method(name, title, "posix", io, writers=writers,
        collectors=lambda pes: pes - writers(pes), least=2)


METHODS = (
    Method("serial", "Classic serial, fwrite", "serial", "fwrite", is_single=True),
    Method("mpi-collective", "MPI writer, MPI_File_write_all", "mpi-collective"),
    Method("mpi-shared", "MPI writer, MPI_File_iwrite_shared", "mpi-shared",
        needs_locks=True),
    Method("offset-sharing", "Offset sharing, pwrite", "offset-sharing"),
    Method("offset-guard", "Offset guard, fwrite", "offset-guard", "fwrite",
        writers=lambda pes: pes - 1, collectors=lambda pes: pes - 1, least=2),
    _beside("posix", "POSIX writer, fwrite", "fwrite", lambda pes: 1),
    _beside("posix-aio", "POSIX writer, aio_write", "aio", lambda pes: 1),
    _beside("posix-uring", "POSIX writer, io_uring", "uring", lambda pes: 1),
    _beside("posix-files", "POSIX writers for different files", "fwrite",
        lambda pes: max(1, min(10, pes // 2))),
    Method("direct", "Direct offsets, io_uring if allowed", "direct", "auto"),
    Method("direct-pwrite", "Direct offsets, pwrite", "direct"),
)
BY_NAME = {one.name: one for one in METHODS}
# MB/s that the reference published, by method and PEs, on one IBM node and GPFS.
PUBLISHED = {
    ("serial", 1): 148,
    ("mpi-shared", 4): 234, ("mpi-shared", 8): 281, ("mpi-shared", 16): 338,
    ("mpi-shared", 32): 322,
    ("offset-guard", 4): 240, ("offset-guard", 8): 498, ("offset-guard", 16): 829,
    ("offset-guard", 32): 946,
    ("posix", 4): 257, ("posix", 8): 450, ("posix", 16): 411, ("posix", 32): 482,
    ("posix-aio", 4): 122, ("posix-aio", 8): 120,
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """scale: of the reference's volume, 47 GB; writing: the same, of runs that do not encode."""

    pes: tuple[int, ...] = (2, 4, 8, 16)
    only: tuple[str, ...] = tuple(BY_NAME)
    scale: float = 0.005
    writing: float = 0.01
    variables: int = 40
    nlat: int = 96
    encoder: str = "weir"
    files: int = 10
    repeat: int = 3
    mpi: str | None = None
    directory: str | None = None
    disk: str | None = None
    places: tuple[str, ...] = ("memory", "disk")
    timeout_s: float = 300
    minutes: float | None = None
    resume: str | None = None

    def common(self) -> dict[str, object]:
        """What runs that stand in one table have in common."""
        left_out = ("only", "repeat", "places", "timeout_s", "minutes", "resume")
        return {key: value for key, value in asdict(self).items() if key not in left_out}


def check(options: Options) -> Options:
    """Raises UsageError for what cannot be run."""
    for what, given, there in (("--only", options.only, tuple(BY_NAME)),
            ("--places", options.places, ("memory", "disk"))):
        unknown = [name for name in given if name not in there]
        if unknown:
            raise UsageError(f"{what}: expected some of {', '.join(there)}, not {unknown[0]}")
    if options.encoder not in ("weir", "eccodes"):
        raise UsageError(f"--encoder: expected weir or eccodes, not {options.encoder}")
    if not options.pes or not all(0 < n <= MOST_PES for n in options.pes):
        raise UsageError(f"--pes: expected numbers from 1 to {MOST_PES}, such as 2,4,8,16")
    for what, scale in (("--scale", options.scale), ("--writing", options.writing)):
        if not 0 < scale <= 10:
            raise UsageError(f"{what}: expected a number above 0, at most 10")
    if options.minutes is not None and not 0 < options.minutes <= 10_000:
        raise UsageError("--minutes: expected a number above 0, at most 10000")
    if not 0 < options.variables <= 40_000 or not 2 <= options.nlat <= 10_000:
        raise UsageError("--variables: expected 1 to 40000; --nlat: 2 to 10000")
    return options


@dataclass(frozen=True)
class Row:
    """Runs of a method on a number of PEs in a place. encoding: with the encoding of records;
    writing: of records that are encoded already, `of_pwrite` the ratio of its rate to that of
    plain pwrite in the same repetition. error: why there are no runs, or no more."""

    method: Method
    pes: int
    place: str
    encoding: dict[str, Spread] = field(default_factory=dict)
    writing: dict[str, Spread] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Peer:
    """Another program that writes the same volume, or the plain floor of `pes` PEs."""

    name: str
    title: str
    pes: int
    place: str
    figures: dict[str, Spread] = field(default_factory=dict)
    error: str = ""


class Others:
    """Processors that were used, while a program of this process ran, by all but that program."""

    used = 0.0

    def __enter__(self) -> Others:
        self._begun = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        elapsed, busy, own = (a - b for a, b in zip(self._now(), self._begun))
        self.used = max(0.0, busy - own) / max(elapsed, 1e-9)

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Elapsed seconds; processor seconds of the machine; those of children that have ended."""
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = sum(ticks) - ticks[3] - ticks[4]  # idle, iowait
        return (time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), used.ru_utime + used.ru_stime)


class Bench:
    """Directories for the time of a benchmark, in memory and on a disk."""

    def __init__(self, options: Options, build: Path, note: Callable[[str], None]):
        self.options, self.note = options, note
        program = build / "workloads" / "echam" / "{mpi}" / "weir-echam"
        self.mpi: Mpi = choose_mpi(options.mpi, program)
        self.program = Path(str(program).format(mpi=self.mpi.name))
        self.environment = {**clean_environment(), **self.mpi.environment}
        self.steps = self.writing_steps = 2
        self.journal = Journal({**options.common(), "mpi": self.mpi.name},
            Path(options.resume) if options.resume else None, options.minutes)
        self.floors: dict[tuple[str, int], list[Run]] = defaultdict(list)
        self._expected: dict[str, Counter[bytes]] | None = None

    def places(self) -> Iterator[tuple[str, Path]]:
        """Each place in turn; its directory is gone when the next one comes."""
        if "memory" in self.options.places:
            with scratch(self.options.directory) as directory:
                yield "memory", directory
        if "disk" in self.options.places:
            with scratch(self.options.disk, in_memory=False) as directory:
                yield "disk", directory

    def sizes(self, steps: int | None = None) -> list[object]:
        return ["--files", self.options.files, "--variables", self.options.variables, "--nlat",
            self.options.nlat, "--encoder", self.options.encoder, "--steps", steps or self.steps]

    def choose_steps(self, directory: Path) -> None:
        """As many as make the volumes that were asked for; two at least."""
        one = self.call("eccodes", "pwrite", 1, directory, steps=1)["bytes"]
        self.steps, self.writing_steps = (max(2, math.ceil(scale * REFERENCE_BYTES / one))
            for scale in (self.options.scale, self.options.writing))

    def command(self, writer: str, io: str, ranks: int, directory: Path, *more: object,
            steps: int | None = None) -> list[str]:
        arguments = ["--writer", writer, "--io", io, "--dir", directory, *self.sizes(steps), *more]
        return self.mpi.command(ranks, self.program, arguments)

    def call(self, writer: str, io: str, ranks: int, directory: Path, *more: object,
            trace: Path | None = None, steps: int | None = None) -> Run:
        """One run of the workload, with files of its own, which stay until the next one. Raises
        RunFailed."""
        files = directory / "files"
        remove(files)
        files.mkdir()
        line = self.command(writer, io, ranks, files, *more, steps=steps)
        if trace is not None:
            line = weir_command("trace", "-o", trace, "--", *line)
        with Others() as others:
            text = run(line, self.environment, directory, self.options.timeout_s)
        found = {**numbers(text, "echam-parts"), **numbers(text, "echam"), "others": others.used}
        written = sum(path.stat().st_size for path in files.iterdir() if path.suffix == ".grb")
        if written != found["bytes"]:
            raise RunFailed(f"{writer}: {written:,} bytes in the files, {found['bytes']:,.0f} were "
                            f"appended")
        return rated(found)

    def method(self, method: Method, pes: int, directory: Path, *more: object,
            trace: Path | None = None, steps: int | None = None) -> Run:
        writers = method.writers(pes) if method.writer == "posix" else 1
        return self.call(method.writer, method.io, pes, directory, "--writers", writers, *more,
            trace=trace, steps=steps)

    def chosen(self) -> list[tuple[Method, int]]:
        return [(method, pes) for method in METHODS if method.name in self.options.only
            for pes in method.pes(sorted(set(self.options.pes)))]

    def rows(self, place: str, directory: Path) -> list[Row]:
        """All methods, interleaved; the messages of the first repetition are compared with those of
        ecCodes alone."""
        encoding: dict[tuple[str, int], list[Run]] = defaultdict(list)
        writing: dict[tuple[str, int], list[Run]] = defaultdict(list)
        failures: dict[tuple[str, int], str] = {}
        for repetition in range(self.options.repeat):
            floors: dict[int, Run] = {}
            # By PEs: what is compared with each other runs shortly after each other, and the method
            # of most goals first, should the time end.
            for method, pes in sorted(self.chosen(), key=lambda one: (one[1],
                    one[0].name != DEFAULT)):
                key = (method.name, pes)
                if key in failures:
                    continue
                try:
                    if pes not in floors:
                        floors[pes] = self._floor(place, pes, directory, repetition)
                    one = partial(self._once, place, directory, method, pes, repetition)
                    encoding[key].append(one("encoding"))
                    alone = one("writing")
                    writing[key].append({**alone, "of_pwrite": alone["mb_s"] / floors[pes]["mb_s"]})
                except RunFailed as error:
                    failures[key] = str(error)
        return [
            Row(method, pes, place, spreads(encoding[key]), spreads(writing[key]),
                failures.get(key, ""))
            for method, pes in self.chosen() for key in [(method.name, pes)]
        ]

    def _floor(self, place: str, pes: int, directory: Path, repetition: int) -> Run:
        """Plain pwrite, which writes as many bytes as the runs that do not encode."""
        self.note(f"{place}: plain pwrite, {pes} PEs, {repetition + 1} of {self.options.repeat}")
        floor = self.journal.once(f"{place}, pwrite, {pes} PEs, {repetition}", partial(self.call,
            "pwrite", "pwrite", pes, directory, steps=self.writing_steps))
        self.floors[place, pes].append(floor)
        return floor

    def _once(self, place: str, directory: Path, method: Method, pes: int, repetition: int,
            kind: str) -> Run:
        self.note(f"{place}: {method.title}, {pes} PEs, {kind}, {repetition + 1} of "
                  f"{self.options.repeat}")
        run = self._compared if kind == "encoding" and repetition == 0 else self.method
        more = ("--encoded",) if kind == "writing" else ()
        steps = self.writing_steps if kind == "writing" else self.steps
        return self.journal.once(f"{place}, {method.name}, {pes} PEs, {kind}, {repetition}",
            partial(run, method, pes, directory, *more, steps=steps))

    def _compared(self, method: Method, pes: int, directory: Path, steps: int) -> Run:
        expected = self.expected(directory)
        done = self.method(method, pes, directory, steps=steps)
        if digests(directory / "files") != expected:
            raise RunFailed(f"{method.title}: other messages than ecCodes alone")
        return done

    def expected(self, directory: Path) -> dict[str, Counter[bytes]]:
        """The messages of ecCodes alone."""
        if self._expected is None:
            self.call("eccodes", "pwrite", 1, directory)
            self._expected = digests(directory / "files")
        return self._expected

    def peers(self, place: str, directory: Path) -> Iterator[Peer]:
        """ecCodes alone, cdo, and plain pwrite on each number of PEs, which `rows` has measured."""
        yield self._peer("eccodes", "ecCodes alone, one process", place,
            lambda: self.call("eccodes", "pwrite", 1, directory))
        yield self._peer("cdo", "cdo, decoding and encoding the files", place,
            lambda: self._cdo(directory))
        for (where, pes), runs in sorted(self.floors.items()):
            if where == place:
                yield Peer("pwrite", "plain pwrite of encoded bytes", pes, place, spreads(runs))

    def _peer(self, name: str, title: str, place: str, once: Callable[[], Run]) -> Peer:
        runs: list[Run] = []
        error = ""
        for repetition in range(self.options.repeat):
            self.note(f"{place}: {title}, {repetition + 1} of {self.options.repeat}")
            try:
                runs.append(self.journal.once(f"{place}, {name}, {repetition}", once))
            except RunFailed as failure:
                error = str(failure)
                break
        return Peer(name, title, 1, place, spreads(runs), error)

    def _cdo(self, directory: Path) -> Run:
        """All files of a run read and written again by one process after the other."""
        cdo = shutil.which("cdo")
        if cdo is None:
            raise RunFailed("left out: cdo is not installed")
        given = self.call("eccodes", "pwrite", 1, directory)
        elapsed = cpu = 0.0
        for path in sorted((directory / "files").glob("*.grb")):
            script = f'TIMEFORMAT="time: %R %U %S"; time "{cdo}" -s -O -f grb2 copy "$0" "$0.copy"'
            text = run(["bash", "-c", f"{{ {script}; }} 2>&1", str(path)], self.environment,
                directory, self.options.timeout_s)
            words = text.strip().splitlines()[-1].split()
            elapsed += float(words[1])
            cpu += float(words[2]) + float(words[3])
        return rated({"bytes": given["bytes"], "elapsed_s": elapsed, "cpu_s": cpu})


def rated(found: Run) -> Run:
    """With MB/s of encoded bytes, and processor seconds of all ranks a GB."""
    return {**found, "mb_s": found["bytes"] / max(found["elapsed_s"], 1e-9) / 1e6,
        "cpu_s_per_gb": found["cpu_s"] / (found["bytes"] / 1e9)}


def spreads(runs: Sequence[Run]) -> dict[str, Spread]:
    """Of what all runs have: those of an older --resume file lack figures."""
    return {key: Spread.of([one[key] for one in runs])
        for key in (runs[0] if runs else ()) if all(key in one for one in runs)}


def digests(directory: Path) -> dict[str, Counter[bytes]]:
    """How often each GRIB message is in each file. Raises RunFailed where something else is."""
    found = {}
    for path in sorted(directory.glob("*.grb")):
        data = memoryview(path.read_bytes())
        found[path.name] = counts = Counter()
        at = 0
        while at < len(data):
            length = int.from_bytes(data[at + 8 : at + 16], "big")
            if data[at : at + 4] != b"GRIB" or data[at + length - 4 : at + length] != b"7777":
                raise RunFailed(f"{path.name}: no GRIB message at byte {at:,}")
            counts[hashlib.blake2b(data[at : at + length], digest_size=16).digest()] += 1
            at += length
    return found
