# SPDX-License-Identifier: Apache-2.0
"""``weir bench olam``: the workload olam on rising numbers of ranks, on several file systems, plain
and with layers, with all ranks on one node and with one rank on each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from weir._errors import UsageError
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment, weir_command
from weir.bench._scratch import scratch
from weir.bench.olam_places import FileSystem, Place, open_place
from weir.scaling.compute import RunTimes, Scaling, scaling

# Those that the study shows; what the others take is the rest.
PHASES = ("1read", "6plot", "8exec", "9write")
REST = "(rest)"
MOST_NODES = 16  # each is a mount with a process of its own
RANKS = (1, 2, 4, 8, 16)
MOST_RANKS = 128
INPUT = ("*.map", "parameters")
Run = dict[str, float]

DISK = FileSystem("local disk")
LUSTRE = FileSystem("test file system, preset lustre", "lustre")
NFS = FileSystem("test file system, preset nfs: no NFS mount was given (--nfs)", "nfs")
NODE_DISK = FileSystem("test file system: a disk in each node, 100 MB/s, 0.5 ms for a metadata "
    "request", "direct", {"bandwidth_mb": 100, "metadata_us": 500}, is_private=True)


@dataclass(frozen=True)
class Configuration:
    """A curve. rules: pattern of file names and stack; without any the program runs without weir.
    is_apart: a second curve with one rank on each node."""

    name: str
    title: str
    system: FileSystem
    rules: tuple[tuple[str, str], ...] = ()
    is_apart: bool = False


CONFIGURATIONS = (
    Configuration("disk", "Local disk", DISK),
    Configuration("node-disk", "A disk in each node", NODE_DISK, is_apart=True),
    Configuration("nfs", "NFS", NFS),
    Configuration("lustre", "Lustre", LUSTRE, is_apart=True),
    Configuration("global", "Lustre, maps under global", LUSTRE, (("*.map", "global:512:16"),)),
    Configuration("forward", "Lustre, all files under forward", LUSTRE, tuple((name,
        "forward:512:32") for name in ("*.map", "plot.*", "result.*", "history.*"))),
    # Together on one node: locks of the test file system are those of a mount.
    Configuration("pack", "Lustre, plots and results under pack", LUSTRE,
        (("plot.*", "pack:name=plots.zip"), ("result.*", "pack:name=results.zip"))),
)
BY_NAME = {one.name: one for one in CONFIGURATIONS}
# Measured beside the curves (olam_contention, olam_techniques).
BESIDE = ("interleaving", "memory", "techniques")


@dataclass(frozen=True)
class Options:
    """scale: of the input, 1 is the study's 0.5 GB; exec_s: seconds of 8exec on one rank."""

    ranks: tuple[int, ...] = RANKS
    only: tuple[str, ...] = (*BY_NAME, *BESIDE)
    scale: float = 0.1
    exec_s: float = 2.0
    io_only: bool = False
    repeat: int = 3
    mpi: str | None = None
    nfs: str | None = None
    directory: str | None = None
    disk: str | None = None
    timeout_s: float = 600


def check(options: Options) -> Options:
    """Raises UsageError for what cannot be run."""
    there = (*BY_NAME, *BESIDE)
    unknown = [name for name in options.only if name not in there]
    if unknown:
        raise UsageError(f"--only: no configuration {unknown[0]}; there are {', '.join(there)}")
    if len(set(options.ranks)) < 2 or not all(0 < n <= MOST_RANKS for n in options.ranks):
        raise UsageError(f"--ranks: expected at least two different numbers from 1 to {MOST_RANKS}, "
                         f"such as 1,2,4,8")
    if not 0 < options.scale <= 10 or not 0 <= options.exec_s <= 3600:
        raise UsageError("--scale: expected a number above 0, at most 10; --exec: seconds from 0 "
                         "to 3600")
    if options.nfs is not None and not os.access(options.nfs, os.W_OK):
        raise UsageError(f"--nfs {options.nfs}: expected a directory that can be written; give one "
                         f"on an NFS mount")
    return options


@dataclass(frozen=True)
class Measured:
    """A configuration with all its runs. counted: what the file system served, by ranks and nodes;
    empty where nobody counts. error: why there are no figures."""

    configuration: Configuration
    system: FileSystem
    found: Scaling | None = None
    counted: dict[tuple[int, int], Run] = field(default_factory=dict)
    error: str = ""


