# SPDX-License-Identifier: Apache-2.0
"""Two runs beside each other: figures of their steps, files matched by name or by pattern, and
thresholds for what may grow.

Runs of different numbers of ranks are the normal case: beside the totals there is the mean over the
ranks. What a run is read from, and which of its steps are compared, is left to the caller.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weir._errors import InputError, UsageError
from weir.analysis.patterns import find_patterns, joined, lettered, skeleton
from weir.analysis.ranks import RankName
from weir.analysis.totals import Totals
from weir.report.files.compute import FileTotals
from weir.report.routines.compute import Routine

MOST_ALIKE = 8  # a base name that so many files have says nothing of where a run's files lie


@dataclass(frozen=True)
class Side:
    """One step of a run, or several added up. ranks: totals of each rank, in each step; all: of all
    processes.

    active_ns, all.files: None where the level of the trace does not tell; path_ns: None where MPI
    was not recorded; critical_ns: None where no step of the run recorded it."""

    wall_ns: int
    active_ns: int | None
    all: Totals
    ranks: tuple[Mapping[RankName, Totals], ...]
    path_ns: int | None = None
    critical_ns: int | None = None

    @staticmethod
    def added(sides: Sequence[Side], files: int | None) -> Side:
        """Several steps of one run; files: how many names they touched together."""
        def known(figure: str) -> int | None:
            parts = [getattr(one, figure) for one in sides]
            return None if None in parts else sum(parts)

        calls, count, ns = (sum(getattr(one.all, key) for one in sides)
            for key in ("calls", "bytes", "ns"))
        return Side(
            sum(one.wall_ns for one in sides),
            known("active_ns"),
            Totals(calls, count, ns, files),
            tuple(ranks for one in sides for ranks in one.ranks),
            known("path_ns"),
            known("critical_ns"),
        )

    @property
    def most_ranks(self) -> int:
        return max((len(ranks) for ranks in self.ranks), default=0)

    def mean(self, figure: str) -> float:
        """Mean over the ranks of calls, bytes or ns, of each step and then added up."""
        return sum(sum(getattr(one, figure) for one in ranks.values()) / len(ranks)
            for ranks in self.ranks if ranks)

    @property
    def busiest(self) -> tuple[RankName, int] | None:
        """The rank with most I/O time over all steps, and its ns; None without ranks."""
        sums: dict[RankName, int] = defaultdict(int)
        for ranks in self.ranks:
            for rank, one in ranks.items():
                sums[rank] += one.ns
        rank = max(sorted(sums), key=lambda one: sums[one], default=None)
        return None if rank is None else (rank, sums[rank])

    @property
    def imbalance(self) -> float | None:
        """I/O seconds of the busiest rank divided by the mean; None where no rank did I/O."""
        busiest, mean = self.busiest, self.mean("ns")
        return busiest[1] / mean if busiest is not None and mean else None


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


# Figures that thresholds and tables speak of, in the units that they are printed in.
FIGURES: dict[str, Callable[[Side], float | None]] = {
    "wall": lambda side: side.wall_ns / 1e9,
    "active": lambda side: _seconds(side.active_ns),
    "path": lambda side: _seconds(side.path_ns),
    "critical": lambda side: _seconds(side.critical_ns),
    "seconds": lambda side: side.all.ns / 1e9,
    "calls": lambda side: side.all.calls,
    "bytes": lambda side: side.all.bytes,
    "files": lambda side: side.all.files,
    "seconds/rank": lambda side: side.mean("ns") / 1e9,
    "calls/rank": lambda side: side.mean("calls"),
    "bytes/rank": lambda side: side.mean("bytes"),
    "imbalance": lambda side: side.imbalance,
}


@dataclass(frozen=True)
class StepPair:
    """One step of both runs; a side is None where the run does not have it."""

    name: str
    a: Side | None
    b: Side | None

    def values(self, figure: str) -> tuple[float | None, float | None]:
        value = FIGURES[figure]
        return None if self.a is None else value(self.a), None if self.b is None else value(self.b)


def ratio(a: float | None, b: float | None) -> float | None:
    """b / a; infinite where only a is 0; None where both are 0, or one is not known."""
    if a is None or b is None or a == b == 0:
        return None
    return b / a if a else math.inf


class FileSide(NamedTuple):
    """Files of one run that are compared as one."""

    files: int = 0
    calls: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    ns: int = 0

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class FilePair:
    """Files of both runs; a side without files: only the other run has them. text: the name, or the
    pattern."""

    text: str
    a: FileSide
    b: FileSide

    @property
    def grown_ns(self) -> int:
        return self.b.ns - self.a.ns

    @property
    def is_changed(self) -> bool:
        """Whether requests or bytes differ."""
        return self.a[1:4] != self.b[1:4]


def home_directories(a: Mapping[str, int], b: Mapping[str, int]) -> tuple[str, str] | None:
    """The directories of two runs below which most bytes, and of these most names, are the same;
    None when no file of one has a counterpart elsewhere in the other.

    Bytes by absolute name. Each pair of files that end alike, and that are not in both runs, speaks
    for the two directories above what is alike. Bytes come first because MPI has directories of its
    own for each run, with many names and nothing in them."""
    of_a, of_b = a.keys(), b.keys()
    by_base: dict[str, list[list[str]]] = defaultdict(list)
    for name in of_b - of_a:
        parts = name.split("/")
        by_base[plain_name(parts[-1])].append(parts)
    votes: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name in of_a - of_b:
        parts = name.split("/")
        others = by_base.get(plain_name(parts[-1]), ())
        for other in others if len(others) <= MOST_ALIKE else ():
            same = next((i for i, (x, y) in enumerate(zip(reversed(parts), reversed(other)))
                if plain_name(x) != plain_name(y)), min(len(parts), len(other)))
            directories = "/".join(parts[:-same]), "/".join(other[:-same])
            moved, count = votes[directories]
            votes[directories] = moved + a[name] + b["/".join(other)], count + 1
    return min(votes, key=lambda pair: (-votes[pair][0], -votes[pair][1], pair), default=None)


def match_files(a: Mapping[str, FileTotals], b: Mapping[str, FileTotals]) -> list[FilePair]:
    """Each file of both runs (by the name it is matched by) in one pair.

    Names that both runs have are matched by name. Where names of one skeleton are not the same in
    both, the runs of digits that are not the same in both become letters: TRAJHR00/trajspecL<N> for
    L001-L004 of 4 ranks and L001-L008 of 8. What then only one of them has is matched without
    regard to the separators of time stamps, and then by patterns (weir.analysis.patterns):
    temporary files have other names in each run.
    """
    groups: dict[tuple[str, ...], tuple[dict, dict]] = defaultdict(lambda: ({}, {}))
    for side, names in enumerate((a, b)):
        for name, totals in names.items():
            literals, runs = skeleton(name)
            groups[literals][side][runs] = totals
    pairs: list[FilePair] = []
    alone: tuple[list[str], list[str]] = ([], [])
    for literals, (of_a, of_b) in groups.items():
        for pair, runs_of_both in _pairs(literals, of_a, of_b):
            if pair.a.files and pair.b.files:
                pairs.append(pair)
            else:
                for names, found in zip(alone, runs_of_both):
                    names += [joined(literals, runs) for runs in found]
    pairs += _pairs_by_separators(a, b, alone)
    names = [*alone[0], *alone[1]]
    for pattern in find_patterns(names, [0] * len(names)):
        of_a = [a[names[i]] for i in pattern.members if i < len(alone[0])]
        of_b = [b[names[i]] for i in pattern.members if i >= len(alone[0])]
        pairs.append(FilePair(pattern.text, _side(of_a), _side(of_b)))
    return sorted(pairs, key=lambda one: one.text)


_Runs = tuple[str, ...]
_SEPARATOR = re.compile(r"(?<=[0-9])[-_:.T](?=[0-9])")  # between the numbers of a time stamp
# A time stamp without separators but for one behind the day: 20200101, 2020010106, 20200101T060000.
_COMPACT = re.compile(
    r"(?<![0-9])((?:19|20)[0-9]{2})(0[1-9]|1[0-2])([0-3][0-9])"
    r"(?:[-_.T]?([0-2][0-9])(?:([0-5][0-9])([0-5][0-9])?)?)?(?![0-9])")


def plain_name(name: str) -> str:
    """The name with one separator between the numbers of time stamps: out_06:00:00 as out_06_00_00,
    20200101T0600 as 2020_01_01_06_00."""
    spread = _COMPACT.sub(lambda stamp: "_".join(filter(None, stamp.groups())), name)
    return _SEPARATOR.sub("_", spread)


def _pairs_by_separators(
    a: Mapping[str, FileTotals], b: Mapping[str, FileTotals], alone: tuple[list[str], list[str]]
) -> list[FilePair]:
    """Pairs of names that only one run has, and that differ in the separators of numbers, and in
    the numbers as match_files() says. What is in a pair goes out of `alone`. Names of one run that
    differ in separators alone are not changed."""
    groups: dict[tuple[str, ...], tuple[dict, dict]] = defaultdict(lambda: ({}, {}))
    for side, names in enumerate(alone):
        counts = Counter(map(plain_name, names))
        for name in names:
            if counts[plain_name(name)] == 1:
                literals, runs = skeleton(plain_name(name))
                groups[literals][side][runs] = name
    made = []
    for literals, named in groups.items():
        totals = [
            {runs: files[name] for runs, name in of_run.items()}
            for files, of_run in zip((a, b), named)
        ]
        for pair, runs_of_both in _pairs(literals, *totals):
            if pair.a.files and pair.b.files:
                made.append(pair)
                for names, of_run, found in zip(alone, named, runs_of_both):
                    taken = {of_run[runs] for runs in found}
                    names[:] = [name for name in names if name not in taken]
    return made


def _pairs(
    literals: tuple[str, ...], a: dict[_Runs, FileTotals], b: dict[_Runs, FileTotals]
) -> Iterator[tuple[FilePair, tuple[list[_Runs], list[_Runs]]]]:
    """The pairs of one skeleton, each with the runs of its names in both runs."""
    sets = [[set(column) for column in zip(*side)] or [set()] * (len(literals) - 1)
        for side in (a, b)]
    is_same = [of_a == of_b for of_a, of_b in zip(*sets)]
    if a.keys() == b.keys():
        is_same = [True] * len(is_same)
    alike: dict[tuple[str, ...], tuple[list, list]] = defaultdict(lambda: ([], []))
    for side, files in enumerate((a, b)):
        for runs in files:
            alike[tuple(run for run, same in zip(runs, is_same) if same)][side].append(runs)
    for of_a, of_b in alike.values():
        text = joined(literals, lettered(of_a + of_b)[0])
        yield FilePair(text, _side(a[runs] for runs in of_a),
            _side(b[runs] for runs in of_b)), (of_a, of_b)


def _side(files: Iterable[FileTotals]) -> FileSide:
    rows = [(1, one.calls, one.bytes_read, one.bytes_written, one.ns) for one in files]
    return FileSide(*map(sum, zip(*rows))) if rows else FileSide()


@dataclass(frozen=True)
class RoutinePair:
    """One routine of both runs; a run that did not call it has zeros."""

    routine: str
    a: Routine
    b: Routine


def match_routines(a: Sequence[Routine], b: Sequence[Routine]) -> list[RoutinePair]:
    """In the order of the first run, then those that only the second called."""
    of_a, of_b = ({one.routine: one for one in side} for side in (a, b))
    none = {name: Routine(name, 0, 0, 0) for name in (*of_a, *of_b)}
    return [RoutinePair(name, of_a.get(name, none[name]), of_b.get(name, none[name]))
        for name in none]


_THRESHOLD = re.compile(
    r"\s*(?:(?P<step>.+):)?\s*(?P<figure>[a-z][a-z/ "
    r"]*?)\s*(?P<sign>[<>]=?)\s*(?P<limit>[+-]?\s*[0-9.eE]+)\s*(?P<percent>%)?\s*")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
}


@dataclass(frozen=True)
class Threshold:
    """What fails a comparison: a figure whose ratio B / A, or difference B - A, is beyond a limit.
    step: None: the total, `*`: any step."""

    text: str
    step: str | None
    figure: str
    sign: str
    limit: float
    is_difference: bool


class Finding(NamedTuple):
    """A threshold and what was measured for it in one step (or TOTAL); value: the ratio (1 where
    both runs have 0: nothing changed) or the difference."""

    threshold: Threshold
    step: str
    a: float
    b: float
    value: float

    @property
    def is_passed(self) -> bool:
        return _HOLDS[self.threshold.sign](self.value, self.threshold.limit)


def parse_threshold(text: str) -> Threshold:
    """seconds>1.1 (ratio B / A), seconds>+10% and seconds>110% (the same), wall>+5 (difference),
    traj2:calls<0.9, *:active>1.2. Raises UsageError."""
    found = _THRESHOLD.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--fail-if {text!r}: expected [STEP:]FIGURE>LIMIT, for example seconds>1.1, wall>+5 "
            f"or traj2:bytes<90%")
    figure, limit = found["figure"], found["limit"].replace(" ", "")
    if figure not in FIGURES:
        raise UsageError(
            f"--fail-if {text!r}: no figure {figure!r}; choose one of {', '.join(FIGURES)}")
    try:
        number = float(limit)
    except ValueError:
        raise UsageError(f"--fail-if {text!r}: {limit!r} is not a number") from None
    is_signed = limit[0] in "+-"
    if found["percent"] and is_signed:
        number, is_signed = 100 + number, False
    number = number / 100 if found["percent"] else number
    return Threshold(text, found["step"], figure, found["sign"], number, is_signed)


def check(threshold: Threshold, steps: Sequence[StepPair], total: StepPair) -> list[Finding]:
    """What a threshold says of the steps that it speaks of. Raises InputError where a figure is not
    known, UsageError for a step that is not there."""
    if threshold.step is None:
        chosen = [total]
    else:
        chosen = [one for one in steps if threshold.step in ("*", one.name) and one.a is not None
            and one.b is not None]
    if not chosen:
        known = ", ".join(one.name for one in steps if one.a is not None and one.b is not None)
        raise UsageError(
            f"--fail-if {threshold.text!r}: no step {threshold.step!r} is compared; these are: "
            f"{known}")
    made = []
    for pair in chosen:
        a, b = pair.values(threshold.figure)
        if a is None or b is None:
            raise InputError(
                f"--fail-if {threshold.text!r}: {threshold.figure} of {pair.name} is not known in "
                f"{'the first' if a is None else 'the second'} run; "
                "active wants traces of level trace, path those of MPI programs, critical those of "
                "runs with MPI in a step at least (without it, I/O delays a program by its "
                "seconds), files those of detail or trace"
            )
        value = b - a if threshold.is_difference else 1.0 if a == b else b / a if a else math.inf
        made.append(Finding(threshold, pair.name, a, b, value))
    return made
