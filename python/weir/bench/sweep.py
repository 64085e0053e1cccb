# SPDX-License-Identifier: Apache-2.0
"""Every layer beside plain, over sizes of pieces, numbers of ranks and patterns.

Where it is the worst in requests, bytes, waits and time, and which cells exceed the limits.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from weir.bench._process import RunFailed
from weir.bench.lab import Lab, Run
from weir.rules.layers import kinds

PIECES = (8, 256, 4096, 65536, 1 << 20, 16 << 20)
RANKS = (1, 2, 8, 32, 64)
PATTERNS = ("contiguous", "interleaved", "strided", "modulo", "random")
WAYS = ("read", "write")
MEMBERS = "requests of members, a call"
# A layer is worse than plain in a cell where plain / layered requests are below the first and the
# layer makes more than the second beyond plain an opening; where it waits more often than the
# program calls; or where it moves more bytes than ALLOWED_BYTES says.
LEAST_REQUESTS, MOST_EXTRA, MOST_WAITS = 0.95, 4.0, 1.0
# Beyond twice those of plain: for the node, for each opening, and for each request saved. By layer;
# "": the others. global counts a request as 512 KiB divided by the openings, and may load 16 blocks
# of 1 MiB for the first opening and 2 for each further one in vain, on either side of none.
ALLOWED_BYTES = {"": (0, 64 << 10, 4 << 10), "global": (28 << 20, 4 << 20, 512 << 10)}
_BYTES_OF_RANK, _MOST_CALLS, _MOST_BYTES = 4 << 20, 512, 256 << 20


@dataclass(frozen=True)
class Case:
    """One program: ``count`` pieces by each rank. At most 512 calls a rank, 4 MiB (but two pieces)
    and 256 MiB in all (but one piece)."""

    way: str
    pattern: str
    piece: int
    ranks: int

    @property
    def count(self) -> int:
        least = 2 if 2 * self.piece * self.ranks <= _MOST_BYTES else 1
        return max(least, min(_MOST_CALLS, _BYTES_OF_RANK // self.piece, _MOST_BYTES // self.piece
            // self.ranks))

    @property
    def file_bytes(self) -> int:
        """Of a file that is read: it goes on behind the pieces."""
        return self.piece * self.count * self.ranks * 4

    def __str__(self) -> str:
        return f"{self.way} {self.pattern}, {self.ranks} x {self.count} x {self.piece:,} bytes"


@dataclass(frozen=True)
class Ratio:
    """Plain over layered: below 1 the layer makes more requests, or takes longer."""

    layer: str
    case: Case
    plain: Run
    layered: Run

    @property
    def requests(self) -> float:
        return self.plain["requests"] / max(1, self.layered["requests"])

    @property
    def extra(self) -> float:
        """Requests of each opening beyond those of plain."""
        return (self.layered["requests"] - self.plain["requests"]) / self.case.ranks

    @property
    def bytes(self) -> float:
        """Moved by the file system: layered over plain."""
        return self.layered["moved"] / max(1, self.plain["moved"])

    @property
    def waits(self) -> float:
        """For each call of the program."""
        return self.layered["waits"] / self.layered["calls"]

    @property
    def members(self) -> float:
        """Requests of the layer's own files, for each call of the program."""
        return self.layered["members"] / self.layered["calls"]

    @property
    def time(self) -> float:
        return self.plain["seconds"] / self.layered["seconds"]

    @property
    def worse(self) -> tuple[str, ...]:
        """In what the layer is worse than plain: requests, bytes, waits. Time is measured, not
        judged."""
        ranks = self.case.ranks
        node, opening, request = ALLOWED_BYTES.get(self.layer, ALLOWED_BYTES[""])
        if self.layer == "global":
            request //= ranks
        saved = max(0, self.plain["requests"] - self.layered["requests"])
        most = 2 * self.plain["moved"] + node + opening * ranks + request * saved
        found = {
            "requests": self.requests < LEAST_REQUESTS and self.extra > MOST_EXTRA,
            "bytes": self.layered["moved"] > most,
            "waits": self.waits > MOST_WAITS,
        }
        return tuple(name for name, exceeds in found.items() if exceeds)


