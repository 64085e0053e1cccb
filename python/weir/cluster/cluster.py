# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster as the place where trace files are read: what is asked of workers, and how their
partial answers become one.

- A node's trace file is scanned by one worker; its tables come back.
- Active time: one worker merges a step; of many workers each makes disjoint intervals of a stretch
of chunks, cut at common timestamps, and
  each stretch of time is merged on its own.
- Tiles are added up.
- Waits: each rank's calls are read by any worker, collectives are matched by this process.
- What follows files over all nodes of a step (bytes read again, gaps) one worker does for the whole
step.

A worker that dies is no matter: Dask asks another one, and what this process had sent to it is sent
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weir._errors import Error
from weir.analysis.active import Active
from weir.analysis.clock import Line
from weir.analysis.exclusion import Exclusion
from weir.analysis.names import NameTable
from weir.analysis.step import StepData
from weir.analysis.tiles import Grid
from weir.cluster.files import ClusterFile, Identity, Tables, identity_of, tables_of
from weir.cluster.passes import Lanes, Stretch, active_of, add_tiles, blocks_of, length_of, tiles_of
from weir.trace import DamagedFile, Problem, TraceFile
from weir.trace._abi import TILE
from weir.trace.file import EVENTS

if TYPE_CHECKING:
    from distributed import Client, Future

# threads of workers: one alone merges whole files some eight times as fast as it makes and merges
# their parts
SPLIT_FROM = 12
STRETCH_RECORDS = 1 << 22
WINDOW_RECORDS = 1 << 24  # of 16 bytes at most, on the worker that merges them
MOST_WINDOWS = 64
SENDINGS = 5  # how often a step is sent, when workers die that have it


class ClusterError(Error, RuntimeError):
    """The cluster does not do what it was asked: no scheduler, no workers, workers that die."""


