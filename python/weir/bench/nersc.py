# SPDX-License-Identifier: Apache-2.0
"""``weir bench nersc``: runs the four cases plain and with layers, interleaved, and counts what
reaches the file system."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weir._errors import UsageError
from weir.bench import reference
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment, weir_command
from weir.bench._scratch import scratch
from weir.bench._statistics import Spread
from weir.bench.cases import CASES, RANKS, Case, Variant
from weir.testfs import Mount, mounted

MEASURES = ("requests", "bytes", "io_wait_s", "mpp_s", "elapsed_s")


@dataclass(frozen=True)
class Options:
    scale: float = 1.0
    cases: tuple[str, ...] = tuple(CASES)
    ranks: dict[str, tuple[int, ...]] = field(default_factory=lambda: dict(RANKS))
    repeat: int = 5
    mpi: str | None = None
    ompio: bool = False
    preset: str = "lustre"
    directory: str | None = None
    timeout_s: float = 600


@dataclass(frozen=True)
class Row:
    """One line of a table: medians and ranges of what was measured, or why it could not be."""

    spec: str
    ranks: int
    stack: str | None
    measured: dict[str, Spread]
    error: str = ""

    def median(self, what: str) -> float | None:
        return self.measured[what].median if what in self.measured else None


@dataclass(frozen=True)
class Table:
    """The rows of one case with one number of ranks."""

    case: Case
    rows: tuple[Row, ...]

    def row(self, spec: str) -> Row:
        return next(row for row in self.rows if row.spec == spec)


def parse_ranks(words: Sequence[str], cases: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """``4,16`` is for case III; ``IV=8`` for the case it names. Raises UsageError."""
    ranks = dict(RANKS)
    for word in words:
        case, _, numbers_text = word.rpartition("=")
        case = case or ("III" if len(cases) != 1 else cases[0])
        try:
            ranks[case] = tuple(int(n) for n in numbers_text.split(","))
        except ValueError:
            raise UsageError(
                f"--pes {word}: expected numbers of ranks such as 4,16 (for case III) or "
                f"IV=8") from None
        if case not in CASES or not ranks[case] or min(ranks[case]) < 1:
            raise UsageError(
                f"--pes {word}: expected one of {', '.join(CASES)} and positive numbers")
    return ranks


class Bench:
    """One file system for all cases; `note` gets a line for each run, for the impatient."""

    def __init__(self, options: Options, build: Path, note: Callable[[str], None]):
        self.options, self.build, self.note = options, build, note
        self.mpi: Mpi = choose_mpi(options.mpi, build / "workloads" / "overlap" / "{mpi}"
            / "weir-overlap", options.ompio)
        self.environment = {**clean_environment(), **self.mpi.environment}

    def tables(self) -> Iterator[Table]:
        with scratch(self.options.directory) as place, file_system(place,
                self.options.preset) as (mount, backing):
            for number in self.options.cases:
                for ranks in self.options.ranks[number]:
                    yield self.case(CASES[number](ranks, self.options.scale), mount, backing, place)

    def case(self, case: Case, mount: Mount, backing: Path, place: Path) -> Table:
        directory, behind = Path(mount.path) / "case", backing / "case"
        shutil.rmtree(behind, ignore_errors=True)
        behind.mkdir()
        failures = self._setup(case, directory, place)
        runs: dict[str, list[dict[str, float]]] = {variant.name: [] for variant in case.variants}
        for repetition in range(self.options.repeat):
            for variant in case.variants:
                if variant.name in failures or (variant.once and repetition > 0):
                    continue
                self.note(f"case {case.number}, {case.ranks} ranks, {variant.name}, "
                          f"{repetition + 1} of {self.options.repeat}")
                try:
                    runs[variant.name].append(self._measure(case, variant, mount, directory, behind,
                        place))
                except RunFailed as error:
                    failures[variant.name] = str(error)
        shutil.rmtree(behind, ignore_errors=True)
        return Table(case, tuple(self._row(case, v, runs[v.name], failures.get(v.name, ""))
            for v in case.variants))

    def _setup(self, case: Case, directory: Path, place: Path) -> dict[str, str]:
        """Rows that cannot be run, with the reason: what they were to read could not be written."""
        failures: dict[str, str] = {}
        for setup in case.setups:
            target = next(str(a) for a in setup.arguments if isinstance(a, str)
                and not a.startswith("--"))
            if case.number == "I":
                (directory / target).mkdir()
            try:
                run(self._command(case, setup, case.setup_ranks, place), self._with(setup),
                    directory, self.options.timeout_s)
            except RunFailed as error:
                unable = {v.name: f"no data: {error}" for v in case.variants
                    if target in v.arguments}
                failures.update(unable)
        return failures

    def _measure(self, case: Case, variant: Variant, mount: Mount, directory: Path, behind: Path,
            place: Path) -> dict[str, float]:
        for name in case.fresh:
            (behind / name).unlink(missing_ok=True)
        mount.reset()
        command = self._command(case, variant, case.ranks, place)
        result = numbers(run(command, self._with(variant), directory, self.options.timeout_s),
            case.program)
        counted = mount.stats()
        if case.check is not None:
            check = self.mpi.command(2, self._program(case), case.check(str(behind)))
            run(check, self.environment, behind, self.options.timeout_s)
        return {
            **result,
            "requests": counted.data_requests,
            "bytes": counted.bytes_read + counted.bytes_written,
            "program_requests": result["requests"],
            "all_requests": counted.total,
        }

    def _row(self, case: Case, variant: Variant, runs: list[dict[str, float]], error: str) -> Row:
        keys = (*MEASURES, "program_requests", "all_requests")
        measured = {key: Spread.of([one[key] for one in runs])
            for key in keys} if runs and not error else {}
        return Row(variant.name, case.ranks, variant.stack, measured, error)

    def _program(self, case: Case) -> Path:
        return self.build / "workloads" / case.program / self.mpi.name / f"weir-{case.program}"

    def _with(self, variant: Variant) -> dict[str, str]:
        return {**self.environment, **variant.environment}

    def _command(self, case: Case, variant: Variant, ranks: int, place: Path) -> list[str]:
        command = self.mpi.command(ranks, self._program(case), variant.arguments)
        if variant.stack is None:
            return command
        rules = place / "rules.toml"
        rules.write_text(
            f'[[rule]]\nname = "{variant.files}"\ndir = "{place / "mount"}"\nstack = '
            f'"{variant.stack}"\n')
        return weir_command("run", "--rules", rules, "--", *command)


@contextmanager
def file_system(place: Path, preset: str) -> Iterator[tuple[Mount, Path]]:
    """The test file system mounted on place/mount, over place/data."""
    directory, backing = place / "mount", place / "data"
    directory.mkdir()
    backing.mkdir()
    with mounted(directory, backing=backing, preset=preset, owner=os.getpid()) as mount:
        yield mount, backing


@dataclass(frozen=True)
class Verdict:
    """What came of a goal. ``factor``: how many times fewer requests; None when a row is missing.
    """

    goal: reference.Goal
    factor: float | None
    bytes_ratio: float | None
    met: bool


def verdict(table: Table) -> Verdict | None:
    """Of the case's goal; None when it is one for another number of ranks."""
    goal = reference.GOALS[table.case.number]
    if goal.ranks not in (None, table.case.ranks):
        return None
    above, below = table.row(goal.base).median("requests"), table.row(goal.row).median("requests")
    if above is None or not below:
        return Verdict(goal, None, None, False)
    moved = table.row(goal.row).median("bytes")
    bytes_ratio = (
        moved / table.case.file_bytes if goal.bytes_of_file and moved is not None else None
    )
    met = above / below >= goal.factor and (bytes_ratio is None or round(bytes_ratio, 2) == 1.00)
    return Verdict(goal, above / below, bytes_ratio, met)
