# SPDX-License-Identifier: Apache-2.0
"""Which rule an open gets, and why others do not, in words. The matcher of the preload library
decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from weir.rules.matching.native import misfits_of
from weir.rules.model import Conditions, Hints, Rule
from weir.rules.values import ranges_text, size_text

FLAGS = {
    "read": os.O_RDONLY, "write": os.O_WRONLY, "readwrite": os.O_RDWR,
    "append": os.O_APPEND, "create": os.O_CREAT, "truncate": os.O_TRUNC,
}  # fmt: skip


@dataclass(frozen=True)
class Open:
    """One open. ``path`` is absolute and normalised; ``modes`` are those of the flags; ``fstype``
    may be "" (not known)."""

    path: str
    modes: frozenset[str] = frozenset({"read"})
    rank: int | None = None
    fortran: bool = False
    unit: int | None = None
    access: str | None = None
    form: str | None = None
    size: int = 0
    fstype: str = ""


def misfits(when: Conditions, what: Open) -> list[str]:
    """Why the conditions do not hold, a phrase for each that does not; empty when the rule matches.
    """
    flags = sum(FLAGS[mode] for mode in what.modes)
    known = {"rank": what.rank, "fortran": what.fortran, "unit": what.unit, "access": what.access,
        "form": what.form}
    found = misfits_of(when, what.path, flags, what.size, what.fstype, **known)
    return [_PHRASES[word](when, what) for word in found]


def _sizes_text(when: Conditions) -> str:
    low, high = when.min_size or 0, when.max_size
    return " and ".join([*([f"at least {size_text(low)}"] if low else []),
        *([f"at most {size_text(high)}"] if high is not None else [])])


_PHRASES: dict[str, Callable[[Conditions, Open], str]] = {
    "name": lambda when, what: f"its name is not {when.name}",
    "path": lambda when, what: f"its path is not {when.path}",
    "dir": lambda when, what: f"it does not lie in {when.dir}",
    "mode": lambda when, what: f"it is opened for {', '.join(sorted(what.modes))}, not "
                               f"{' or '.join(when.mode)}",
    "ranks": lambda when, what: (
        f"{'the program has no rank' if what.rank is None else f'the rank is {what.rank}'}, not "
        f"one of {ranges_text(when.ranks)}"
    ),
    "fortran": lambda when, what: "it is not opened by Fortran",
    "unit": lambda when, what: f"the unit is {'not known' if what.unit is None else what.unit}, "
                               f"not {ranges_text(when.unit)}",
    "access": lambda when, what: f"access is {what.access or 'not known'}, not {when.access}",
    "form": lambda when, what: f"form is {what.form or 'not known'}, not {when.form}",
    "size": lambda when, what: f"it has {what.size:,} bytes, not {_sizes_text(when)}",
    "fstype": lambda when, what: f"its file system is {what.fstype or 'not known'}, not "
                                 f"{' or '.join(when.fstype)}",
}


Given = TypeVar("Given", Rule, Hints)


def first_match(given: Iterable[Given], what: Open) -> Given | None:
    return next((g for g in given if not misfits(g.when, what)), None)
