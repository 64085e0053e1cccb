# SPDX-License-Identifier: Apache-2.0
"""What identifies a rank of a report, over all steps of a run: one rank, one number.

| in a step with | a process of | number | label |
|---|---|---|---|
| one parallel program | rank 3 | 3 | 3 |
| several parallel programs | rank 3 of `model` | from FIRST_NAMED on | model:3 |
| several parallel programs | a program with one rank | from FIRST_NAMED on | post |
| a parallel program | no rank, of `post` | below -1 | post |
| no parallel program | the only process | 0 | 0 |
| no parallel program | one of several, of `cp` | below -1 | cp |
| any | a launcher (`mpirun`), with --everything | -1 | launcher |

Numbers decide what is added up, and their order is that of tables; a label is what tables print. In
JSON and SQL `rank` is the rank in its own program, and `rank_label` the label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

NO_RANK = -1
FIRST_NAMED = 1 << 30


@dataclass(frozen=True, order=True)
class RankName:
    """program: empty for the only parallel one. rank: in its own program, -1 for a process without
    one (0 where nothing is parallel)."""

    program: str
    rank: int
    label: str
    is_rank: bool

    @property
    def title(self) -> str:
        """In a sentence: rank 3, rank model:3, post."""
        is_numbered = self.label == str(self.rank) or self.label.endswith(f":{self.rank}")
        return f"rank {self.label}" if self.is_rank and is_numbered else self.label

    @property
    def for_page(self) -> int | str:
        """What scripts of the page make a title of: a number of a rank, or the title."""
        is_plain = self.is_rank and not self.program
        return self.rank if is_plain else self.title


ONLY_RANK = RankName("", 0, "0", True)
_LAUNCHER = RankName("", NO_RANK, "launcher", False)


class RankNames:
    """Numbers in the order in which their ranks were first met."""

    def __init__(self) -> None:
        self._ranks: list[RankName] = []
        self._programs: list[RankName] = []
        self._numbers: dict[RankName, int] = {}
        self._plain: dict[int, RankName] = {}  # ranks of the only program

    def of_program(self, world: str, rank: int, ranks: int) -> int:
        """Of a rank of one of several parallel programs in a step."""
        name = RankName(world, rank, world if ranks == 1 else f"{world}:{rank}", True)
        if name not in self._numbers:
            self._numbers[name] = FIRST_NAMED + len(self._ranks)
            self._ranks.append(name)
        return self._numbers[name]

    def of_process(self, program: str, is_parallel: bool) -> int:
        """Of a process without a rank; is_parallel: there are ranks in its step."""
        name = RankName(program, NO_RANK if is_parallel else 0, program, False)
        if name not in self._numbers:
            self._programs.append(name)
            self._numbers[name] = NO_RANK - len(self._programs)
        return self._numbers[name]

    def __getitem__(self, number: int) -> RankName:
        if number >= FIRST_NAMED:
            return self._ranks[number - FIRST_NAMED]
        if number < NO_RANK:
            return self._programs[NO_RANK - 1 - number]
        if number == NO_RANK:
            return _LAUNCHER
        if number not in self._plain:
            self._plain[number] = RankName("", number, str(number), True)
        return self._plain[number]

    def numbers_of(self, rank: int) -> list[int]:
        """Of this rank of each program."""
        every = [number for name, number in self._numbers.items() if name.rank == rank]
        return [rank, *every]

    def ranks(self, numbers: np.ndarray) -> np.ndarray:
        """The rank in its own program of each number."""
        known, at = np.unique(numbers, return_inverse=True)
        return np.array([self[one].rank for one in known.tolist()], np.int32)[at.reshape(-1)]

    def text(self, numbers: Iterable[int]) -> str:
        """A list of them: 0-3,8; pre:0-3,model:0,post."""
        return rank_list(map(self.__getitem__, in_order(numbers)))

    def labels(self, numbers: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Labels, and the place in them of each number."""
        known, at = np.unique(numbers, return_inverse=True)
        return [self[one].label for one in known.tolist()], at.reshape(-1).astype(np.int32)


def spans(ranks: Iterable[int]) -> str:
    """Rising numbers as words: 0-5,8."""
    words: list[list[int]] = []
    for rank in ranks:
        if words and words[-1][1] == rank - 1:
            words[-1][1] = rank
        else:
            words.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in words)


def rank_list(ranks: Iterable[RankName]) -> str:
    """As RankNames.text() has it."""
    by_program: dict[str, list[int]] = {}
    for one in ranks:
        is_numbered = one.is_rank and one.label != one.program
        by_program.setdefault(one.program, []).extend([one.rank] * is_numbered)
    return ",".join(
        f"{program}:{spans(ranks)}" if program and ranks else program or spans(ranks)
        for program, ranks in by_program.items()
    )


def in_order(numbers: Iterable[int]) -> list[int]:
    """Ranks rising, then processes without one, as tables have them."""
    return sorted(set(numbers), key=lambda one: (one < 0, abs(one)))
