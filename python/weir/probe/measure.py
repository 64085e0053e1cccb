# SPDX-License-Identifier: Apache-2.0
"""Latency, bandwidth and metadata rate of one directory, by small files of its own.

Each figure has a budget of time, so that a fast and a slow file system take about as long. What is
read from storage was written, made durable and dropped from the page cache before
(posix_fadvise(2)); a second read of the same bytes shows the cache.
"""

from __future__ import annotations

import mmap
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir._errors import StorageError
from weir.probe.memory import Memory, measure_memory
from weir.probe.processes import of_processes

SIZES = (4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)  # of requests
SMALL = 4 << 10
MOST_BYTES = 64 << 20  # written for one figure
BUDGET_S = 0.25  # of one figure
LEAST_CALLS, MOST_CALLS = 5, 200
PROCESSES = (2, 4)
AGAIN = "read_4KiB_again"
CACHED = 4.0  # times as fast as from storage: the second read came from the page cache


@dataclass(frozen=True)
class Latency:
    """Seconds of one call: the median, and the tenth and nineteenth twentieth of all."""

    median: float
    low: float
    high: float
    count: int

    @staticmethod
    def of(times: Sequence[float]) -> Latency:
        ordered = sorted(times)
        at = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.1, 0.95)]
        return Latency(statistics.median(ordered), *at, len(ordered))


@dataclass(frozen=True)
class Rate:
    """bytes_per_s of requests of a size by so many processes at a time. from_cache: of a second
    read."""

    way: str
    request_bytes: int
    processes: int
    from_cache: bool
    bytes_per_s: float


@dataclass(frozen=True)
class Creates:
    """Files made a second in one directory by so many processes together."""

    processes: int
    per_s: float


@dataclass(frozen=True)
class Measured:
    """is_cached: whether the kernel keeps what was read. memory: of the node."""

    latency_s: dict[str, Latency]
    rates: tuple[Rate, ...]
    creates: tuple[Creates, ...]
    is_cached: bool
    memory: tuple[Memory, ...]
    took_s: float


