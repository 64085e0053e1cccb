# SPDX-License-Identifier: Apache-2.0
"""Every layer beside plain, over sizes of pieces, numbers of ranks and patterns: where it is the worst, in requests and in time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from weir.bench._process import RunFailed
from weir.bench.lab import Lab, Run

PIECES = (8, 104, 256, 4096, 65536, 1 << 20, 16 << 20)
RANKS = (1, 4, 16, 64)
PATTERNS = ("sequential", "interleaved", "strided", "modulo", "random")
WAYS = ("read", "write")
STACKS = {"bufa": "bufa:1MiB:8", "global": "global:1MiB:4", "gather": "gather:1MiB:16", "keep": "keep"}
_BYTES_OF_RANK, _MOST_CALLS, _MOST_BYTES = 4 << 20, 512, 256 << 20


@dataclass(frozen=True)
class Case:
    """One program: ``count`` pieces by each rank. At most 512 calls a rank, 4 MiB (but two pieces at least) and 256 MiB in all."""

    way: str
    pattern: str
    piece: int
    ranks: int

    @property
    def count(self) -> int:
        return max(2, min(_MOST_CALLS, _BYTES_OF_RANK // self.piece, _MOST_BYTES // self.piece // self.ranks))

    def __str__(self) -> str:
        return f"{self.way} {self.pattern}, {self.ranks} x {self.count} x {self.piece:,} bytes"


@dataclass(frozen=True)
class Ratio:
    """Plain over layered: below 1 the layer asks for more, or takes longer."""

    layer: str
    case: Case
    plain: Run
    layered: Run

    @property
    def requests(self) -> float:
        return self.plain["requests"] / max(1, self.layered["requests"])

    @property
    def time(self) -> float:
        return self.plain["seconds"] / self.layered["seconds"]


def cases(pieces: Sequence[int] = PIECES, ranks: Sequence[int] = RANKS) -> Iterator[Case]:
    for way, pattern, piece, number in product(WAYS, PATTERNS, pieces, ranks):
        if piece * number * 2 <= _MOST_BYTES:
            yield Case(way, pattern, piece, number)


def measure(lab: Lab, case: Case, layers: Sequence[str]) -> list[Ratio]:
    """Plain once, then each layer; what is written must be the same to the byte. Raises RunFailed."""
    backing = lab.backing / "sweep.dat"

    def moved(stack: str | None) -> Run:
        if case.way == "write":
            backing.unlink(missing_ok=True)
        else:
            backing.touch()
            with open(backing, "r+b") as file:
                file.truncate(case.piece * case.count * case.ranks * 4)
        return lab.sweep(lab.folder / "sweep.dat", case.way, case.pattern, case.piece, case.count, case.ranks, stack=stack)

    def digest() -> str:
        with open(backing, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if case.way == "write" else ""

    plain, expected = moved(None), digest()
    found = []
    for layer in layers:
        found.append(Ratio(layer, case, plain, moved(STACKS[layer])))
        if digest() != expected:
            raise RunFailed(f"{layer}: {case}: other bytes than plain")
    return found


def text(found: Sequence[Ratio]) -> str:
    """Per layer the lowest ratios, and where."""
    rows = [f"{'layer':<8}{'cases':>6}{'requests':>10}  {'where':<52}{'time':>7}  where"]
    for layer in dict.fromkeys(one.layer for one in found):
        own = [one for one in found if one.layer == layer]
        asks, takes = min(own, key=lambda one: one.requests), min(own, key=lambda one: one.time)
        rows.append(f"{layer:<8}{len(own):>6}{asks.requests:>10.2f}  {str(asks.case):<52}{takes.time:>7.2f}  {takes.case}")
    return "\n".join(rows)
