# SPDX-License-Identifier: Apache-2.0
"""Finding small-requests: a rank moves a file, in order, in pieces that are much smaller than what
its file system moves at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from weir.advise.frame.bypass import is_left_alone
from weir.advise.frame.facts import Facts, File, Files, Way
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.frame.grouping import Group, groups
from weir.advise.frame.libraries import fitting
from weir.advise.frame.openings import open_at_once
from weir.advise.frame.saving import NOTHING, Range, request_count, saved
from weir.advise.frame.speeds import in_blocks
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds

BLOCK = 1 << 20
BUFFERS = 4
_STATEMENTS = ("fortran_read", "fortran_write")
_FLUSHES = ("fflush",)
_SEEKS = ("fseek", "rewind")  # write what a stream's buffer holds
# Before these the layer writes what it holds, and the program waits for it.
_BARRIERS = ("fsync", "fdatasync", "sync_file_range", "ftruncate", "fallocate", "posix_fallocate",
    "flock")  # fmt: skip
GATHERED = 4  # of these bytes each rank waits for the slowest of a block, at most
OF_A_CALL = Range(0.2e-6, 4e-6)  # seconds of the layer's own; the most where cores are busy
# The same of a call on a stream that its buffer serves, which stays what it was.
OF_A_BUFFER = Range(0.03e-6, 0.4e-6)
# Seconds of an opening that is written behind: the write-back daemon registers it, and forgets it.
OF_A_FILE = Range(0.3e-3, 5e-3)
# Seconds of each rank for the first block that is written behind: the write-back daemon is started,
# memory is taken.
OF_A_WRITER = Range(0.005, 0.05)
_LETTERS = {"read": "R", "write": "W"}
READ_BACK = 10  # times as many writes of a stream as reads: its seeks write what its buffer holds
FIRST_READ = 16 << 10  # bytes that the layer reads first of a stream; then twice as many, ...
OF_AN_OPEN = 2  # requests of the layer's own: fstat, and close of a copy of the descriptor
MANY = Limit("calls on files of one pattern that a buffer can merge", 200, "calls",
    "chosen: fewer calls of 0.6 ms, as of a parallel file system, take 0.12 s, and to begin to "
    "write behind takes up to 0.05 s")
SMALL = Limit("mean size of a call, at most", 256 << 10, "B",
    "a quarter of 1 MiB, the stripe of Lustre and the largest request of FUSE: larger calls gain "
    "less than they cost in copies")
SLOW = Limit("rate of the calls, at most", 400e6, "B/s",
    "measured: layer bufa copies at this rate on a node whose cores are busy; what is faster comes "
    "from the page cache, and bufa bypasses it")
CALL = Limit("mean time of a call", 25e-6, "s",
    "measured: 4 KiB to the page cache take 2 us, and 17 us on a node whose cores are busy")
IN_ORDER = Limit("share of calls that go on in order or at a distance that is repeated",
    0.7, "share",
    "measured by weir bench layers --sweep: bufa reads ahead for these, and passes others on")
LONG = Limit("writes of an opening that a buffer merges", 8, "writes",
    "measured: to begin to write behind takes as long as 4 to 8 requests, and longer where threads "
    "of a process begin at once")
AT_ONCE = "; the file is open more than once at a time on a node, so openings must share a buffer"
_BUFFERS = {
    "stdio": "setvbuf",
    "netcdf": "the chunk size of nc__open and nc__create",
}
SHARED = Limit("how often ranks move each byte, at most", 1.25, "times",
    "from there on the cure is a cache of all ranks (finding same-bytes)")


def is_small(way: Way) -> bool:
    """Whether calls are small and slow; of Ways a mask."""
    return ((way.mean_bytes <= SMALL.value) & way.is_slow(SLOW.value)
        & (way.call_s >= CALL.value))


def _is_small_on(file: File, name: str) -> bool:
    """The same of requests, where streams make one of many calls, or of each flush."""
    way, calls = way_of(file, name), _requests(file, name)
    if not file.on_streams(_LETTERS[name]) or not calls:
        return is_small(way)
    requests_s = way.seconds - buffered_s(file, name).high + stream_flushes(file, name)[1] / 1e9
    return (way.bytes <= SMALL.value * calls and way.bytes <= SLOW.value * requests_s
        and requests_s >= CALL.value * calls)


def are_many(ways: Iterable[Way]) -> bool:
    return sum(one.calls for one in ways) >= MANY.value


def is_interleaved(way: Way) -> bool:
    """Whether ranks move pieces of one part of the file; of Ways a mask."""
    return (way.ranks > 1) & (way.interleaved > 1)


def effective_calls(file: File, name: str) -> int:
    """Requests at the file system: what goes through streams does so in pages."""
    way = way_of(file, name)
    made = file.requests(_LETTERS[name]) or way.calls
    return min(way.calls, max(1, made))


def stream_flushes(file: File, name: str) -> tuple[int, int]:
    """Calls and ns of flushes, and of seeks in streams that are hardly read, which write what a
    stream's buffer holds; under the layer they go no further than into its buffer."""
    if name != "write" or not file.on_streams("W"):
        return 0, 0
    is_output = file.on_streams("W") > READ_BACK * file.on_streams("R")
    return file.of((*_FLUSHES, *_SEEKS) if is_output else _FLUSHES)


