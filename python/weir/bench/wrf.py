# SPDX-License-Identifier: Apache-2.0
"""``weir bench wrf``: the reference's experiment through libweir in its four modes and through its
peers, interleaved.

Each repetition runs every writer twice: in a model that computes between frames, which says what
the model sees of its output, and with frames back to back, which says how fast the writer is.
Contents are compared by value in the first repetition.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from weir._errors import InputError, UsageError
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment
from weir.bench._scratch import remove, scratch
from weir.bench._statistics import Spread

Run = dict[str, float]


@dataclass(frozen=True)
class Way:
    """One row: a writer's program, and for libweir its mode."""

    name: str
    title: str
    program: str
    mode: str | None = None
    package: str = ""  # that the program needs


WAYS: tuple[Way, ...] = (
    Way("serial", "weir serial", "weir", "serial"),
    Way("collective", "weir collective", "weir", "collective"),
    Way("servers", "weir servers", "weir", "servers"),
    Way("servers+parallel", "weir servers+parallel", "weir", "servers+parallel"),
    Way("gather", "netCDF, gathered to rank 0", "gather", package="libnetcdf-dev"),
    Way("pnetcdf", "PnetCDF collective", "pnetcdf",
        package="libpnetcdf-dev, which Debian has for Open MPI"),
    Way("netcdf4", "netCDF-4 parallel", "netcdf4",
        package="libnetcdf-mpi-dev, which Debian has for Open MPI"),
    Way("adios2", "ADIOS2 BP4, a file a rank", "adios2", package="the Python package adios2"),
    Way("plain", "plain pwrite, one buffer", "plain"),
)
BY_NAME = {way.name: way for way in WAYS}


@dataclass(frozen=True)
class Options:
    scale: float = 0.02
    ranks: int = 4  # that compute
    servers: int = 1
    steps: int = 16
    every: int = 5
    interval_s: float = 1.0  # of computing between two frames
    compute: str = "sleep"  # or "cpu"
    repeat: int = 5
    directory: str | None = None
    disk: str | None = None
    mpi: str | None = None
    only: tuple[str, ...] = tuple(BY_NAME)
    timeout_s: float = 600

    @property
    def frames(self) -> int:
        return (self.steps - 1) // self.every + 1


def check(options: Options) -> Options:
    """Raises UsageError for what cannot be run."""
    unknown = [name for name in options.only if name not in BY_NAME]
    if unknown:
        raise UsageError(f"--only: no writer {unknown[0]}; there are {', '.join(BY_NAME)}")
    limits = [
        ("--scale", options.scale, 0, 10),
        ("--ranks", options.ranks, 0, 100_000),
        ("--servers", options.servers, 0, 10_000),
        ("--every", options.every, 0, 10_000),
        ("--steps", options.frames, 0, 256),
        ("--repeat", options.repeat, 0, 1000),
    ]
    for name, value, above, most in limits:
        if not above < value <= most:
            raise UsageError(
                f"{name}: expected a number above {above}, at most "
                f"{most}{' frames' if name == '--steps' else ''}")
    if options.compute not in ("sleep", "cpu") or not 0 <= options.interval_s <= 3600:
        raise UsageError("--compute: expected sleep or cpu; --interval: seconds from 0 to 3600")
    return options


@dataclass(frozen=True)
class Row:
    """Medians and ranges of a writer's runs: in a model that computes, and back to back; or why
    there are none."""

    way: Way
    ranks: int = 0
    servers: int = 0
    model: dict[str, Spread] = field(default_factory=dict)
    burst: dict[str, Spread] = field(default_factory=dict)
    compared: int = 0  # values, equal to the reference's
    error: str = ""

    def rate(self) -> float | None:
        """MB/s of data, back to back."""
        return self.burst["mb_s"].median if "mb_s" in self.burst else None


