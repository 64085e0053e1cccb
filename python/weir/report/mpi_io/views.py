# SPDX-License-Identifier: Apache-2.0
"""File views of MPI-IO: which bytes of a file each rank sees.

Source: the notes of docs/formats/trace.md, section 3.8, of the first calls of MPI_File_set_view. A
view begins at its displacement and repeats the file type, each repetition an extent behind the one
before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np

from weir.analysis.ranks import RankName
from weir.report.frame.build import Report, StepReport, figure

ALL, FIRST, UNKNOWN = "all", "first", "unknown"
_KIND = "view\n"
_RUN = re.compile(r"(\d+)\+(\d+)(?:\*(\d+)/(\d+))?(?:\*(\d+)/(\d+))?")
_NO_RUN = (0, 0, 1, 0, 1, 0)
_MOST_NESTED = 64  # repetitions of a file type that lie in one another


@dataclass(frozen=True, order=True)
class Run:
    """Blocks of one length, each `stride` behind the one before it; all of them `times`, each time
    `distance` behind the time before it. offset: of the first, from the begin of the file type."""

    offset: int
    length: int
    count: int = 1
    stride: int = 0
    times: int = 1
    distance: int = 0

    @classmethod
    def all_of(cls, text: str) -> tuple[Run, ...]:
        """Of a note, or as str() writes them."""
        return tuple(cls(*(int(group or default) for group, default in zip(found, _NO_RUN)))
            for found in _RUN.findall(text))

    def __str__(self) -> str:
        pairs = ((self.count, self.stride), (self.times, self.distance))
        return f"{self.offset}+{self.length}" + "".join(f"*{count}/{distance}"
            for count, distance in pairs if count > 1)

    @property
    def blocks(self) -> int:
        return self.count * self.times

    @property
    def end(self) -> int:
        return (self.offset + self.distance * (self.times - 1) + self.stride * (self.count - 1)
            + self.length)

    def places(self) -> Iterator[int]:
        for i in range(self.times):
            for k in range(self.count):
                yield self.offset + i * self.distance + k * self.stride

    def below(self, at: np.ndarray) -> np.ndarray:
        """Bytes of the blocks before each place."""
        behind = at - self.offset
        time = np.clip(behind // (self.distance or 1), 0, self.times - 1)
        behind = behind - time * self.distance
        begun = np.clip((behind - 1) // (self.stride or 1) + 1, 0, self.count)
        last = np.minimum(behind - (begun - 1) * self.stride, self.length)
        rest = np.where(begun > 0, (begun - 1) * self.length + last, 0)
        return time * self.count * self.length + rest


@dataclass(frozen=True)
class FileView:
    """What one call gave a rank. view: number of the call on this file in the process, from 1.
    data_bytes: of one file type, of extent_bytes. recorded: whether `runs` are all of its blocks,
    the first ones, or none are known."""

    step: str
    file: str
    rank: RankName
    view: int
    displacement: int
    etype_bytes: int
    data_bytes: int
    extent_bytes: int
    recorded: str
    runs: tuple[Run, ...]

    @property
    def blocks(self) -> int | None:
        """Contiguous blocks of the file type; None where they are not all known."""
        return sum(run.blocks for run in self.runs) if self.recorded == ALL else None

    @property
    def shape(self) -> tuple[object, ...]:
        """All that says which bytes it shows."""
        return (self.displacement, self.etype_bytes, self.data_bytes, self.extent_bytes,
            self.recorded, self.runs)

    @property
    def has_holes(self) -> bool:
        return self.runs != (Run(0, self.extent_bytes),)

    @property
    def bounds(self) -> tuple[int, int]:
        """Of a file type, from the displacement: of its data where these lie beyond the extent."""
        end = self.runs[-1].end if self.runs else 0
        if end <= self.extent_bytes:
            return 0, self.extent_bytes
        return self.runs[0].offset, max(end, self.runs[0].offset + self.extent_bytes)

    @property
    def is_drawable(self) -> bool:
        """Whether few repetitions of the file type lie in one another."""
        ends = max((run.end for run in self.runs), default=0)
        return ends <= _MOST_NESTED * self.extent_bytes

    def seen(self, edges: np.ndarray) -> np.ndarray:
        """Bytes between neighbouring places of the file that the rank sees."""
        return self._between(self.runs, edges)

    def unrecorded(self, edges: np.ndarray) -> np.ndarray:
        """Bytes between them of which it is not known whether it does."""
        begin = self.runs[-1].end if self.runs else 0
        rest = () if self.recorded == ALL else (Run(begin, max(self.extent_bytes - begin, 0)),)
        return self._between(rest, edges)

    def _between(self, runs: tuple[Run, ...], edges: np.ndarray) -> np.ndarray:
        at, sums = np.maximum(edges - self.displacement, 0), np.zeros(len(edges), np.int64)
        if not self.extent_bytes or not runs:
            return np.diff(sums)
        whole = sum(run.blocks * run.length for run in runs)
        last, nested = at // self.extent_bytes, -(-max(run.end for run in runs)
            // self.extent_bytes)
        for back in range(nested):
            place = at - (last - back) * self.extent_bytes
            found = sum(run.below(place) for run in runs)
            sums += np.where(last >= back, found, 0)
        return np.diff(sums + np.maximum(last - nested + 1, 0) * whole)

    def spans(self, begin: int, end: int, most: int) -> list[tuple[int, int]] | None:
        """Offset and length of the blocks in a part of the file, neighbours united; None where they
        are more than `most`, or not all known."""
        each = sum(run.blocks for run in self.runs)
        if self.recorded != ALL or not self.extent_bytes or not each:
            return None if self.recorded != ALL else []
        if not self.has_holes:
            first = max(begin, self.displacement)
            return [(first, end - first)] if first < end else []
        ends = max(run.end for run in self.runs)
        first = max(0, (begin - self.displacement - ends) // self.extent_bytes)
        last = max(first, -(-(end - self.displacement) // self.extent_bytes))
        if (last - first) * each > most:
            return None
        pieces = sorted(
            (self.displacement + period * self.extent_bytes + place, run.length)
            for period in range(first, last) for run in self.runs for place in run.places()
        )
        made: list[tuple[int, int]] = []
        for offset, length in pieces:
            if offset + length <= begin or offset >= end:
                continue
            if made and sum(made[-1]) == offset:
                made[-1] = made[-1][0], made[-1][1] + length
            else:
                made.append((offset, length))
        return made


@dataclass(frozen=True)
class ViewGroup:
    """What all ranks were given by the same call, or by several that gave the same. by_rank: a view
    and the ranks that have it, by their first rank."""

    step: str
    file: str
    numbers: tuple[int, ...]
    by_rank: tuple[tuple[FileView, tuple[RankName, ...]], ...]

    @property
    def is_plain(self) -> bool:
        """Whether all ranks see all bytes behind one place."""
        return len({view.displacement for view, _ in self.by_rank}) == 1 and not any(
            view.has_holes for view, _ in self.by_rank)

    @property
    def range(self) -> tuple[int, int]:
        """The bytes of one file type of each rank; behind a view without holes as many as lie
        between two of them."""
        begins = [view.displacement + view.bounds[0] for view, _ in self.by_rank]
        ends = [view.displacement + view.bounds[1] for view, _ in self.by_rank]
        if any(not view.has_holes for view, _ in self.by_rank) and len(begins) > 1:
            ends.append(max(begins) + (max(begins) - min(begins)) // (len(begins) - 1))
        return min(begins), max(ends)

    @property
    def unit(self) -> int:
        """The number of bytes of which all places are multiples, from the begin of the range."""
        begin = self.range[0]
        found = 0
        for view, _ in self.by_rank:
            found = gcd(found, view.displacement - begin, view.extent_bytes,
                *(number for run in view.runs
                    for number in (run.offset, run.length, run.stride, run.distance)))
        return found or 1

    @property
    def shortest_period(self) -> int:
        """The least distance at which blocks of a rank repeat."""
        strides = (run.stride for view, _ in self.by_rank for run in view.runs if run.count > 1)
        extents = (view.extent_bytes for view, _ in self.by_rank if view.has_holes)
        return min(strides, default=0) or min(extents, default=0)


@figure
def views_of(step: StepReport) -> list[FileView]:
    """File views of one step by file, number and rank."""
    found = {view for index in range(len(step.data.files)) for view in _of_file(step, index)}
    return sorted(found, key=lambda one: (one.file, one.view, one.rank, one.shape))


def _of_file(step: StepReport, index: int) -> Iterator[FileView]:
    file, first = step.data.files[index], step.data.first_member(index)
    notes = {at: text for at, text in file.notes.items() if text.startswith(_KIND)}
    if not notes:
        return
    table = file.array("names")
    rows = table[np.isin(table["text"], list(notes))]
    for process, text in zip(rows["process"].tolist(), rows["text"].tolist()):
        if step.members[first + process]:
            rank = step.names.ranks[step.data.members[first + process].number]
            yield from _read(step, index, process, rank, notes[text])


def _read(step: StepReport, index: int, process: int, rank: RankName, note: str
        ) -> Iterator[FileView]:
    _, name, number, value = note.split("\n")
    at = step.data.files[index].texts_of(np.array([process]), np.array([int(name)]))[0]
    numbers = step.data.name_numbers[index]
    if at < len(numbers):
        *figures, recorded = value.split(" ")[:5]
        runs = Run.all_of(value)
        path = step.names[int(numbers[at])]
        yield FileView(step.name, path, rank, int(number), *map(int, figures), recorded, runs)


def all_views(report: Report) -> list[FileView]:
    """Step by step."""
    return [one for step in report.steps for one in views_of(step)]


@figure
def view_groups(report: Report) -> list[ViewGroup]:
    """The views of all steps by file; calls that gave every rank the same are one."""
    made: dict[tuple, list[int]] = {}
    of_call: dict[tuple, dict[RankName, FileView]] = {}
    for one in all_views(report):
        of_call.setdefault((one.step, one.file, one.view), {})[one.rank] = one
    for (step, file, number), views in of_call.items():
        by_shape: dict[tuple, list[FileView]] = {}
        for rank in sorted(views):
            by_shape.setdefault(views[rank].shape, []).append(views[rank])
        key = tuple((shape, tuple(one.rank for one in some)) for shape, some in by_shape.items())
        made.setdefault((step, file, key), []).append(number)
    return [
        ViewGroup(step, file, tuple(numbers), tuple((of_call[step, file, numbers[0]][ranks[0]],
            ranks) for _, ranks in key))
        for (step, file, key), numbers in made.items()
    ]