def _requests(file: File, name: str) -> int:
    """Requests at the file system, with those of flushes."""
    return min(way_of(file, name).calls,
        effective_calls(file, name) + stream_flushes(file, name)[0])


def way_of(file: File | Files, name: str) -> Way:
    return file.read if name == "read" else file.write


def merged_calls(file: File, name: str, way: Way) -> int:
    """Calls that a buffer can merge into another one: not the first of each open, nor the read
    that finds the end of the file."""
    opens = max(1, file.of_class("O")[0])
    return max(0, way.calls - opens * (2 if name == "read" else 1))


def way_after(facts: Facts, file: File, name: str, block: int = BLOCK) -> Range:
    """Seconds of these calls under bufa, which passes on what is not in order. The program always
    waits for the first read of an opening or the last write, and may at each barrier."""
    way, calls, opens = way_of(file, name), effective_calls(file, name), file.of_class("O")[0]
    buffered = buffered_s(file, name)
    call_s = (way.seconds - buffered.low) / calls if calls else 0.0
    left = in_blocks(calls, way.bytes, call_s, block, facts.speeds(file.path, name))
    left += OF_A_CALL.times(calls) + buffered
    passed_s = (1 - min(1.0, file.in_order(way))) * way.seconds
    least_passed_s = 0.0 if _may_be_held(file, name, block) else passed_s
    begun = OF_AN_OPEN * opens + first_reads(file, name, way, block)
    awaited = min(calls, opens)
    if name == "write":
        left += OF_A_FILE.times(awaited)
    stopped = min(calls, file.of(_BARRIERS)[0]) if name == "write" else 0
    return Range(left.low + least_passed_s + awaited * call_s,
        left.high + passed_s + (begun + stopped) * call_s)


def _may_be_held(file: File, name: str, block: int) -> bool:
    """A file that fits in the buffers may be held until it is closed, in whichever order it is
    made; and so is read back from there what the program has written."""
    way, made = way_of(file, name), file.write
    is_own = name == "write" or (made.calls > 0 and way.bytes <= made.bytes
        and made.begin <= way.begin and way.end <= made.end)
    return is_own and made.span <= BUFFERS * block


def merged(facts: Facts, file: File, name: str, block: int, gathered: int = GATHERED) -> Range:
    """Seconds that a cache of all ranks saves on small calls: ranks of a block, `gathered` at most,
    wait for whoever moves it."""
    way = way_of(file, name)
    if not way.calls or not is_small(way):
        return NOTHING
    after = in_blocks(way.calls, way.bytes, way.call_s, block, facts.speeds(file.path, name))
    return saved(way.seconds, Range(after.low, after.high * min(max(way.ranks, 1), gathered)))


def buffered_s(file: File, name: str) -> Range:
    """Seconds of calls that buffers of streams serve, with a layer or without."""
    way = way_of(file, name)
    served = max(0, file.on_streams(_LETTERS[name]) - effective_calls(file, name))
    return OF_A_BUFFER.times(served).at_most(way.seconds)


def first_reads(file: File, name: str, way: Way, block: int = BLOCK) -> int:
    """Reads of streams that are smaller than blocks, as the layer does not know yet how far these
    go."""
    opens = max(1, file.of_class("O")[0])
    each = min(block, way.bytes / opens)
    if name != "read" or each <= FIRST_READ:
        return 0
    return opens * math.ceil(math.log2(each / FIRST_READ))


def flushed(file: File, name: str) -> Range:
    """Seconds of these that are saved."""
    return saved(stream_flushes(file, name)[1] / 1e9, NOTHING)


def _is_in_order(file: File | Files, way: Way) -> Any:
    """Whether a rank moves what it moves in order, and no other one does so between; of Files a
    mask."""
    return (file.in_order(way) >= IN_ORDER.value) & np.logical_not(is_interleaved(way))


def _may_be_small_on(files: Files, name: str) -> np.ndarray:
    """A mask of the files that may be _is_small_on(): on streams there are no more requests than
    calls, and these take no longer."""
    way = way_of(files, name)
    on_streams = ((files.on_streams(_LETTERS[name]) > 0) & (way.bytes <= SMALL.value * way.calls)
        & (way.bytes <= SLOW.value * way.seconds) & (way.seconds >= CALL.value))
    return is_small(way) | on_streams


def candidates(files: Files) -> np.ndarray:
    """A mask of the files that may have cured_ways()."""
    read, write = (_may_be_small_on(files, name) & _is_in_order(files, way_of(files, name))
        for name in _LETTERS)
    return read | write