class Laboratory:
    """Programs and places; every method that runs something raises RunFailed when it does not
    succeed."""

    def __init__(self, options: Options, build: Path, place: Path, disk: Path,
            note: Callable[[str], None]):
        self.options, self.build, self.place, self.disk, self.note = (
            options,
            build,
            place,
            disk,
            note,
        )
        self.mpi: Mpi = choose_mpi(options.mpi, build / "bench" / "wrf" / "{mpi}" / "wrf-weir")
        self.environment = {**clean_environment(), **self.mpi.environment}
        self.adios2 = find_adios2()

    def program(self, name: str) -> Path:
        return self.build / "bench" / "wrf" / self.mpi.name / f"wrf-{name}"

    def absent(self, way: Way) -> str:
        """Why a writer cannot be run here; empty when it can."""
        if not self.program(way.program).exists():
            return (
                f"left out: {self.program(way.program).name} is not built for {self.mpi.name}; it "
                f"needs {way.package or 'make build'}"
            )
        if way.program == "adios2" and not self.adios2:
            return f"left out: {way.package} is not installed"
        return ""

    def call(self, way: Way, ranks: int, servers: int = 0, directory: Path | None = None,
            sync: bool = False, **more: object) -> Run:
        """One run of the experiment; servers are ranks beside `ranks`. Its files stay in
        `directory`."""
        directory = directory or self.place
        arguments: dict[str, object] = {"scale": self.options.scale, "directory": directory,
            "sync": int(sync), **more}
        if way.program == "weir":
            arguments["config"] = self._configuration(way, servers, sync)
        if way.program == "adios2":
            arguments["adios2"] = self.adios2
        words = [f"{key}={value}" for key, value in arguments.items()]
        total = ranks + (servers if way.mode in ("servers", "servers+parallel") else 0)
        command = self.mpi.command(total, self.program(way.program), words)
        return numbers(run(command, self.environment, directory, self.options.timeout_s), "wrf")

    def _configuration(self, way: Way, servers: int, sync: bool) -> Path:
        groups, ranks = (1, servers) if way.mode == "servers+parallel" else (servers, 1)
        lines = [f'mode = "{way.mode}"', f"sync = {str(sync).lower()}"]
        if way.mode in ("servers", "servers+parallel"):
            lines += [f"groups = {groups}", f"servers_per_group = {ranks}"]
        path = self.place / "output.toml"
        path.write_text("\n".join(["[output]", *lines]) + "\n")
        return path

    @contextmanager
    def fresh(self, name: str = "files", where: Path | None = None) -> Iterator[Path]:
        """An empty directory, gone afterwards: on tmpfs its memory is."""
        directory = (where or self.place) / name
        remove(directory)
        directory.mkdir()
        try:
            yield directory
        finally:
            remove(directory)


@contextmanager
def laboratory(options: Options, build: Path, note: Callable[[str], None]) -> Iterator[Laboratory]:
    """Places for the time of a bench: in memory, and on a disk."""
    with (
        scratch(options.directory) as place,
        scratch(options.disk, in_memory=False) as disk,
    ):
        yield Laboratory(options, build, place, disk, note)


def find_adios2() -> str | None:
    """The C library of the installed Python package."""
    found = importlib.util.find_spec("adios2")
    directories = [Path(place) for place in (found.submodule_search_locations
        or [])] if found else []
    libraries = [str(path) for directory in directories
        for path in sorted(directory.glob("libadios2_c.so*"))]
    return libraries[0] if libraries else None


