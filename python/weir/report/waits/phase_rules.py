# SPDX-License-Identifier: Apache-2.0
"""Phases by rule: marks that are set in a trace afterwards, so that nothing in the program runs
slower.

    [[phase]]
    phase = "1read"
    start = true            # begins with the rank

    [[phase]]
    phase = "9write"
    name = "hist*"          # begins where a rank opens a file of that name
                            # path = "*/out/*": of that path

    [[phase]]
    phase = "8exec"
    barrier = 3             # begins where the rank leaves its 3rd barrier of MPI_COMM_WORLD
                            # a list: at each of these
    every = 2               # and at every 2nd one from there on

A phase ends where the rank's next one begins, with `until = "close"` already where it closes the
file, with `until = "barrier"` at its next barrier.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from weir._errors import InputError, NotThere, UsageError
from weir.analysis.columns import class_codes
from weir.analysis.names import NO_NAME, NameTable
from weir.analysis.step import StepData
from weir.report.waits.locations import Locations
from weir.report.waits.records import Records, calls_of, rows_of, silent_ops

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS = {"phase": str, "start": bool, "name": str, "path": str, "barrier": (int, list),
    "every": int, "until": str}
_BEGINS = ("start", "name", "path", "barrier")
_ENDS = ("close", "barrier")
_MPI_OPEN, _MPI_CLOSE = "MPI_File_open", "MPI_File_close"


@dataclass(frozen=True)
class PhaseRule:
    """One mark: exactly one of start, name, path and barriers says where the phase begins."""

    phase: str
    start: bool = False
    name: str | None = None
    path: str | None = None
    barriers: tuple[int, ...] = ()
    every: int = 0
    until: str | None = None

    @property
    def beginning(self) -> str:
        """Where it begins, as the file says it."""
        if self.start:
            return "start = true"
        if self.barriers:
            return (
                f"barrier = {self.barriers[0] if len(self.barriers) == 1 else list(self.barriers)}"
            )
        return f'name = "{self.name}"' if self.name is not None else f'path = "{self.path}"'

    def fits(self, path: str) -> bool:
        if self.name is not None:
            return fnmatchcase(os.path.basename(path), self.name)
        return self.path is not None and fnmatchcase(path, self.path)

    def is_at(self, nth: np.ndarray) -> np.ndarray:
        """Whether the phase begins at the n-th barrier, from 1."""
        found = np.isin(nth, self.barriers)
        return found | ((nth >= self.barriers[0]) & ((nth - self.barriers[0]) % self.every
            == 0)) if self.every else found


def read_phase_rules(path: str | os.PathLike[str]) -> tuple[PhaseRule, ...]:
    """The rules of a file. Raises NotThere, InputError when it cannot be read, UsageError for what
    is wrong in it."""
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except FileNotFoundError as error:
        raise NotThere(f"{path}: there is no such file of phases") from error
    except OSError as error:
        raise InputError(f"{path}: the phases cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: this is not TOML: {error}") from error
    for key in document:
        if key != "phase":
            raise UsageError(f"{path}: there is no table {key!r}: each phase is a table [[phase]]")
    tables = document.get("phase")
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise UsageError(f"{path}: no phases in it: write [[phase]], with two brackets, for each")
    return tuple(_rule(one, f"{path}: phase {number}") for number, one in enumerate(tables, 1))


def _rule(table: dict[str, Any], where: str) -> PhaseRule:
    for key, value in table.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            raise UsageError(f"{where}: there is no key {key!r}" + (f"; did you mean {near[0]}?"
                if near else f": the keys are {', '.join(_KEYS)}"))
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool) and key != "start":
            raise UsageError(f"{where}: {key} = {value!r} is of the wrong type")
    if not table.get("phase"):
        raise UsageError(f'{where}: it has no name: add phase = "9write" or the like')
    where = f"{where} ({table['phase']})"
    begins = [key for key in _BEGINS if key in table and table[key] is not False]
    if len(begins) != 1:
        raise UsageError(
            f"{where}: give one key that says where it begins: one of {', '.join(_BEGINS)}; it has "
            f"{', '.join(begins) or 'none of them'}")
    barriers = table.get("barrier", [])
    barriers = barriers if isinstance(barriers, list) else [barriers]
    if any(not isinstance(n, int) or isinstance(n, bool) or n < 1
            for n in barriers) or ("barrier" in table and not barriers):
        raise UsageError(
            f"{where}: barrier = {table['barrier']!r}: barriers are counted from 1, as in barrier "
            f"= 3 or barrier = [3, 8]")
    if "every" in table and (not barriers or table["every"] < 1):
        raise UsageError(
            f"{where}: every = {table['every']} goes with barrier = N and is at least 1")
    until = table.get("until")
    if until is not None and (until not in _ENDS or until == "close"
            and begins[0] not in ("name", "path")):
        raise UsageError(
            f'{where}: until = "{until}": a phase that begins at a file ends at "close" or '
            f'"barrier", another one at "barrier"')
    return PhaseRule(
        table["phase"], bool(table.get("start")), table.get("name"), table.get("path"),
        tuple(sorted(barriers)), table.get("every", 0), until
    )


def ruled(data: StepData, names: NameTable, rules: tuple[PhaseRule, ...], locations: Locations,
        lives: np.ndarray, barriers: Records, records: Records):  # type: ignore[no-untyped-def]
    """Names of phases; phase, rank, begin, end and file (its number, -1: none) of each stretch.
    barriers: of all ranks, by rank and time; records: with those of MPI-IO's opens and closes."""
    texts = tuple(dict.fromkeys(rule.phase for rule in rules))
    owner = locations.of_member[barriers.member]
    through_mpi = records.of(_MPI_OPEN, _MPI_CLOSE)
    found: list[tuple[int, int, int, int, int]] = []
    for location in range(len(locations)):
        at = slice(*np.searchsorted(owner, [location, location + 1]).tolist())
        mine = barriers.start[at], barriers.end[at]
        marks = sorted(_marks(data, names, rules, locations, location, lives, mine, through_mpi),
            key=lambda mark: mark[0])
        found += _stretches(marks, rules, texts, location, int(lives[location, 1]), mine[0])
    columns = np.array(found, np.int64).reshape(-1, 5).T
    return texts, *columns


