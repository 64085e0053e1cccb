# SPDX-License-Identifier: Apache-2.0
"""What ranks on one node do to each other: to the order of their requests, and to memory."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

from weir.bench._process import numbers, run
from weir.bench._scratch import scratch
from weir.bench.olam import LUSTRE, Bench, Configuration
from weir.bench.olam_places import open_place
from weir.bench.olam_techniques import Found, techniques
from weir.report.frame.build import build
from weir.report.interleaving.compute import COUNTS, interleaving_of
from weir.scaling.compute import STOP_GAIN

# Larger than caches; as many bytes for any number of ranks.
STATE_MB, SWEEPS = 384, 20
GROUPS = {"maps": "*.map", "plots": "plot.*", "results": "result.*", "history": "history.*",
    "all files": "*"}


@dataclass(frozen=True)
class Order:
    """Calls on a group of files, on all nodes together: those that begin where the one before of
    the same rank, and of the same node, ended."""

    group: str
    ranks: int
    nodes: int
    calls: int
    of_rank: int
    of_node: int


def beside(bench: Bench) -> tuple[list[Order], list[Rate], list[Found]]:
    """What is measured beside the curves, as far as it is asked for. Raises RunFailed."""
    only = bench.options.only
    with scratch(bench.options.directory) as place:
        return (interleaving(bench, place) if "interleaving" in only else [],
            memory(bench, place) if "memory" in only else [],
            list(techniques(bench, place)) if "techniques" in only else [])


def interleaving(bench: Bench, place: Path) -> list[Order]:
    """Of one traced run with all ranks on a node, and one with a rank on each. Raises RunFailed."""
    ranks = max(bench.options.ranks)
    found = []
    for nodes in (1, bench.most_nodes()):
        with open_place(place, place, LUSTRE, nodes) as opened:
            bench.set_up(opened)
            trace = place / "trace"
            bench.call(Configuration("traced", "Traced", LUSTRE), opened, ranks, -(-ranks // nodes),
                [*bench.sizes(), *bench.work()], trace)
            rows = [row for row in interleaving_of(build(trace)) if row["ranks"]]
            shutil.rmtree(trace)
        for group, pattern in GROUPS.items():
            counts: Counter[str] = Counter()
            for row in rows:
                if fnmatch(os.path.basename(row["file"]), pattern):
                    counts.update({key: row[key] for key in COUNTS})
            found.append(Order(group, ranks, nodes, counts["calls"], counts["of_rank"],
                counts["of_node"]))
    return found


@dataclass(frozen=True)
class Rate:
    """Of 8exec on a number of cores of this machine; gain: of what the cores that were added could
    at best bring, None for the first."""

    cores: int
    gb_s: float
    gain: float | None


def memory(bench: Bench, place: Path) -> list[Rate]:
    """8exec alone, streaming through memory. Raises RunFailed."""
    sizes = ["--input-mb", 0, "--plot-kb", 0, "--result-kb", 0, "--history-mb", 0]
    run(bench.mpi.command(1, bench.program, ["--setup", *sizes]), bench.environment, place,
        bench.options.timeout_s)
    found: list[Rate] = []
    for cores in _counts(len(os.sched_getaffinity(0))):
        rates = []
        for repetition in range(bench.options.repeat):
            bench.note(f"8exec on {cores} cores, {repetition + 1} of {bench.options.repeat}")
            command = bench.mpi.command(cores, bench.program, [*sizes, "--state-mb", STATE_MB,
                "--sweeps", SWEEPS])
            text = run(command, bench.environment, place, bench.options.timeout_s)
            result = numbers(text, "olam-memory")
            rates.append(result["bytes"] / result["seconds"] / 1e9)
        rate, before = median(rates), found[-1] if found else None
        gain = None if before is None else (rate / before.gb_s - 1) / (cores / before.cores - 1)
        found.append(Rate(cores, rate, gain))
    return found


def best_cores(rates: list[Rate]) -> int:
    """The cores of a node beyond which more gain too little: where 8exec stops scaling."""
    for before, after in zip(rates, rates[1:]):
        if after.gain is not None and after.gain < STOP_GAIN:
            return before.cores
    return rates[-1].cores


def _counts(cores: int) -> list[int]:
    """1, 2, 4, ... and all."""
    return sorted({cores, *(1 << power for power in range(cores.bit_length())
        if 1 << power <= cores)})
