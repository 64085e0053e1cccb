# SPDX-License-Identifier: Apache-2.0
"""How fast storage, memory and network are: what `weir probe` measured of a file system, and what
is assumed of one that it did not measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weir.advise.frame.saving import SPREAD, Range, request_count

# Assumed, in bytes/s; each end of a range takes the value that makes it wider.
STORAGE_BYTES_PER_S = 100e6  # of one rank: a shared parallel file system on a busy day
COPY_BYTES_PER_S = 4e9  # of what a layer holds; bench/layers measures 3 to 6 GB/s
SLOW_COPY_BYTES_PER_S = 0.4e9  # the same on a node whose cores are all busy
NETWORK_BYTES_PER_S = 1e9  # between two nodes: 10 Gbit/s Ethernet
SHARED_RATE = 0.5  # of what one rank alone gets, where several were not measured
LEAST_SCALING = 0.25  # of the gain of ideal scaling: the file system may be the limit
_TRIAD_OF_COPY = 2  # bytes that the triad counts where a copy moves one: a read and a write


@dataclass(frozen=True)
class Probed:
    """What was measured of a file system and its node, in bytes/s. storage: of all ranks together
    in requests of 1 MiB, by direction and number of ranks; memory: the triad of all cores together,
    by their number; network: of large messages, by whether they go from node to node. measured_s:
    since 1970."""

    measured_s: float = 0.0
    storage: Mapping[tuple[str, int], float] = field(default_factory=dict)
    memory: Mapping[int, float] = field(default_factory=dict)
    network: Mapping[bool, float] = field(default_factory=dict)

    def of_ranks(self, way: str) -> dict[int, float]:
        """Of all ranks together, by their number."""
        return {ranks: rate for (one, ranks), rate in self.storage.items() if one == way}

    def together(self, way: str, ranks: int) -> float | None:
        """Of so many ranks together: between two measured numbers in proportion, beyond the largest
        as much as that."""
        return _between(self.of_ranks(way), ranks)


NOT_PROBED = Probed()


@dataclass(frozen=True)
class Speeds:
    """Bytes/s of one rank. storage: at least; copy: in memory, at most; slow_copy: at least;
    network: of what goes from node to node, at least."""

    storage: float = STORAGE_BYTES_PER_S
    copy: float = COPY_BYTES_PER_S
    slow_copy: float = SLOW_COPY_BYTES_PER_S
    network: float = NETWORK_BYTES_PER_S

    def copies(self, size: float) -> Range:
        """Seconds of so many bytes."""
        return Range(size / self.copy, size / self.slow_copy)


def speeds_of(known: Probed, way: str, ranks: int, ranks_of_node: int) -> Speeds:
    """ranks: that move bytes this way at the same time."""
    copy, slow_copy = COPY_BYTES_PER_S, SLOW_COPY_BYTES_PER_S
    if known.memory:
        cores = min(ranks_of_node, max(known.memory))
        copy = known.memory[min(known.memory)] / _TRIAD_OF_COPY
        slow_copy = min(copy, (_between(known.memory, cores) or 0) / _TRIAD_OF_COPY / ranks_of_node)
    return Speeds(_storage(known, way, ranks), copy, slow_copy,
        known.network.get(True, NETWORK_BYTES_PER_S))


def _storage(known: Probed, way: str, ranks: int) -> float:
    together = known.together(way, ranks)
    if together is None:
        return STORAGE_BYTES_PER_S
    if ranks > 1 and max(known.of_ranks(way)) == 1:
        return SHARED_RATE * together
    return together / ranks


def scaling(known: Probed, way: str, have: int, wanted: int) -> Range:
    """Share of its time that I/O becomes shorter by when `wanted` ranks do what `have` did."""
    ideal = 1 - have / wanted
    few, many = known.together(way, have), known.together(way, wanted)
    if few is None or many is None or max(known.of_ranks(way)) < wanted:
        return Range(LEAST_SCALING * ideal, ideal)
    share = max(0.0, 1 - few / many)
    return Range((1 - SPREAD) * share, (1 + SPREAD) * share).at_most(ideal)


def _between(known: Mapping[int, float], at: int) -> float | None:
    if not known:
        return None
    counts = sorted(known)
    return float(np.interp(at, counts, [known[one] for one in counts]))


def in_blocks(calls: int, size: int, call_s: float, block: int, speeds: Speeds) -> Range:
    """Time of what remains of calls that move `size` bytes when a layer makes requests of `block`
    bytes of them: a call of n bytes takes a fixed time and that of its bytes. call_s: what one call
    takes now. The least: all of it beside the program, which only copies. The most: one request
    after the other, each as long as a call now, and its bytes at the slowest rate, but never slower
    than the calls themselves were."""
    count = min(request_count(size, block), calls)
    now = size / (calls * call_s) if calls and call_s else 0.0
    copies = speeds.copies(size)
    high = count * call_s + size / max(speeds.storage, now) + copies.high
    return Range(copies.low, max(copies.low, high))