def _marks(
    data: StepData, names: NameTable, rules: tuple[PhaseRule, ...], locations: Locations,
    location: int, lives: np.ndarray, barriers: tuple[np.ndarray, np.ndarray], through_mpi: Records
) -> Iterator[tuple[int, int, int, int]]:
    """Where phases begin in a rank: timestamp, rule, and for a file that is closed the timestamp of
    that, else 0; the number of the file, else -1."""
    nth = np.arange(1, len(barriers[1]) + 1)
    of_files = [number for number, rule in enumerate(rules) if rule.name is not None
        or rule.path is not None]
    if of_files:
        yield from _opened(data, names, rules, of_files, locations.members[location], through_mpi)
    for number, rule in enumerate(rules):
        if rule.start:
            yield int(lives[location, 0]), number, 0, -1
        elif rule.barriers:
            for timestamp in barriers[1][rule.is_at(nth)].tolist():
                yield timestamp, number, 0, -1


def _opened(
    data: StepData, names: NameTable, rules: tuple[PhaseRule, ...], of_files: list[int],
    members: tuple[int, ...], through_mpi: Records
) -> Iterator[tuple[int, int, int, int]]:
    """The first rule that fits a file counts. A file that the rank opens by MPI-IO is open from
    MPI_File_open to MPI_File_close, whatever requests to the system lie between them."""
    mpi = through_mpi.where(np.isin(through_mpi.member, members))
    used = data.of_members(members, "O")
    rule_of = {name: next((n for n in of_files if rules[n].fits(names[name])), None)
        for name in np.unique(np.r_[used.name, mpi.name]).tolist() if name != NO_NAME}
    wanted = [name for name, rule in rule_of.items() if rule is not None]
    mpi = mpi.where(np.isin(mpi.name, wanted))
    parts = [(mpi.name, mpi.start, mpi.end, mpi.op == silent_ops().get(_MPI_OPEN, -1))]
    wanted = np.setdiff1d(wanted, mpi.name)
    for calls in calls_of(data, members, names) if len(wanted) else ():
        codes = class_codes()[calls.op]
        chosen = np.isin(calls.name, wanted) & calls.is_own & np.isin(codes, (ord("O"), ord("C")))
        one = rows_of(calls, chosen)
        parts.append((one.name, one.start, one.end, codes[chosen] == ord("O")))
    name, start, end, opens = (np.concatenate(column) for column in zip(*parts))
    order = np.argsort(start, kind="stable")
    closed: dict[int, list[int]] = {}
    for at in order[~opens[order]].tolist():
        closed.setdefault(int(name[at]), []).append(int(end[at]))
    for at in order[opens[order]].tolist():
        ends = closed.get(int(name[at]), [])
        place = int(np.searchsorted(ends, start[at]))
        yield (int(start[at]), rule_of[int(name[at])], ends[place] if place < len(ends) else 0,
            int(name[at]))


def _stretches(
    marks: list[tuple[int, int, int, int]], rules: tuple[PhaseRule, ...], texts: tuple[str, ...],
    location: int, last: int, barriers: np.ndarray
) -> Iterator[tuple[int, int, int, int, int]]:
    """One phase after the other; a mark of the phase that the rank is in already begins nothing
    anew, unless that has ended."""
    # Begin, rule, where it ends at the latest, file.
    current: tuple[int, int, int, int] | None = None
    for timestamp, number, closed, file in [*marks, (last, -1, 0, -1)]:
        if current is not None:
            begin, rule, limit, first = current
            is_same = number >= 0 and rules[number].phase == rules[rule].phase and rules[
                number].barriers == () and timestamp < limit
            if is_same:
                if rules[rule].until == "close" and closed:
                    current = begin, rule, max(limit, closed), first
                continue
            yield texts.index(rules[rule].phase), location, begin, min(timestamp, limit), first
        if number >= 0:
            limit = _limit(rules[number], timestamp, closed, last, barriers)
            current = timestamp, number, limit, file


def _limit(rule: PhaseRule, timestamp: int, closed: int, last: int, barriers: np.ndarray) -> int:
    if rule.until == "close" and closed:
        return closed
    if rule.until == "barrier":
        place = int(np.searchsorted(barriers, timestamp))
        return int(barriers[place]) if place < len(barriers) else last
    return last