class Bench:
    """The first table: all writers, interleaved."""

    def __init__(self, lab: Laboratory):
        self.lab, self.options = lab, lab.options
        self._spin: int | None = None

    def servers_of(self, way: Way) -> int:
        return servers_of(way, self.options.servers)

    def ranks_of(self, way: Way) -> int:
        """The floor is what as many ranks as there are servers can write."""
        return self.options.servers if way.program == "plain" else self.options.ranks

    def computing(self, ranks: int) -> dict[str, int]:
        """What a step computes, for the program."""
        per_step = self.options.interval_s / self.options.every
        if self.options.compute == "sleep":
            return {"sleep_us": round(1e6 * per_step)}
        return {"spin": max(1, round(per_step * self.passes_per_s() / max(1, ranks / cores())))}

    def passes_per_s(self) -> float:
        """Of the array that a computing step smooths, by one core."""
        if self._spin is None:
            passes = 20_000
            done = self.lab.call(Way("none", "", "none"), 1, spin=passes, steps=3, every=3,
                scale=1e-5)
            self._spin = max(1, round(3 * passes / done["compute_cpu_s"]))
        return self._spin

    def rows(self) -> list[Row]:
        chosen = [way for way in WAYS if way.name in self.options.only]
        failures = {way.name: why for way in chosen if (why := self.lab.absent(way))}
        if all(way.name in failures for way in chosen):
            raise InputError("no writer is installed: " + "; ".join(failures.values()))
        model: dict[str, list[Run]] = {way.name: [] for way in chosen}
        burst: dict[str, list[Run]] = {way.name: [] for way in chosen}
        compared: dict[str, int] = {}
        with self.lab.fresh("reference") as reference:
            self._reference(reference)
            for repetition in range(self.options.repeat):
                for way in chosen:
                    if way.name in failures:
                        continue
                    self.lab.note(f"{way.title}, {repetition + 1} of {self.options.repeat}")
                    try:
                        model[way.name].append(self._model(way, reference if repetition == 0
                            else None, compared))
                        burst[way.name].append(self._burst(way))
                    except RunFailed as error:
                        failures[way.name] = str(error)
        return [self._row(way, model[way.name], burst[way.name], compared.get(way.name, 0),
            failures.get(way.name, "")) for way in chosen]

    def _reference(self, directory: Path) -> None:
        """Files that the others' are compared with, by the plainest way."""
        if self.comparable():
            steps = {"steps": self.options.steps, "every": self.options.every}
            self.lab.call(BY_NAME["gather"], self.options.ranks, directory=directory, **steps)

    def comparable(self) -> bool:
        return self.lab.program("compare").exists() and self.lab.program("gather").exists()

    def _model(self, way: Way, reference: Path | None, compared: dict[str, int]) -> Run:
        ranks, servers = self.ranks_of(way), self.servers_of(way)
        steps = {"steps": self.options.steps, "every": self.options.every}
        with self.lab.fresh() as directory:
            result = self.lab.call(way, ranks, servers, directory, **steps, **self.computing(ranks))
            if reference is not None and way.program != "plain":
                compared[way.name] = self._compare(way, directory, reference, steps)
        result["output_s"] = result["effective_s"] + result["final_s"]
        result["percent"] = 100 * min(1.0, result["output_s"] / result["total_s"])
        return result

    def _compare(self, way: Way, directory: Path, reference: Path, steps: dict[str, int]) -> int:
        """Values that are equal; RunFailed names the first that is not."""
        if way.program == "adios2":
            result = self.lab.call(way, self.options.ranks, directory=directory, check=1, **steps)
            return round(result["bytes"] / 4)
        if not self.comparable():
            return 0
        words = [f"scale={self.options.scale}", f"directory={directory}",
            *(f"{key}={value}" for key, value in steps.items())]
        if way.program != "gather":
            for file in reference.iterdir():
                (directory / file.name).symlink_to(file)
        command = self.lab.mpi.command(1, self.lab.program("compare"),
            ["gather", way.program, *words])
        return round(numbers(run(command, self.lab.environment, directory, self.options.timeout_s),
            "wrf")["compared"])

    def _burst(self, way: Way) -> Run:
        with self.lab.fresh() as directory:
            return rated(self.lab.call(way, self.ranks_of(way), self.servers_of(way), directory,
                steps=self.options.frames, bare=1))

    def _row(self, way: Way, model: Sequence[Run], burst: Sequence[Run], compared: int,
            error: str) -> Row:
        if error or not model or not burst:
            return Row(way, self.ranks_of(way), self.servers_of(way), error=error)
        return Row(way, self.ranks_of(way), self.servers_of(way), spreads(model), spreads(burst),
            compared)


def on_ranks(lab: Laboratory, counts: Sequence[int]) -> tuple[Bench, list[Row]]:
    """The rows of all numbers of ranks, and the bench of the last one."""
    options, rows = lab.options, []
    for count in counts:
        lab.options = replace(options, ranks=count)
        bench = Bench(lab)
        rows += bench.rows()
    return bench, rows


def servers_of(way: Way, servers: int) -> int:
    """Ranks beside those that compute; the parallel servers are several."""
    if way.mode == "servers":
        return servers
    return max(2, servers) if way.mode == "servers+parallel" else 0


def rated(result: Run) -> Run:
    """With MB/s of data, and processor seconds of all ranks a GB."""
    result["mb_s"] = result["bytes"] / result["total_s"] / 1e6
    result["cpu_s_per_gb"] = (result["server_cpu_s"] + result["rank_cpu_s"]) / (result["bytes"]
        / 1e9)
    return result


def spreads(runs: Sequence[Run]) -> dict[str, Spread]:
    return {key: Spread.of([one[key] for one in runs]) for key in runs[0]}


def cores() -> int:
    return len(os.sched_getaffinity(0))


def sizes(scale: float) -> str:
    """The domains at a scale, as the program rounds them."""
    side = math.sqrt(scale)
    of = [[max(4, math.floor(side * n + 0.5)) for n in domain]
        for domain in ((1770, 1986), (2974, 3118))]
    return " and ".join(f"{nx} x {ny}" for nx, ny in of)
