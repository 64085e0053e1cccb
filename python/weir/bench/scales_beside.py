# SPDX-License-Identifier: Apache-2.0
"""What ``weir bench scales`` measures beside its rates: time by routine, from weir's own trace;
what tracing costs; ranks that compute beside the output, with several RMA windows; and nodes that
one machine stands for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import weir_command
from weir.bench._scratch import remove
from weir.bench.olam import LUSTRE
from weir.bench.olam_places import open_place
from weir.bench.scales import BY_NAME, DEFAULT, Bench, Method, Run, digests

OUTPUT = "output"  # the phase of the program that is all of it
# Seconds of each routine by rank, within the phase output. A phase counts as a routine: its marks
# are added up, begins as negative. What lies within another record is that one's.
_SQL = """
WITH timed AS (
  SELECT *, min(start_ns) FILTER (op = 'phase_begin' AND file = 'phase:output') OVER (
      PARTITION BY rank) AS first_ns,
    max(start_ns) FILTER (op = 'phase_end' AND file = 'phase:output') OVER (
      PARTITION BY rank) AS last_ns
  FROM events WHERE rank >= 0 AND NOT launcher AND NOT nested AND NOT excluded
)
SELECT rank, CASE
    WHEN op IN ('phase_begin', 'phase_end') THEN replace(file, 'phase:', '')
    WHEN routine = 'MPI_Test' THEN 'MPI_Wait'
    WHEN routine = 'MPI_Iprobe' THEN 'MPI_Probe'
    ELSE coalesce(routine, op) END AS routine,
  sum(CASE op WHEN 'phase_begin' THEN -start_ns WHEN 'phase_end' THEN start_ns
    ELSE duration_ns END) / 1e9 AS seconds
