# SPDX-License-Identifier: Apache-2.0
"""How a finding with a cure is declared: once, in the module that looks for it
(python/weir/advise/findings). docs/extending.md adds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.advise.frame.saving import Saving
from weir.report.frame.amounts import amount, plain, seconds, share
from weir.report.frame.figures import size

if TYPE_CHECKING:
    from weir.advise.frame.facts import Facts

# of the wall time, as the table `wall` calls them
PARTS = ("computing", "I/O", "I/O wait", "imbalance", "communication")
NOT_RUNNING = "not running"  # before processes start and after they end
STARTS = f"{NOT_RUNNING}, communication"  # of programs: launchers, and MPI_Init


@dataclass(frozen=True)
class Limit:
    """A figure that decides whether something is found, and the reason for its value.

    meaning: what is compared; it ends with ", at most", ", more than" or ", less than" where it is
    not ", at least". unit: B, B/s, s, share (of 1), times (a ratio), or what is counted."""

    meaning: str
    value: float
    unit: str
    reason: str

    @property
    def compared(self) -> str:
        """The meaning without its end."""
        return self.meaning.removesuffix(f", {self._how}")

    @property
    def text(self) -> str:
        """`at most 256 KiB`"""
        return f"{self._how} {self._amount}"

    @property
    def _how(self) -> str:
        end = self.meaning.rpartition(", ")[2]
        return end if end in ("at most", "more than", "less than") else "at least"

    @property
    def _amount(self) -> str:
        if self.unit == "B":
            return size(int(self.value))
        if self.unit == "B/s":
            return plain(f"{amount(self.value)}/s")
        if self.unit == "s":
            return plain(seconds(self.value))
        if self.unit == "share":
            return plain(share(self.value, 1))
        count = f"{self.value:g}"
        return f"{count} {self.unit.removesuffix('s') if count == '1' else self.unit}"


@dataclass(frozen=True)
class Rule:
    """A rule for `weir run`. path: its pattern; stack: layers; caution: what changes for others,
    empty where nothing does; unusable: why it stands commented out, empty where it is used."""

    path: str
    stack: str
    caution: str = ""
    unusable: str = ""


@dataclass(frozen=True)
class Advice:
    """Something found. what: files or ranks, as a heading; paths: the files that it is about;
    sentence: what costs; change: what to do in the model; rule: None where no layer cures it; step:
    the one that it is about, where it is about no files."""

    finding: str
    what: str
    paths: tuple[str, ...]
    sentence: str
    saving: Saving
    change: str
    rule: Rule | None = None
    step: str = ""


@dataclass(frozen=True)
class Finding:
    """name: in lists and rules. asks: the question that it answers, one sentence. shrinks: of PARTS
    of the wall time, or STARTS. limits: all that it compares with. page: of the documentation, from
    docs/; table: of `weir report` with the figures.
    cure: the layer, empty where only the model can change. find: a function of the facts alone.
    decides: what it depends on, where its cure may save nothing as well."""

    name: str
    asks: str
    shrinks: str
    limits: tuple[Limit, ...]
    page: str
    table: str
    cure: str
    find: Callable[[Facts], Iterable[Advice]]
    decides: str = "the rates of the file system and of memory (weir probe measures them)"