def measure(directory: Path, processes: Sequence[int] = PROCESSES) -> Measured:
    """Everything; some seconds. Its files are removed, also after an error. Raises StorageError."""
    began = time.monotonic()
    try:
        place = Path(tempfile.mkdtemp(prefix=".weir-probe-", dir=directory))
    except OSError as error:
        raise StorageError(f"{directory}: weir probe cannot write there: "
                           f"{error.strerror}") from error
    try:
        usage = shutil.disk_usage(place)
        most = min(MOST_BYTES, usage.free // 8)
        if most < SIZES[-1]:
            raise StorageError(f"{directory}: {usage.free:,} bytes are free; weir probe needs "
                               f"{8 * SIZES[-1]:,}")
        latency = {**_names(place), **_small(place)}
        rates = [*_rates(place, most), *_together(place, most, processes)]
        creates = tuple(Creates(count, _creates(place, count)) for count in (1, *processes))
        return Measured(latency, tuple(rates), creates, _is_cached(rates),
            measure_memory(), time.monotonic() - began)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{directory}: weir probe cannot go on: {error.strerror}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_cached(rates: Sequence[Rate]) -> bool:
    """At any size: small requests may each ask for the time of the file's last change."""
    once, again = ({one.request_bytes: one.bytes_per_s for one in rates if one.way == "read"
        and one.processes == 1 and one.from_cache == which} for which in (False, True))
    return any(again[size] >= CACHED * once[size] for size in once)


def _timed(call: Callable[[int], Any], most: int = MOST_CALLS) -> list[float]:
    """Seconds of each call, within the budget."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < most and (len(times) < LEAST_CALLS
            or time.perf_counter() - begin < BUDGET_S):
        before = time.perf_counter()
        call(len(times))
        times.append(time.perf_counter() - before)
    return times


def _names(place: Path) -> dict[str, Latency]:
    """Calls on names of files that are empty."""
    made: list[int] = []

    def create(number: int) -> None:
        made.append(os.open(place / f"{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    times = {"create": _timed(create)}
    times["close"] = _timed(lambda number: os.close(made[number]), len(made))
    for left in made[len(times["close"]) :]:
        os.close(left)
    count = len(made)
    times["stat"] = _timed(lambda number: os.stat(place / f"{number}"), count)
    opened: list[int] = []
    times["open"] = _timed(lambda number: opened.append(os.open(place / f"{number}",
        os.O_RDONLY)), count)
    for one in opened:
        os.close(one)
    times["unlink"] = _timed(lambda number: os.unlink(place / f"{number}"), count)
    return {name: Latency.of(found) for name, found in times.items()}


def _small(place: Path) -> dict[str, Latency]:
    """Reads and writes of 4 KiB at places of their own, and what makes one durable."""
    data, path = os.urandom(SMALL), place / "small"
    with _opened(path, os.O_CREAT | os.O_RDWR) as file:
        writes = _timed(lambda number: os.pwrite(file, data, number * SMALL))
        os.fsync(file)

        def durable(number: int) -> None:
            os.pwrite(file, data, number * SMALL)
            begin = time.perf_counter()
            os.fsync(file)
            syncs.append(time.perf_counter() - begin)

        syncs: list[float] = []
        _timed(durable, 20)
        _drop(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        reads = _timed(lambda number: os.pread(file, SMALL, number * SMALL), len(writes))
        again = _timed(lambda number: os.pread(file, SMALL, number * SMALL), len(reads))
    os.unlink(path)
    return {"write_4KiB": Latency.of(writes), "fsync": Latency.of(syncs),
        "read_4KiB": Latency.of(reads), AGAIN: Latency.of(again)}  # fmt: skip


class _opened:
    """A descriptor for the time of a block."""

    def __init__(self, path: Path, flags: int) -> None:
        self._path, self._flags = path, flags

    def __enter__(self) -> int:
        self._file = os.open(self._path, self._flags, 0o600)
        return self._file

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def _drop(file: int) -> None:
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _rates(place: Path, most: int) -> Iterator[Rate]:
    for size in SIZES:
        path = place / f"rate-{size}"
        written, write_s = write_rate(path, size, most)
        yield Rate("write", size, 1, False, written / write_s)
        for from_cache, per_s in zip((False, True), read_rate(path, size, written)):
            yield Rate("read", size, 1, from_cache, per_s)
        os.unlink(path)


def write_rate(path: Path, size: int, most: int) -> tuple[int, float]:
    """Bytes and seconds, with the fsync behind them. Memory that a page begins with, as of a call
    of FFIO's or MPI's."""
    buffer = mmap.mmap(-1, size)
    buffer.write(os.urandom(min(size, 1 << 16)) * (size // min(size, 1 << 16)))
    written, begin = 0, time.perf_counter()
    with _opened(path, os.O_CREAT | os.O_WRONLY) as file:
        while written + size <= most and time.perf_counter() - begin < BUDGET_S:
            written += os.write(file, buffer)
        os.fsync(file)
    return written, time.perf_counter() - begin


def read_rate(path: Path, size: int, most: int) -> Iterator[float]:
    """Bytes a second; of the same bytes once more, by the same descriptor: some file systems forget
    what they have when a file is opened."""
    buffer = mmap.mmap(-1, size)
    with _opened(path, os.O_RDONLY) as file:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        for _ in range(2):
            got, begin = 0, time.perf_counter()
            while got < most and time.perf_counter() - begin < BUDGET_S:
                got += os.preadv(file, [buffer], got)
            yield got / max(time.perf_counter() - begin, 1e-9)
            most = got


def _together(place: Path, most: int, processes: Sequence[int]) -> Iterator[Rate]:
    """Files of their own, in requests of 1 MiB: written together, then read together."""
    size = 1 << 20
    for count in processes:
        written = of_processes(_write_one, count, place, size, most // count)
        slowest = max(seconds for _, seconds in written)
        yield Rate("write", size, count, False, sum(n for n, _ in written) / slowest)
        least = min(n for n, _ in written)
        yield Rate("read", size, count, False, sum(of_processes(_read_one, count, place, size,
            least)))


def _write_one(number: int, place: Path, size: int, most: int) -> tuple[int, float]:
    return write_rate(place / f"together-{number}", size, max(most, size))


def _read_one(number: int, place: Path, size: int, most: int) -> float:
    path = place / f"together-{number}"
    try:
        return next(read_rate(path, size, most))
    finally:
        path.unlink()


def _creates(place: Path, processes: int) -> float:
    found = of_processes(_create_many, processes, place)
    return sum(count / seconds for count, seconds in found)


def _create_many(number: int, place: Path) -> tuple[int, float]:
    begin, made = time.perf_counter(), 0
    while time.perf_counter() - begin < BUDGET_S and made < 1000:
        os.close(os.open(place / f"c-{number}-{made}", os.O_CREAT | os.O_WRONLY, 0o600))
        made += 1
    took = time.perf_counter() - begin
    for one in range(made):
        os.unlink(place / f"c-{number}-{one}")
    return made, took
