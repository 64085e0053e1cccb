#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What questions to a run cost as the run grows, in events and in ranks: wall and CPU seconds and
peak memory at 1, 10, 100, 200 million events, and whether that is linear.

    python bench/scale.py [--events 1,10,100,200] [--ranks 4,1024,16384] [--directory DIR] [--keep]
    [--repeat 1] [--only report,union,...] [--workers N]

The run: one step of 4 ranks on as many nodes, each with 2 threads in I/O and its own and common
files (the events of bench/reading.py), and a barrier of all ranks for each 2,000 events. More
ranks: 128 on each node; each rank has a file of its own and uses 16 of the common ones in turn,
and meets the others in a barrier for each 100 of its events. Each question is a process of its
own, interpreter and imports included; the traces (34 bytes an event) are in the page cache as far
as it goes. Peak memory is that of the largest process, mapped pages that are resident included.
`dask` is `report` read by the workers of `weir report --dask local`; its answer has to be that of
`report`: exit status 1 when not.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from reading import FILES, NS_PER_TICK, RANKS, SEED, THREADS, synthetic

EVENTS_PER_BARRIER = 2000
BARRIER_TICKS = 760_000  # in which 8 threads make some 2,000 of these events
RANKS_A_NODE = 128  # of a run of more ranks than bench/reading.py has
EVENTS_OF_RANK_PER_BARRIER = 100
FILES_OF_RANK = 16  # common ones
SYNCS = 3  # barriers of MPI_Init, and of MPI_Finalize, by which clocks are aligned
STEP = "main"
QUERY = "SELECT rank, sum(bytes) AS moved FROM io GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
QUESTIONS = {
    "report": "weir report --json",
    "union": "exact active time",
    "time": "I/O over time",
    "waits": "waits, critical path, replay",
    "html": "weir report --html",
    "query": "weir query, a sum by rank",
    "dask": "weir report --json --dask",
}


class Cost(NamedTuple):
    """Of one process and those that it started. rss: bytes, of the largest of them; answer: a
    digest of what it printed."""

    wall: float
    cpu: float
    rss: int
    answer: str
    printed: int  # bytes


