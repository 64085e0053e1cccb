# SPDX-License-Identifier: Apache-2.0
"""Reading records in this process, or in others that see the same files (weir.cluster).

Other processes run the functions of this package; their results are equal to the last digit.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from weir.analysis.active import Active
from weir.analysis.clock import Line
from weir.analysis.exclusion import Exclusion
from weir.analysis.memory import follow
from weir.analysis.names import NameTable
from weir.analysis.step import StepData
from weir.analysis.tiles import Grid
from weir.trace import TraceFile
from weir.trace.file import FileReader, remote_reader

Answer = TypeVar("Answer")
MOST_TOGETHER = 256  # pieces that a thread takes at once: each handing over costs as much as one
SHARES_OF_WORKER = 16  # at least, as far as there are pieces: some take longer than others


class RemoteReader(FileReader, Protocol):
    """Other processes that read trace files. The TraceFiles that it opens have it as their
    `remote`."""

    def expect(self, paths: Iterable[Path], exclusion: Exclusion | None = None) -> None:
        """These files are asked for next: begin with them."""

    def active(self, files: Sequence[TraceFile], lines: Sequence[Line],
            masks: list[np.ndarray] | None, all_names: bool) -> Active:
        """weir.analysis.active.active_time()."""

    def tiles(
        self, files: Sequence[TraceFile], lines: Sequence[Line], rows_of: list[np.ndarray],
        grid: Grid, *, rows: int,
        groups_of: list[np.ndarray] | None, groups: int, all_names: bool,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """weir.analysis.tiles.tiles()."""

    def map(self, function: Callable[..., Answer], data: StepData, names: NameTable,
            pieces: Sequence[tuple]) -> list[Answer]:
        """for_each()."""

    def call(self, function: Callable[..., Answer], data: StepData, *arguments: Any,
            **named: Any) -> Answer:
        """The function's answer from one process that has the whole step."""


def for_each(function: Callable[..., Answer], data: StepData, names: NameTable,
        pieces: Sequence[tuple]) -> list[Answer]:
    """function(data, names, *piece) of each piece of a step (a rank, a process), some at once:
    numpy and the reader work without the interpreter's lock."""
    return list(answers_of(function, data, names, pieces))


def answers_of(function: Callable[..., Answer], data: StepData, names: NameTable,
        pieces: Sequence[tuple]) -> Iterator[Answer]:
    """The same, one answer after the other as they are made."""
    other = remote_reader(data.files)
    if other is not None:
        yield from other.map(function, data, names, pieces)
        return
    workers = os.cpu_count() or 1
    size = max(1, min(MOST_TOGETHER, len(pieces) // (SHARES_OF_WORKER * workers)))
    shares = [pieces[first : first + size] for first in range(0, len(pieces), size)]
    with ThreadPoolExecutor(max_workers=workers, initializer=follow) as pool:
        for share in pool.map(lambda its: [function(data, names, *one) for one in its], shares):
            yield from share


Pass = TypeVar("Pass", bound=Callable[..., Any])  # its first argument is the step


def pass_over_records(function: Pass) -> Pass:
    """A function of a whole step that reads its records: made where the step's files are read."""

    @functools.wraps(function)
    def made(data: StepData, *arguments: Any, **named: Any) -> Any:
        other = remote_reader(data.files)
        return function(data, *arguments, **named) if other is None else other.call(made, data,
            *arguments, **named)

    return made  # type: ignore[return-value]
