# SPDX-License-Identifier: Apache-2.0
"""Which rule an open gets, as native/layers/machinery/rules/match.cc decides it, and why others do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weir.rules.matching.pattern import fits
from weir.rules.model import Conditions, Hints, Rule
from weir.rules.values import ranges_text, size_text


@dataclass(frozen=True)
class Open:
    """One open. ``path`` is absolute and normalised; ``modes`` are those of the flags; ``fstype`` may be "" (not known)."""

    path: str
    modes: frozenset[str] = frozenset({"read"})
    rank: int | None = None
    fortran: bool = False
    unit: int | None = None
    access: str | None = None
    form: str | None = None
    size: int = 0
    fstype: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def _within(ranges: Sequence[tuple[int, int]], value: int | None) -> bool:
    return value is not None and any(first <= value <= last for first, last in ranges)


def is_file_system(actual: str, wanted: str) -> bool:
    return actual == wanted or (wanted == "fuse" and actual.startswith("fuse."))


def lies_in(path: str, directory: str) -> bool:
    return directory == "/" or path.startswith(f"{directory}/")


def misfits(when: Conditions, what: Open) -> list[str]:
    """Why the conditions do not hold, a phrase for each that does not; empty when the rule matches."""
    why = []
    if when.name is not None and not fits(when.name, what.name):
        why.append(f"its name is not {when.name}")
    if when.path is not None and not fits(when.path, what.path):
        why.append(f"its path is not {when.path}")
    if when.dir is not None and not lies_in(what.path, when.dir):
        why.append(f"it does not lie in {when.dir}")
    if when.mode and not what.modes & set(when.mode):
        why.append(f"it is opened for {', '.join(sorted(what.modes))}, not {' or '.join(when.mode)}")
    if when.ranks and not _within(when.ranks, what.rank):
        rank = "the program has no rank" if what.rank is None else f"the rank is {what.rank}"
        why.append(f"{rank}, not one of {ranges_text(when.ranks)}")
    why += _fortran_misfits(when, what)
    low, high = when.min_size or 0, when.max_size
    if what.size < low or (high is not None and what.size > high):
        bounds = [*([f"at least {size_text(low)}"] if low else []), *([f"at most {size_text(high)}"] if high is not None else [])]
        why.append(f"it has {what.size:,} bytes, not {' and '.join(bounds)}")
    if when.fstype and not any(is_file_system(what.fstype, wanted) for wanted in when.fstype):
        why.append(f"its file system is {what.fstype or 'not known'}, not {' or '.join(when.fstype)}")
    return why


def _fortran_misfits(when: Conditions, what: Open) -> list[str]:
    if not when.fortran_only:
        return []
    if not what.fortran:
        return ["it is not opened by Fortran"]
    why = []
    if when.unit and not _within(when.unit, what.unit):
        why.append(f"the unit is {'not known' if what.unit is None else what.unit}, not {ranges_text(when.unit)}")
    if when.access is not None and when.access != what.access:
        why.append(f"access is {what.access or 'not known'}, not {when.access}")
    if when.form is not None and when.form != what.form:
        why.append(f"form is {what.form or 'not known'}, not {when.form}")
    return why


Given = TypeVar("Given", Rule, Hints)


def first_match(given: Iterable[Given], what: Open) -> Given | None:
    return next((g for g in given if not misfits(g.when, what)), None)