def write_run(run: Path, events: int, ranks: int) -> None:
    (run / STEP).mkdir(parents=True)
    if ranks == RANKS:
        write_few(run, events)
        return
    nodes = -(-ranks // RANKS_A_NODE)
    for node in range(nodes):
        of_node = range(node * RANKS_A_NODE, min((node + 1) * RANKS_A_NODE, ranks))
        write_node(run, node, of_node, max(events // ranks, 1), ranks)


def write_node(run: Path, node: int, of_node: range, events: int, ranks: int) -> None:
    """Ranks one after the other, each with so many events; the node's clock is `node` us ahead."""
    from weir.trace._synthetic import TraceWriter, mpi, records, sync
    from weir.trace.ops import mpi_routines, op_named

    kinds = np.array([op_named(one).value for one in ("read", "fread", "write", "fwrite", "lseek")])
    barrier = next(value for value, name in mpi_routines().items() if name == "MPI_Barrier")
    per_barrier, gap = EVENTS_OF_RANK_PER_BARRIER, 3000
    interval = per_barrier * gap + 2 * 10**5
    barriers = -(-events // per_barrier)
    last = (barriers + 2) * interval
    with TraceWriter(run / STEP / f"node{node:04d}.weir", f"node{node:04d}",
            ns_per_tick=NS_PER_TICK) as writer:
        created = writer.created_ticks + round(1000 * node / NS_PER_TICK)
        end = created + last
        for rank in of_node:
            random = np.random.default_rng([SEED, rank])
            process = writer.process(1000 + rank, rank, ranks, last_ticks=end, end_ticks=end,
                last_mono_ns=writer.mono_ns(end))
            of_file = [process.name(f"/scratch/an/run/rank.{rank:06d}")]
            of_file += [process.name(f"/scratch/an/run/file.{number:04d}")
                for number in random.integers(0, FILES, FILES_OF_RANK)]
            at = np.arange(events)
            starts = interval + at // per_barrier * interval + at % per_barrier * gap
            starts = created + starts + random.integers(0, 500, events)
            for thread in range(THREADS):
                its = np.flatnonzero(at % THREADS == thread)
                process.events(records(
                    kinds[random.integers(0, len(kinds), len(its))], starts[its],
                    random.integers(20, 2000, len(its)),
                    file=np.array(of_file)[its // 50 % len(of_file)],
                    size=1 << random.integers(0, 22, len(its)), offset=its * 4096,
                ), thread=thread + 1)
            left = created + (np.arange(barriers) + 2) * interval - 10**4
            early = random.integers(0, 20_000, barriers)
            meets = mpi("MPI_collective", left - early, early + 500, barrier,
                file=process.name(f"mpi:world:{ranks}"), offset=np.arange(barriers))
            marks = [
                sync(created + 1000 * number + (last - 10**4 if number > SYNCS else 0)
                    + int(random.integers(0, 100)), number, ranks)
                for number in range(1, 2 * SYNCS + 1)
            ]
            process.events([*marks[:SYNCS], meets, *marks[SYNCS:]], thread=THREADS + 1)


def write_few(run: Path, events: int) -> None:
    """Chunk by chunk: writing needs little memory."""
    from weir.trace._synthetic import ProcessWriter, TraceWriter, records

    directory = run / STEP
    with ExitStack() as stack:
        writers = [stack.enter_context(TraceWriter(directory / f"node{rank}.weir", f"node{rank}",
            ns_per_tick=NS_PER_TICK)) for rank in range(RANKS)]
        ranks: list[ProcessWriter] = [writer.process(100 + rank, rank, RANKS)
            for rank, writer in enumerate(writers)]
        for process in ranks:
            for number in range(FILES):
                process.name(f"/scratch/an/run/file.{number:04d}")
        last = 0
        for made in synthetic(events):
            starts = writers[made.rank].created_ticks + made.starts
            ranks[made.rank].events(records(made.ops, starts, made.lengths, file=made.files,
                size=made.sizes), thread=made.thread + 1)
            last = max(last, int(made.starts[-1] + made.lengths[-1]))
        for rank, (writer, process) in enumerate(zip(writers, ranks)):
            _write_barriers(process, writer.created_ticks, rank,
                max(events // EVENTS_PER_BARRIER, 1))
            end = writer.created_ticks + last
            process.fields |= {"last_ticks": end, "end_ticks": end,
                "last_mono_ns": writer.mono_ns(end)}


def _write_barriers(process, created_ticks: int, rank: int, count: int) -> None:
    """Ranks come within 20,000 ticks of one another and leave together."""
    from weir.trace._synthetic import mpi
    from weir.trace.ops import mpi_routines

    barrier = next(value for value, name in mpi_routines().items() if name == "MPI_Barrier")
    early = np.random.default_rng(SEED + rank).integers(0, 20_000, count)
    number = np.arange(count)
    starts = created_ticks + (number + 1) * BARRIER_TICKS - early
    process.events(mpi("MPI_collective", starts, early + 500, barrier,
        file=process.name(f"mpi:world:{RANKS}"), offset=number), thread=THREADS + 1)


def command_of(question: str, run: Path, workers: int) -> list[str]:
    weir = [sys.executable, "-m", "weir", "report", str(run)]
    return {
        "report": [*weir, "--json"],
        "html": [*weir, "--html", str(run / "page.html")],
        "query": [sys.executable, "-m", "weir", "query", str(run), QUERY],
        "dask": [sys.executable, __file__, "--ask", "dask", str(run), str(workers)],
    }.get(question, [sys.executable, __file__, "--ask", question, str(run), str(workers)])


def ask(question: str, run: str, workers: int) -> None:
    """One question as a program asks it; prints the answer."""
    if question == "dask":
        _ask_dask(run, workers)
        return
    from weir.analysis.active import active_time
    from weir.report import build
    from weir.report.timeline.compute import sums, timeline
    from weir.report.timeline.page import span_of
    from weir.report.waits.summary import synchronisation_of

    [step] = build(run).steps
    if question == "union":
        print(active_time(step.data.files, step.data.lines))
    elif question == "time":
        made = timeline([span_of(step)])
        assert made is not None
        print({name: column.tolist() for name, column in sums(made.by_lane).items()})
    else:
        waits = synchronisation_of(step).waits
        assert waits is not None
        print(waits.collectives, waits.waiting_ns, waits.waited_ns, waits.path_ns,
            waits.critical_ns)


def _ask_dask(run: str, workers: int) -> None:
    """As `weir report --json --dask local` does, with so many workers."""
    from weir import cluster
    from weir.cli import main

    connect = cluster.connect
    cluster.connect = lambda where: connect(where, workers=workers or None)
    sys.argv[1:] = ["report", run, "--json", "--dask", "local"]
    sys.exit(main())


def cost_of(command: list[str]) -> Cost:
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(
                f"{' '.join(command)} ended with status "
                f"{process.returncode}\n{errors.read().decode(errors='replace')}")
        out.seek(0)
        answer = hashlib.file_digest(out, "sha256").hexdigest()
        printed = out.seek(0, os.SEEK_END)
        if "--html" in command:
            printed = os.path.getsize(command[-1])
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, answer, printed)


def best(question: str, run: Path, repeat: int, workers: int) -> Cost:
    """The one with the least CPU seconds."""
    return min((cost_of(command_of(question, run, workers)) for _ in range(repeat)),
        key=lambda one: one.cpu)


def measure(events: int, ranks: int, directory: Path, questions: Iterable[str],
        options: argparse.Namespace) -> dict[str, Cost]:
    run = directory / f"run-{events}-{ranks}"
    if not run.exists():
        subprocess.run([sys.executable, __file__, "--write", str(run), str(events), str(ranks)],
            check=True)
    size = sum(path.stat().st_size for path in (run / STEP).glob("*.weir"))
    for path in (run / STEP).glob("*.weir"):  # into the page cache
        with open(path, "rb") as stream:
            while stream.read(1 << 24):
                pass
    print(f"\n{ranks} ranks, {events / 1e6:g} M events, {size / 1e6:.0f} MB", flush=True)
    found = {}
    for question in questions:
        one = found[question] = best(question, run, options.repeat, options.workers)
        rates = f"{one.wall / events * 1e9:8.0f} {one.cpu / events * 1e9:8.0f}"
        print(f"  {QUESTIONS[question]:26} {one.wall:8.2f} {one.cpu:8.2f} {rates} "
              f"{one.rss / 1e6:8.0f} {one.printed / 1e6:9.3f}", flush=True)
    if not options.keep:
        shutil.rmtree(run)
    return found


def linearity(by_events: dict[int, dict[str, Cost]]) -> None:
    """CPU seconds from each size to the next by the events added: a constant start, imports above
    all, is no part of it."""
    sizes = sorted(by_events)
    if len(sizes) < 2:
        return
    print("\nCPU ns for each event more, and MB more")
    print(f"  {'':26}" + "".join(f"{f'{low / 1e6:g} to {high / 1e6:g} M':>20}"
        for low, high in zip(sizes, sizes[1:])))
    for question in by_events[sizes[0]]:
        cells = []
        for low, high in zip(sizes, sizes[1:]):
            before, after = by_events[low][question], by_events[high][question]
            cells.append(f"{(after.cpu - before.cpu) / (high - low) * 1e9:11.0f} "
                         f"{(after.rss - before.rss) / 1e6:+8.0f}")
        print(f"  {QUESTIONS[question]:26}" + "".join(cells))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", default="1,10,100,200",
        help="millions of events, separated by commas")
    parser.add_argument("--ranks", default=str(RANKS), help="numbers of ranks, likewise")
    parser.add_argument("--directory",
        help="where to put the traces; a temporary directory otherwise")
    parser.add_argument("--keep", action="store_true", help="leave the traces")
    parser.add_argument("--repeat", type=int, default=1,
        help="the run with the least CPU seconds counts")
    parser.add_argument("--only", default=",".join(QUESTIONS),
        help=f"questions, separated by commas: {', '.join(QUESTIONS)}")
    parser.add_argument("--workers", type=int, default=0, help="of Dask (0: one for each core)")
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_run(Path(options.write[0]), *map(int, options.write[1:]))
        return 0
    if options.ask:
        ask(options.ask[0], options.ask[1], int(options.ask[2]))
        return 0
    questions = options.only.split(",")
    if unknown := [one for one in questions if one not in QUESTIONS]:
        parser.error(f"--only {','.join(unknown)}: choose of {', '.join(QUESTIONS)}")
    directory = Path(options.directory or tempfile.mkdtemp(prefix="weir-scale-"))
    print(f"seed {SEED}; load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores at "
          f"the beginning; best of {options.repeat}")
    print(f"  {'':26} {'wall s':>8} {'CPU s':>8} {'wall ns':>8} {'CPU ns':>8} {'peak MB':>8} "
          f"{'answer MB':>9}   (ns: for each event)")
    sizes = [round(float(m) * 1e6) for m in options.events.split(",")]
    found = {}
    try:
        for ranks in map(int, options.ranks.split(",")):
            costs = {size: measure(size, ranks, directory, questions, options) for size in sizes}
            linearity(costs)
            found |= {(ranks, size): one for size, one in costs.items()}
    finally:
        if not options.keep and not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    differ = [at for at, costs in found.items() if {"report", "dask"} <= costs.keys()
        and costs["report"].answer != costs["dask"].answer]
    for ranks, size in differ:
        print(f"{ranks} ranks, {size / 1e6:g} M events: THE REPORTS DIFFER with and without Dask")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
