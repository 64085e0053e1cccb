# SPDX-License-Identifier: Apache-2.0
"""What `weir advise` finds in programs whose calls are known, for the tests of findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wait_trace import WaitTrace

from weir.advise.advise import Report, advise
from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice
from weir.report import build

US, MS, S = 1_000, 1_000_000, 1_000_000_000
KIB, MIB = 1 << 10, 1 << 20

Program = Callable[[WaitTrace], None]


def advised(directory: Path, *programs: Program, ranks: int = 2, compute_s: float = 1,
        nodes: int = 1) -> Report:
    """Each program is a step of the run; all ranks compute at its end."""
    traces = []
    for number, program in enumerate(programs):
        trace = WaitTrace(ranks, nodes=nodes)
        trace.begin_ns = number * 100 * S
        trace.now = [trace.begin_ns] * ranks
        trace.barrier()
        program(trace)
        for rank in range(ranks):
            trace.compute(rank, int(compute_s * S))
        trace.barrier()
        traces.append(trace)
    return advise_on(directory, *traces)


def advise_on(directory: Path, *traces: WaitTrace) -> Report:
    """Of a run with these steps."""
    for number, trace in enumerate(traces):
        trace.write(directory / "run" / f"s{number}")
    return advise_run(directory / "run")


def advise_run(run: Path) -> Report:
    return advise(Facts(build(str(run))))


def names(report: Report) -> list[str]:
    return [one.finding for one in report.advices]


def the(report: Report, name: str) -> Advice:
    """The one finding of this name."""
    (one,) = [found for found in report.advices if found.finding == name]
    return one


def stream(count: int, size: int, us: int, file: str = "/scratch/an/out.{rank}", op: str = "pwrite",
        ranks: int | None = None) -> Program:
    """Each rank moves a file of its own from its beginning to its end."""

    def program(trace: WaitTrace) -> None:
        for rank in range(trace.ranks if ranks is None else ranks):
            path = file.format(rank=rank)
            trace.io(rank, 10 * US, path, "open")
            for at in range(count):
                trace.io(rank, us * US, path, op, size, at * size)
            trace.io(rank, 10 * US, path, "close")

    return program