class Cluster:
    """The workers of one scheduler; a context manager. connect() makes one. It belongs to one
    thread."""

    def __init__(self, client: Client, close: Callable[[], None]):
        self.client, self._close = client, close
        self._asked: dict[Path, tuple[Identity, Future] | Problem] = {}
        self._sent: dict[int, tuple[object, Future]] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workers. Files that were opened keep their tables; their records are then
        read by this process."""
        self._asked.clear()
        self._sent.clear()
        self._close()

    # Files

    def expect(self, paths: Iterable[Path], exclusion: Exclusion | None = None) -> None:
        """Workers begin to scan these files. What this process cannot read is reported when it is
        opened."""
        for path in paths:
            try:
                file = identity_of(path, exclusion)
                self._asked[path] = file, self._submit(tables_of, file)
            except OSError as error:
                self._asked[path] = _unreadable(path, error)

    def open(
        self, paths: Sequence[Path], exclusion: Exclusion | None = None
    ) -> list[TraceFile | Problem]:
        """The files in their order. Raises InputError when a worker sees no such file or another
        one, ClusterError."""
        self.expect((path for path in paths if path not in self._asked), exclusion)
        return [self._opened(path) for path in paths]

    def _opened(self, path: Path) -> TraceFile | Problem:
        asked = self._asked.pop(path)
        if isinstance(asked, Problem):
            return asked
        file, future = asked
        found = self._result(future)
        return ClusterFile(file, found, self) if isinstance(found, Tables) else found

    # Passes over records

    def active(self, files: Sequence[ClusterFile], lines: Sequence[Line],
            masks: list[np.ndarray] | None, all_names: bool) -> Active:
        if self.threads < SPLIT_FROM:
            return self._result(self._submit(active_of, [file.identity for file in files],
                list(lines), masks, all_names))
        stretches, timestamps = _stretches(files, lines, masks)
        if not stretches:
            return Active(0, 0, 0, 0)
        windows = min(-(-sum(one.records for one in stretches) // WINDOW_RECORDS), MOST_WINDOWS)
        timestamps.sort()
        cuts = np.unique(timestamps[[len(timestamps) * i // windows for i in range(1, windows)]])
        blocks = [self._submit(blocks_of, one, all_names, cuts) for one in stretches]
        parts = [[self._submit(itemgetter(window), one) for one in blocks]
            for window in range(len(cuts) + 2)]
        lengths = [self._submit(length_of, part) for part in parts[1:]]
        seen = [one for one in map(self._result, parts[0]) if one.records]
        if not seen:
            return Active(0, 0, 0, 0)
        return Active(
            sum(map(self._result, lengths)), min(one.first_ns for one in seen),
            max(one.last_ns for one in seen), sum(one.records for one in seen)
        )

    def tiles(
        self, files: Sequence[ClusterFile], lines: Sequence[Line], rows_of: list[np.ndarray],
        grid: Grid, *, rows: int,
        groups_of: list[np.ndarray] | None, groups: int, all_names: bool,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        by_row, by_group = np.zeros((rows, grid.bins), TILE), np.zeros((groups, grid.bins), TILE)
        every = groups_of if groups_of is not None else [None] * len(files)
        lanes = [Lanes(file.identity, line, *of) for file, line, *of in zip(files, lines, rows_of,
            every)]
        # files of one answer: each is as large as the picture
        several = -(-len(lanes) // (2 * self.threads))
        asked = [self._submit(tiles_of, lanes[i : i + several], grid, rows, groups, all_names)
            for i in range(0, len(lanes), several)]
        while asked:
            used, of_rows, of_groups = self._result(asked.pop())
            into = by_row[used]
            add_tiles(into, of_rows)
            by_row[used] = into
            add_tiles(by_group, of_groups)
        return by_row, by_group

    def map(self, function: Callable[..., Any], data: StepData, names: NameTable,
            pieces: Sequence[tuple]) -> list[Any]:
        """A worker that has some piece asks for the step once."""
        return self._sending(data, lambda: [self._with_step(function, data, (names, *piece), {})
            for piece in pieces])

    def call(self, function: Callable[..., Any], data: StepData, *arguments: Any,
            **named: Any) -> Any:
        [found] = self._sending(data, lambda: [self._with_step(function, data, arguments, named)])
        return found

    def _sending(self, data: StepData, submit: Callable[[], list[Future]]) -> list[Any]:
        """The answers; when workers die that have what this process sent, it is sent and asked once
        more."""
        for sending in range(SENDINGS):
            try:
                return [self._result(one) for one in submit()]
            except _Lost as error:
                if sending + 1 == SENDINGS:
                    raise ClusterError(f"{data.step.path}: {error}") from error
                self._sent.clear()
                time.sleep(1)  # until the scheduler knows that they are gone
        return []

    # Dask

    @property
    def threads(self) -> int:
        """Threads of all workers that there are now, at least 1."""
        return max(1, sum(self.client.nthreads().values()))

    def _submit(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future:
        return self.client.submit(function, *arguments, pure=False, **named)

    def _with_step(self, function: Callable[..., Any], data: StepData, arguments: tuple,
            named: dict[str, Any]) -> Future:
        with self._losses():
            large = [self._kept(one) if isinstance(one, NameTable) else one for one in arguments]
            return self._submit(function, self._kept(data), *large, **named)

    def _kept(self, one: Any) -> Future:
        """Sent to a worker once, whichever functions need it."""
        if id(one) not in self._sent:
            self._sent[id(one)] = one, self.client.scatter(one, hash=False)
        return self._sent[id(one)][1]

    def _result(self, future: Future) -> Any:
        with self._losses():
            return future.result()

    @contextmanager
    def _losses(self) -> Iterator[None]:
        from asyncio import CancelledError
        from concurrent.futures import CancelledError as Cancelled

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"{error}: workers that were asked for it died; memory may be short "
                f"(docs/guide/large.md)") from error
        except TimeoutError as error:
            raise ClusterError(
                f"the cluster has no workers any more ({error}): start some, or report without "
                f"--dask") from error
        except (CancelledError, Cancelled, CommClosedError) as error:
            if self.client.status != "running":
                raise ClusterError(
                    f"the scheduler {self.client.scheduler.address} is gone: start it again, or "
                    f"report without --dask") from error
            raise _Lost(f"workers that had the step died {SENDINGS} times") from error


def _unreadable(path: Path, error: OSError) -> Problem:
    """In the reader's own words, as without a cluster."""
    try:
        TraceFile(path)
    except DamagedFile as damage:
        return Problem(damage.path, damage.offset, damage.reason)
    return Problem(str(path), None, f"cannot be read: {error.strerror or error}")


class _Lost(Exception):
    """What this process had sent is gone with the worker that had it."""


def _stretches(files: Sequence[ClusterFile], lines: Sequence[Line],
        masks: list[np.ndarray] | None) -> tuple[list[Stretch], np.ndarray]:
    """Chunks of the chosen processes, some at a time, and when the last record of each chunk ended.
    """
    made, timestamps = [], [np.empty(0, np.int64)]
    for index, (file, line) in enumerate(zip(files, lines)):
        chunks = file.array("chunks")
        chosen = (chunks["kind"] == EVENTS) & (chunks["first_ticks"] <= chunks["last_ticks"])
        if masks is not None:
            chosen &= np.asarray(masks[index], bool)[np.minimum(chunks["process"],
                max(len(masks[index]) - 1, 0))] if len(masks[index]) else False
        at = np.flatnonzero(chosen)
        timestamps.append(line.timestamps(chunks["last_ticks"][at]))
        for some in _pieces(chunks["entries"][at]):
            made.append(Stretch(file.identity, line, at[some],
                int(chunks["entries"][at[some]].sum())))
    return made, np.concatenate(timestamps)


def _pieces(entries: np.ndarray) -> Iterator[slice]:
    """Slices of about STRETCH_RECORDS entries each."""
    if not len(entries):
        return
    number = (np.cumsum(entries) - 1) // STRETCH_RECORDS
    limits = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(entries)]
    yield from map(slice, limits, limits[1:])