def cases(pieces: Sequence[int] = PIECES, ranks: Sequence[int] = RANKS,
        patterns: Sequence[str] = PATTERNS) -> Iterator[Case]:
    for way, pattern, piece, number in product(WAYS, patterns, pieces, ranks):
        yield Case(way, pattern, piece, number)


def quick() -> Iterator[Case]:
    """A few cases of each kind, and of pieces that are larger than blocks."""
    yield from cases((256, 65536), (1, 8), ("interleaved", "random"))
    yield from cases((1 << 20, 16 << 20), (2,), ("random",))


def layers() -> tuple[str, ...]:
    """Layers whose declaration has a stack for the sweep; {0} in it is the mounted directory."""
    return tuple(kind.name for kind in kinds().values() if kind.sweep)


def measure(lab: Lab, case: Case, layers: Sequence[str], options: str = "") -> list[Ratio]:
    """Plain once, then each layer; what is written must be the same to the byte. Raises RunFailed.
    options: of all these layers, beside those of their declarations, such as `:wait_ms=100`.

    A layer with one opening a file is left out where there are several ranks."""
    backing = lab.backing / "sweep.dat"
    for name in ("s1", "s2"):
        (lab.backing / name).mkdir(exist_ok=True)

    def moved(layer: str | None) -> Run:
        stack = None if layer is None else (
            kinds()[layer].sweep.format(lab.directory) + options)
        backing.unlink(missing_ok=True)
        if case.way == "read":
            stored = stack if layer and kinds()[layer].transforms else None
            lab.extend("sweep.dat", case.file_bytes, stored)
        found = lab.sweep(lab.directory / "sweep.dat", case.way, case.pattern, case.piece,
            case.count, case.ranks, stack=stack)
        for name in ("s1", "s2"):
            shutil.rmtree(lab.backing / name)
            (lab.backing / name).mkdir()
        return found

    def digest() -> str:
        with open(backing, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if case.way == "write" else ""

    plain, expected = moved(None), digest()
    found = []
    for layer in layers:
        if kinds()[layer].one_opening and case.ranks > 1:
            continue
        found.append(Ratio(layer, case, plain, moved(layer)))
        if not kinds()[layer].transforms and digest() != expected:
            raise RunFailed(f"{layer}: {case}: other bytes than plain")
    backing.unlink(missing_ok=True)
    return found


FIGURES: tuple[tuple[str, Callable[[Ratio], float], int], ...] = (  # with the sign of what is worst
    ("requests, plain / layered", lambda one: one.requests, 1),
    ("more requests, an opening", lambda one: one.extra, -1),
    ("bytes, layered / plain", lambda one: one.bytes, -1),
    ("waits, a call", lambda one: one.waits, -1),
    (MEMBERS, lambda one: one.members, -1),
    ("time, plain / layered", lambda one: one.time, 1),
)


def text(found: Sequence[Ratio]) -> str:
    """Per layer the worst of each figure and its case, then the cells in which a layer is worse
    than plain.

    Requests of members only where a layer has files of its own."""
    rows = [f"{'layer':<8}{'cases':>6}  {'':<28}{'figure':>8}  where"]
    for layer in dict.fromkeys(one.layer for one in found):
        own = [one for one in found if one.layer == layer]
        head = f"{layer:<8}{len(own):>6}"
        for title, figure, sign in FIGURES:
            one = min(own, key=lambda one: sign * figure(one))
            if title == MEMBERS and not figure(one):
                continue
            rows.append(f"{head:<14}  {title:<28}{figure(one):>8.2f}  {one.case}")
            head = ""
    worse = [one for one in found if one.worse]
    rows.append(f"worse than plain: {len(worse)} of {len(found)} cells")
    rows += [f"  {one.layer:<8}{', '.join(one.worse):<18}{one.case}" for one in worse]
    return "\n".join(rows)


def as_data(found: Sequence[Ratio]) -> dict[str, object]:
    """Every cell: its case, what plain and the layer did, the figures, and in what it is worse."""
    cells = []
    for one in found:
        figures = {title: figure(one) for title, figure, _ in FIGURES}
        cells.append(
            {
                "layer": one.layer,
                "case": asdict(one.case),
                "plain": one.plain,
                "layered": one.layered,
                "figures": figures,
                "worse": list(one.worse),
            }
        )
    return {"cells": cells, "worse": sum(1 for one in found if one.worse)}