FROM timed WHERE start_ns BETWEEN first_ns AND last_ns GROUP BY ALL
"""


@dataclass(frozen=True)
class Line:
    """A routine, over all PEs that were in it."""

    routine: str
    seconds: float
    pes: int


@dataclass(frozen=True)
class Profile:
    """lines: greatest first; total: of the phase output, all PEs."""

    method: Method
    pes: int
    total: Line
    lines: tuple[Line, ...]
    error: str = ""


def profile(bench: Bench, method: Method, pes: int, directory: Path) -> Profile:
    """Of one traced run, with encoding. Raises RunFailed."""
    def traced() -> list[dict]:
        trace = directory / "trace"
        remove(trace)
        bench.method(method, pes, directory, trace=trace)
        text = run(weir_command("query", trace, _SQL, "--format", "json"), bench.environment,
            directory, bench.options.timeout_s)
        remove(trace)
        return json.loads(text)

    bench.note(f"profile: {method.title}, {pes} PEs")
    return profile_of(method, pes, bench.journal.once(f"profile, {method.name}, {pes} PEs", traced))


def profile_of(method: Method, pes: int, rows: list[dict]) -> Profile:
    """From seconds by rank and routine."""
    seconds: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        seconds[row["routine"]][row["rank"]] = row["seconds"]
    if OUTPUT not in seconds:
        raise RunFailed(f"{method.title}: the trace has no phase {OUTPUT}")
    lines = [Line(routine, sum(by_rank.values()), len(by_rank))
        for routine, by_rank in seconds.items()]
    total = next(line for line in lines if line.routine == OUTPUT)
    shown = [line for line in lines if line is not total and line.seconds > 0.005 * total.seconds]
    return Profile(method, pes, total, tuple(sorted(shown, key=lambda line: -line.seconds)))


def tracing(bench: Bench, directory: Path, repeat: int) -> Iterator[float]:
    """What tracing adds to the processor seconds of the default writer's run, as a share, by pair
    of runs. Raises RunFailed."""
    method, pes = BY_NAME[DEFAULT], 2
    for repetition in range(repeat):
        bench.note(f"tracing, {repetition + 1} of {repeat}")
        plain = bench.journal.once(f"untraced, {repetition}",
            lambda: bench.method(method, pes, directory))["cpu_s"]
        trace = directory / "trace"
        remove(trace)
        traced = bench.journal.once(f"traced, {repetition}",
            lambda: bench.method(method, pes, directory, trace=trace))["cpu_s"]  # noqa: B023
        remove(trace)
        yield traced / plain - 1


@dataclass(frozen=True)
class Windows:
    """Ranks that compute beside the default writer. slower: their computing, against the same
    without output; None for a run without output."""

    windows: int
    elapsed_s: float
    gather_s: float
    slower: float


def windows(bench: Bench, directory: Path, counts: tuple[int, ...] = (1, 2, 4, 8),
        io_ranks: int = 1, model: int = 1) -> list[Windows]:
    """A model bound by memory, and collectors that fetch from its windows. Raises RunFailed."""
    beside = ("--model", model, "--sweep-mb", 256, "--sweeps", 8)
    total = io_ranks + model
    without: list[float] = []
    found: dict[int, list[Run]] = {count: [] for count in counts}
    least = replace(bench.options, variables=1, nlat=2)
    for repetition in range(bench.options.repeat):
        bench.note(f"windows, {repetition + 1} of {bench.options.repeat}")
        given, bench.options = bench.options, least
        try:
            without.append(bench.journal.once(f"no output, {repetition}",
                partial(bench.call, DEFAULT, "pwrite", total, directory, *beside))["compute_s"])
        finally:
            bench.options = given
        for count in counts:
            found[count].append(bench.journal.once(f"{count} windows, {repetition}",
                partial(bench.call, DEFAULT, "pwrite", total, directory, *beside, "--windows",
                    count)))
    return [
        Windows(count, min(one["elapsed_s"] for one in runs), min(one["gather_s"] for one in runs),
            min(one["compute_s"] for one in runs) / min(without) - 1)
        for count, runs in found.items()
    ]


@dataclass(frozen=True)
class NodeRow:
    """A method with its PEs on several nodes; requests: that the file system served."""

    method: Method
    pes: int
    nodes: int
    mb_s: float = 0
    requests: float = 0
    error: str = ""


def on_nodes(bench: Bench, directory: Path, pes: int, counts: tuple[int, ...]) -> Iterator[NodeRow]:
    """Each method on nodes with a mount of one file system each; messages are compared."""
    for nodes in counts:
        for name in bench.options.only:
            method = BY_NAME[name]
            if method.is_single:
                continue
            if method.needs_locks:
                yield NodeRow(method, pes, nodes, error="left out: its shared pointer is a file "
                    "with locks, and locks of the test file system are those of a mount")
                continue
            bench.note(f"{nodes} nodes: {method.title}")
            try:
                mb_s, requests = bench.journal.once(f"{nodes} nodes, {method.name}",
                    partial(_on_nodes, bench, directory, method, pes, nodes))
                yield NodeRow(method, pes, nodes, mb_s, requests)
            except RunFailed as error:
                yield NodeRow(method, pes, nodes, error=str(error))


def _on_nodes(bench: Bench, directory: Path, method: Method, pes: int,
        nodes: int) -> tuple[float, float]:
    writers = method.writers(pes) if method.writer == "posix" else 1
    arguments = ["--writer", method.writer, "--io", method.io, "--writers", writers,
        *bench.sizes()]
    with open_place(directory, directory, LUSTRE, nodes) as place:
        launcher, *command = place.command(bench.program, arguments)
        line = bench.mpi.command(pes, Path(launcher), command)
        environment = {**bench.environment, "WEIR_NODE_RANKS": str(-(-pes // nodes))}
        found = numbers(run(line, environment, directory, bench.options.timeout_s), "echam")
        requests = place.counted()["requests"]
        if digests(place.backings[0]) != bench.expected(directory):
            raise RunFailed(f"{method.title}: other messages than ecCodes alone")
    return found["bytes"] / found["elapsed_s"] / 1e6, requests
