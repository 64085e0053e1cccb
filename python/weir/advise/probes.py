# SPDX-License-Identifier: Apache-2.0
"""What `weir probe` has kept of the file systems of this node, for estimates; and which rates of an
answer were measured and which are assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice
from weir.advise.frame.speeds import Probed, Speeds
from weir.probe.cache import known
from weir.report.frame.amounts import amount
from weir.report.frame.programs import one_of

LARGE = 1 << 20  # bytes of the requests that estimates take for large ones


def probes() -> dict[str, Probed]:
    """By mount point."""
    return {one["mount"]["point"]: probed(one) for one in known()}


def probed(data: dict[str, Any]) -> Probed:
    """Of what `weir probe --json` prints: of as many ranks the figures of the most nodes."""
    parallel = sorted(data.get("parallel", ()), key=lambda one: one["nodes"])
    rates = [*data["rates"], *(rate for one in parallel for rate in one["rates"])]
    return Probed(
        data["measured_s"],
        {(one["way"], one["processes"]): float(one["bytes_per_s"]) for one in rates
            if one["request_bytes"] == LARGE and not one["from_cache"]},
        {one["cores"]: float(one["bytes_per_s"]) for one in data.get("memory", ())},
        {one["distant"]: float(one["messages"][-1]["bytes_per_s"]) for one in parallel},
    )  # fmt: skip


@dataclass(frozen=True)
class Basis:
    """One rate that estimates on files of a file system take. what: of which one; is_measured:
    by `weir probe`, else it is assumed."""

    file_system: str
    what: str
    bytes_per_s: float
    is_measured: bool


def bases(facts: Facts, advices: Sequence[Advice]) -> list[Basis]:
    """Of the file systems whose files the advices are about."""
    points = {facts.mount(one.paths[0]).point: one.paths[0] for one in advices if one.paths}
    return [basis for point, path in points.items() for basis in _of(facts, point, path)]


def _of(facts: Facts, point: str, path: str) -> Iterator[Basis]:
    known = facts.probed(path)
    speeds: Speeds | None = None
    for way in ("read", "write"):
        speeds = facts.speeds(path, way)
        several = f"each of {facts.movers} ranks"
        whose = several if facts.movers > 1 else f"one {one_of(facts.report)}"
        yield Basis(point, f"{way}s of {whose}", speeds.storage, bool(known.of_ranks(way)))
    assert speeds is not None
    for end, rate in (("slowest", speeds.slow_copy), ("fastest", speeds.copy)):
        yield Basis(point, f"{end} copies in memory", rate, bool(known.memory))
    if facts.nodes > 1:
        yield Basis(point, "messages between nodes", speeds.network, True in known.network)


def basis_json(facts: Facts, advices: Sequence[Advice]) -> list[dict[str, Any]]:
    return [asdict(one) for one in bases(facts, advices)]


def basis_texts(facts: Facts, advices: Sequence[Advice]) -> Iterator[str]:
    """A sentence for each file system: which rates were measured, and when; which are assumed."""
    every = bases(facts, advices)
    for point in dict.fromkeys(one.file_system for one in every):
        measured, assumed = ([one for one in every if one.file_system == point
            and one.is_measured == which] for which in (True, False))
        parts = [_measured(facts.probes[point], measured)] if measured else []
        if assumed:
            how = "" if measured else f" (weir probe {point} measures them)"
            parts.append(f"assumed{how}: {_listed(assumed)}")
        yield f"Rates for estimates on {point}: {'; '.join(parts)}."


def _measured(known: Probed, every: Iterable[Basis]) -> str:
    when = datetime.fromtimestamp(known.measured_s, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return f"measured by weir probe, {when}: {_listed(every)}"


def _listed(every: Iterable[Basis]) -> str:
    return ", ".join(f"{one.what} {amount(one.bytes_per_s)}/s" for one in every)
