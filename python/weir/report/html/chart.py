# SPDX-License-Identifier: Apache-2.0
"""Curves in a frame with two axes, as SVG that needs no script: what the first screen of a run,
the page of several runs and that of two runs draw (macros axes and curve of macros.j2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Mark:
    """A place on an axis, and its words."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A curve. kind: the class of its colour; points: of an SVG; dots: x, y and words of points
    that the pointer can ask."""

    name: str
    kind: str
    points: str
    dots: tuple[tuple[float, float, str], ...] = ()


@dataclass(frozen=True)
class Frame:
    """Where curves are drawn, in the units of the SVG, which are pixels at its usual width.
    vertical, horizontal: marks of the axis of the curves' values, and of what lies along them;
    along: the words of the latter; columns: whether its marks have lines."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    along: str = ""
    columns: bool = False
    vertical: list[Mark] = field(default_factory=list)
    horizontal: list[Mark] = field(default_factory=list)

    def x(self, part: float) -> float:
        """The place of a part, 0 to 1, of the axis along the curves."""
        return self.left + part * (self.right - self.left)

    def y(self, part: float) -> float:
        return self.bottom - part * (self.bottom - self.top)

    def marked(self, vertical: Iterable[Mark], horizontal: Iterable[Mark]) -> Frame:
        return replace(self, vertical=list(vertical), horizontal=list(horizontal))


def round_step(length: float, most: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most `most` of it are in the length."""
    power = 10.0 ** math.floor(math.log10(length / most))
    return next(float(one * power) for one in (1, 2, 5, 10) if one * power * most >= length * 0.999)
