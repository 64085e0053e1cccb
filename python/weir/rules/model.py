# SPDX-License-Identifier: Apache-2.0
"""What rules are, whatever they were written in."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.rules.mistakes import Mistake, Place

ACCESSES = ("sequential", "direct", "stream")
FORMS = ("formatted", "unformatted")
MODES = ("read", "write", "readwrite", "append", "create", "truncate")


@dataclass(frozen=True)
class Layer:
    """One layer of a stack. Sizes are bytes; ``args`` are the positional ones, all of them; options
    are in the table's order."""

    name: str
    args: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


SYSTEM = Layer("system")
EVENT = Layer("event")


@dataclass(frozen=True)
class Conditions:
    """What an open must be for a rule to match it; None or empty: anything.

    Ranges are (first, last), both included. Sizes are bytes of the file when it is opened.
    """

    name: str | None = None
    path: str | None = None
    dir: str | None = None
    fstype: tuple[str, ...] = ()
    unit: tuple[tuple[int, int], ...] = ()
    access: str | None = None
    form: str | None = None
    mode: tuple[str, ...] = ()
    min_size: int | None = None
    max_size: int | None = None
    ranks: tuple[tuple[int, int], ...] = ()

    def given(self) -> dict[str, object]:
        """Those that say something, in the order of the fields."""
        return {name: value for name, value in vars(self).items() if value not in (None, ())}


@dataclass(frozen=True)
class Rule:
    """``stack`` is from the application down and ends in system."""

    source: Place
    when: Conditions
    stack: tuple[Layer, ...]

    @property
    def exempts(self) -> bool:
        """The file is left alone."""
        return self.stack == (SYSTEM,)


@dataclass(frozen=True)
class Hints:
    """Keys and values for MPI_File_open."""

    source: Place
    when: Conditions
    info: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RuleSet:
    """Rules and hints in the order they are asked, what was understood but cannot be done, and
    where all came from."""

    rules: tuple[Rule, ...] = ()
    hints: tuple[Hints, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    origins: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(
            self.rules + other.rules,
            self.hints + other.hints,
            self.warnings + other.warnings,
            self.origins + other.origins,
        )

    def __bool__(self) -> bool:
        return bool(self.rules or self.hints)