def cured_ways(file: File) -> list[tuple[str, Way]]:
    """Directions that are to be cured here."""
    found: list[tuple[str, Way]] = []
    if is_left_alone(file):
        return found
    for name, way in (("read", file.read), ("write", file.write)):
        if not (_is_small_on(file, name) and _is_in_order(file, way)
                and merged_calls(file, name, way)):
            continue
        if name == "read" and way.ranks > 1 and way.bytes > SHARED.value * way.span:
            continue
        if name == "write" and not _is_long(file):
            continue
        found.append((name, way))
    return found


def _is_long(file: File) -> bool:
    """Whether an opening has enough writes, of all ranks on average."""
    opens = max(1, file.of_class("O")[0])
    return _requests(file, "write") >= (1 + LONG.value) * opens


def _part(facts: Facts, file: File, is_shared: bool) -> tuple[File, Range]:
    total = Range(0.0, 0.0)
    for name, way in cured_ways(file):
        if is_shared:
            total += merged(facts, file, name, BLOCK, 1)
        else:
            total += saved(way.seconds, way_after(facts, file, name), way.outlier_s)
        if not is_shared or way.ranks == 1:
            total += flushed(file, name)
    return file, total


def begun(parts: list[tuple[File, Range]]) -> list[tuple[File, Range]]:
    """With what writing behind takes once, which is counted on the first file that is written."""
    made = list(parts)
    for at, (file, range_) in enumerate(parts):
        if file.write.calls:
            once = OF_A_WRITER.times(max(1, file.write.ranks))
            low, high = range_.low - once.high, range_.high - once.low
            made[at] = file, Range(max(0.0, low), max(0.0, high))
            break
    return made


def _fewer(file: File, name: str, way: Way) -> int:
    """Requests that the file system gets no more."""
    calls = _requests(file, name)
    left = request_count(way.bytes, BLOCK) + first_reads(file, name, way)
    return max(0, min(merged_calls(file, name, way), calls - left))


def of_fortran(file: File) -> bool:
    """Whether Fortran statements make its calls: finding fortran-units."""
    return file.of(_STATEMENTS)[0] > 0


def merged_of(group: Group) -> int:
    """Calls of a group that a buffer merges into others."""
    return sum(merged_calls(file, *one) for file in group.files for one in cured_ways(file))


def buffer_rule(group: Group, shared: bool) -> Rule:
    """shared: files are open more than once at a time, which bufa bypasses."""
    return Rule(group.pattern, f"{'global' if shared else 'bufa'}:{BLOCK >> 20}MiB:{BUFFERS}")


def advice_on(facts: Facts, group: Group, finding: str,
        at_once: frozenset[str] = frozenset()) -> Advice:
    """at_once: paths of files that are open more than once at a time (frame/openings.py)."""
    shared = not at_once.isdisjoint(group.paths)
    ways = [one for file in group.files for one in cured_ways(file)]
    calls, size = sum(w.calls for _, w in ways), sum(w.bytes for _, w in ways)
    words = " and ".join(sorted({f"{name}s" for name, _ in ways}))
    flushes = [stream_flushes(file, name) for file in group.files for name, _ in cured_ways(file)]
    flushed_s = sum(ns for _, ns in flushes) / 1e9
    which = "flushes" if all(file.of(_FLUSHES)[0] for file in group.files) else "flushes and seeks"
    also = (f", and {number(sum(n for n, _ in flushes))} {which} {seconds(flushed_s)}"
        if flushed_s else "")
    return Advice(
        finding, group.what, group.paths,
        f"{number(calls)} {words} of {amount(size / max(calls, 1))} on average take "
        f"{seconds(sum(w.seconds for _, w in ways))}{also}{AT_ONCE if shared else ''}.",
        facts.saving(begun([_part(facts, one, shared) for one in group.files]),
            sum(_fewer(file, name, w) for file in group.files for name, w in cured_ways(file))),
        f"Move more with each call: a buffer of 1 MiB{fitting(group.files, _BUFFERS)}.",
        buffer_rule(group, shared),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    """Not on file systems of the node itself: there the kernel reads ahead and writes behind."""
    files = [one for one in facts.among(candidates(facts.files)) if not of_fortran(one)
        and cured_ways(one) and not facts.is_local(one.path)]
    found = [one for one in groups(facts, files) if merged_of(one) >= MANY.value]
    at_once = open_at_once(facts, [file for group in found for file in group.files])
    for group in found:
        yield advice_on(facts, group, "small-requests", at_once)


SMALL_REQUESTS = Finding(
    name="small-requests",
    asks="Does a rank move a file, in order, in many small pieces?",
    shrinks="I/O",
    limits=(MANY, SMALL, SLOW, CALL, IN_ORDER, SHARED, LONG),
    page="guide/advise.md",
    table="requests",
    cure="bufa",
    find=find,
)