class Bench:
    """One place in memory, one on a disk; configurations one after the other."""

    def __init__(self, options: Options, build: Path, note: Callable[[str], None]):
        self.options, self.note = options, note
        program = build / "workloads" / "olam" / "{mpi}" / "weir-olam"
        self.mpi: Mpi = choose_mpi(options.mpi, program)
        self.program = Path(str(program).format(mpi=self.mpi.name))
        self.environment = {**clean_environment(), **self.mpi.environment}

    def all(self) -> Iterator[Measured]:
        with scratch(self.options.directory) as place, \
                scratch(self.options.disk, in_memory=False) as disk:
            for name in self.options.only:
                if name in BY_NAME:
                    yield self.measured(BY_NAME[name], place, disk)

    def measured(self, one: Configuration, place: Path, disk: Path) -> Measured:
        """A run that fails is the configuration's error, not the benchmark's."""
        system = one.system
        if one.name == "nfs" and self.options.nfs is not None:
            system = FileSystem(f"NFS mount {self.options.nfs}")
        runs: list[RunTimes] = []
        counted: dict[tuple[int, int], Run] = {}
        try:
            can_be_apart = any(1 < ranks <= MOST_NODES for ranks in self.options.ranks)
            for is_apart in (False, True)[: 1 + (one.is_apart and can_be_apart)]:
                with scratch(self.options.nfs) if system.preset is None and system is not DISK \
                        else scratch(str(disk)) as plain:
                    self._place(one, system, place, plain, is_apart, runs, counted)
        except RunFailed as error:
            return Measured(one, system, error=str(error))
        return Measured(one, system, scaling(runs), counted)

    def _place(self, one: Configuration, system: FileSystem, place: Path, disk: Path,
            is_apart: bool, runs: list[RunTimes], counted: dict[tuple[int, int], Run]) -> None:
        most = self.most_nodes() if is_apart else 1
        with open_place(place, disk, system, most) as nodes:
            self.set_up(nodes)
            for ranks in sorted(set(self.options.ranks)):
                if is_apart and not 1 < ranks <= most:
                    continue
                on = ranks if is_apart else 1
                result = self._point(one, nodes, ranks, ranks // on)
                runs.append(run_times(one.name, ranks, on, result))
                counted[ranks, on] = result

    def most_nodes(self) -> int:
        return min(max(self.options.ranks), MOST_NODES)

    def set_up(self, nodes: Place) -> None:
        """Write the maps, behind the file systems."""
        command = self.mpi.command(1, self.program, ["--setup", *self.sizes()])
        for backing in nodes.backings:
            run(command, self.environment, backing, self.options.timeout_s)

    def _point(self, one: Configuration, nodes: Place, ranks: int, per_node: int) -> Run:
        """Medians of the repetitions; the files of the last one are compared."""
        found: list[Run] = []
        for repetition in range(self.options.repeat):
            self.note(f"{one.title}, {ranks} ranks, {per_node} on a node, {repetition + 1} of "
                      f"{self.options.repeat}")
            nodes.clear(INPUT)
            nodes.forget(INPUT)
            nodes.reset()
            text = self.call(one, nodes, ranks, per_node, [*self.sizes(), *self.work()])
            found.append({**parsed(text), **nodes.counted()})
        self.call(one, nodes, ranks, per_node, ["--verify", *self.sizes()])
        nodes.clear(INPUT)
        return {key: median([each[key] for each in found]) for key in found[0]}

    def call(self, one: Configuration, nodes: Place, ranks: int, per_node: int,
            arguments: Sequence[object], trace: Path | None = None) -> str:
        """The output of one run of the workload, under the rules, or traced without them. Raises
        RunFailed."""
        launcher, *command = nodes.command(self.program, arguments)
        line = self.mpi.command(ranks, Path(launcher), command)
        if trace is not None:
            line = weir_command("trace", "-o", trace, "--", *line)
        elif one.rules:
            rules = nodes.directory.parent / "rules.toml"
            rules.write_text("".join(f'[[rule]]\nname = "{pattern}"\nstack = "{stack}"\n'
                for pattern, stack in one.rules))
            line = weir_command("run", "--rules", rules, "--", *line)
        environment = {**self.environment, "WEIR_NODE_RANKS": str(per_node)}
        return run(line, environment, nodes.directory.parent, self.options.timeout_s)

    def sizes(self) -> list[object]:
        return ["--input-mb", 500 * self.options.scale]

    def work(self) -> list[object]:
        """8exec sleeps, so that it scales on any machine: what stops the curves is I/O."""
        if self.options.io_only or not self.options.exec_s:
            return ["--state-mb", 0, "--io-only"]
        return ["--state-mb", 0, "--sleep", self.options.exec_s]


def parsed(text: str) -> Run:
    """Elapsed seconds, and for each phase the seconds until its first rank was done, and from then
    to the last one (sync)."""
    found = {"elapsed_s": numbers(text, "olam")["elapsed_s"]}
    for phase in PHASES:
        one = numbers(text, f"olam-{phase}")
        found |= {phase: one["first_s"], f"{phase} sync": one["sync_s"]}
    return found


def run_times(name: str, ranks: int, nodes: int, result: Run) -> RunTimes:
    parts = {key: round(1e9 * result[key]) for phase in PHASES for key in (phase, f"{phase} sync")}
    wall = round(1e9 * result["elapsed_s"])
    parts[REST] = max(0, wall - sum(parts.values()))
    return RunTimes(f"{name} {ranks}/{nodes}", ranks, nodes, wall, parts)
