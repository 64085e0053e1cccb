# SPDX-License-Identifier: Apache-2.0
"""Trace files that workers read: their tables travel, their records stay where they are.

A worker opens a file by its absolute path. That it is the file that was meant, its size and its
first page tell: a path in a directory of the node's own names another file, or none, on each host.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from weir._errors import InputError
from weir.analysis.exclusion import Exclusion
from weir.trace import DamagedFile, Problem, Process, TraceFile
from weir.trace._abi import ARRAYS, Header
from weir.trace.file import threads_for

HEAD_BYTES = 4096
MOST_OPEN = 16
_KEPT = tuple(name for name in ARRAYS if name != "problems")


@dataclass(frozen=True)
class Identity:
    """A file as the asking process saw it. shown: its name as that process was given it."""

    path: str
    shown: str
    host: str
    size: int
    head: bytes
    exclusion: Exclusion | None = None

    def map(self) -> TraceFile:
        """The file in this process, without the files that are left out. Raises DamagedFile."""
        file = TraceFile(self.path)
        return file if self.exclusion is None else file.exclude(self.exclusion.mask(file.texts))


def identity_of(path: Path, exclusion: Exclusion | None = None) -> Identity:
    """Raises OSError."""
    size, head = _seen(str(path))
    return Identity(os.path.abspath(path), str(path), socket.gethostname(), size, head, exclusion)


def _seen(path: str) -> tuple[int, bytes]:
    with open(path, "rb") as stream:
        return os.fstat(stream.fileno()).st_size, stream.read(HEAD_BYTES)


def _check(file: Identity) -> None:
    """Raises InputError when this process does not see that file."""
    here, wanted = where(), f"{file.path}: the {file.size} bytes that {file.host} has there"
    advice = "put the run on a file system that all workers share, or report it without --dask"
    try:
        size, head = _seen(file.path)
    except OSError as error:
        raise InputError(
            f"{wanted} cannot be read by {here}: {error.strerror or error}; {advice}") from None
    if (size, head) != (file.size, file.head):
        what = f"it has {size} bytes" if size != file.size else "its header is another"
        raise InputError(
            f"{wanted} are another file for {here}: {what}; {advice}. A job that still runs is "
            f"reported without --dask.")


def where() -> str:
    """This process as messages name it: worker and host."""
    from distributed import get_worker

    try:
        return f"worker {get_worker().address} on {socket.gethostname()}"
    except ValueError:
        return f"process {os.getpid()} on {socket.gethostname()}"


class _Opened:
    """Files that this process has mapped, the last few of them. Threads share them: what is asked
    of them changes nothing in them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.files: OrderedDict[Identity, TraceFile] = OrderedDict()
        self.busy: dict[Identity, threading.Lock] = {}

    def file(self, wanted: Identity, threads: int) -> TraceFile:
        with self.lock:
            busy = self.busy.setdefault(wanted, threading.Lock())
        with busy:
            found = self._known(wanted)
            if found is None:
                _check(wanted)
                found = wanted.map().find_times(threads)
                with self.lock:
                    self.files[wanted] = found
                    while len(self.files) > MOST_OPEN:
                        self.busy.pop(self.files.popitem(last=False)[0], None)
            return found

    def _known(self, wanted: Identity) -> TraceFile | None:
        with self.lock:
            if wanted in self.files:
                self.files.move_to_end(wanted)
            return self.files.get(wanted)


_opened = _Opened()


def opened(file: Identity, threads: int = 1) -> TraceFile:
    """The file in this process, for passes over its records. Raises InputError when this process
    does not see it, DamagedFile."""
    return _opened.file(file, threads)


@dataclass(frozen=True)
class Tables:
    """What a scanned file has but its records. known: text of each pair of process and id, packed
    in keys that rise."""

    header: bytes
    arrays: dict[str, np.ndarray]
    processes: tuple[Process, ...]
    texts: tuple[str, ...]
    problems: list[Problem]
    known: tuple[np.ndarray, np.ndarray]


def tables_of(wanted: Identity) -> Tables | Problem:
    """Made by a worker. Raises InputError when it does not see the file."""
    _check(wanted)
    try:
        file = wanted.map().scan()
    except DamagedFile as error:
        return Problem(wanted.shown, error.offset, error.reason)
    arrays = {name: np.array(file.array(name)) for name in _KEPT}
    pairs = np.unique(np.concatenate([_packed(arrays[name]["process"], arrays[name]["file"])
        for name in ("rows", "units")]))
    texts = file.texts_of(pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF))
    problems = [replace(one, path=wanted.shown) for one in file.problems]
    return Tables(bytes(file.header), arrays, file.processes, file.texts, problems, (pairs, texts))


def _packed(processes: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return processes.astype(np.uint64) << np.uint64(32) | ids.astype(np.uint64)


class ClusterFile(TraceFile):
    """A trace file that a worker has scanned. Whoever asks for its records in this process maps it
    here.

    `remote` is None in the workers themselves.
    """

    def __init__(self, file: Identity, tables: Tables, remote: Any):
        self.identity, self.tables, self.remote = file, tables, remote
        self.path, self.header = file.shown, Header.from_buffer_copy(tables.header)

    def __del__(self) -> None:
        """Nothing to give back: what was mapped belongs to the process."""

    def __reduce__(self) -> tuple:
        return ClusterFile, (self.identity, self.tables, None)

    @cached_property
    def here(self) -> TraceFile:
        """The file in this process. Raises InputError when it is not seen."""
        return opened(self.identity, threads_for(self.identity.size))

    @property
    def handle(self) -> int:  # type: ignore[override]
        return self.here.handle

    @property
    def raw(self) -> np.ndarray:
        return self.here.raw

    def scan(self, threads: int = 1) -> TraceFile:
        """It is."""
        return self

    def find_syncs(self) -> TraceFile:
        """They are."""
        return self

    def forget(self) -> None:
        """The tables are kept, for whom the file is sent to."""

    def leave(self) -> None:
        """Where it was mapped at all."""
        if "here" in vars(self):
            self.here.leave()

    def array(self, name: str) -> np.ndarray:
        return self.tables.arrays[name]

    @property
    def processes(self) -> tuple[Process, ...]:  # type: ignore[override]
        return self.tables.processes

    @property
    def texts(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.tables.texts

    @property
    def problems(self) -> list[Problem]:
        return self.tables.problems

    def texts_of(self, processes: np.ndarray, ids: np.ndarray) -> np.ndarray:
        keys, texts = self.tables.known
        wanted = _packed(processes, ids)
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        if len(keys) and (keys[at] == wanted).all():
            return texts[at]
        return self.here.texts_of(processes, ids)
