#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast traces are read: synthetic traces of growing size, from mapped file to totals, to exact
active time, to a report.

    python bench/reading.py [--events 1,10,100] [--directory DIR] [--keep] [--repeat 3]

Each figure is the best of `repeat` runs, in a process of its own; the file is in the page cache.
CPU seconds, so that a busy machine changes little. The trace: 4 ranks of 2 threads, each with its
own files and common ones, 1,000 files in all, many small reads beside a few large ones, all threads
in I/O at once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

RANKS, THREADS, FILES = 4, 2, 1000
NS_PER_TICK = 0.4
SEED = 20260101


class Made(NamedTuple):
    """One chunk of synthetic events, all arrays of one length; starts and lengths in ticks since
    the first event, ops by value."""

    rank: int
    thread: int
    ops: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    files: np.ndarray
    sizes: np.ndarray


def synthetic(events: int) -> Iterator[Made]:
    """At least `events` events in chunks of the trace's greatest size."""
    from weir.trace.ops import op_named

    random = np.random.default_rng(SEED)
    value = {name: op_named(name).value for name in ("read", "write", "fread", "fwrite", "lseek")}
    kinds = np.array([value[n] for n in ("fread", "fread", "fread", "fwrite", "read", "write",
        "lseek")])
    per_chunk = (2**20 - 64) // 32
    clocks = np.zeros((RANKS, THREADS), np.int64)
    for number in range(-(-events // per_chunk)):
        rank, thread = number % RANKS, number // RANKS % THREADS
        gaps = random.integers(50, 4000, per_chunk)
        lengths = random.integers(20, 2000, per_chunk)
        starts = clocks[rank, thread] + np.cumsum(gaps + lengths) - lengths
        clocks[rank, thread] = starts[-1] + lengths[-1]
        # A file is used for some 50 calls in a row, as programs do.
        files = np.repeat(random.integers(1, FILES + 1, per_chunk // 50 + 1), 50)[:per_chunk]
        ops = np.repeat(kinds[random.integers(0, len(kinds), per_chunk // 5 + 1)], 5)[:per_chunk]
        yield Made(rank, thread, ops, starts, lengths, files,
            1 << random.integers(0, 22, per_chunk))


def write_trace(path: Path, events: int) -> None:
    """A trace of synthetic events, chunk by chunk, so that it needs little memory."""
    from weir.trace._synthetic import TraceWriter, records

    with TraceWriter(path, ns_per_tick=NS_PER_TICK) as writer:
        processes = [writer.process(100 + rank, rank, RANKS) for rank in range(RANKS)]
        for process in processes:
            for number in range(FILES):
                process.name(f"/scratch/an/run/file.{number:04d}")
        last = writer.created_ticks
        for made in synthetic(events):
            starts = writer.created_ticks + made.starts
            processes[made.rank].events(
                records(made.ops, starts, made.lengths, file=made.files, size=made.sizes),
                thread=made.thread + 1
            )
            last = max(last, int(starts[-1] + made.lengths[-1]))
        for process in processes:
            process.fields["last_ticks"] = last
            process.fields["last_mono_ns"], process.fields["end_ticks"] = writer.mono_ns(last), last


def cpu_seconds(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def measure_totals(path: str) -> dict:
    from weir.analysis.names import NameTable
    from weir.analysis.step import read_step
    from weir.report.files.compute import file_totals
    from weir.trace import Step

    step, names = Step("bench", Path(path).parent, None, None, (Path(path),)), NameTable()
    data = []
    seconds = cpu_seconds(lambda: data.append(file_totals(read_step(step, names).columns, names)))
    return {"seconds": seconds, "files": len(data[0])}


def measure_active(path: str) -> dict:
    from weir.analysis.active import active_time
    from weir.analysis.clock import node_line
    from weir.trace import TraceFile

    file = TraceFile(path)
    line, _ = node_line(file)
    result = []
    seconds = cpu_seconds(lambda: result.append(active_time((file,), (line,))))
    return {"seconds": seconds, "records": result[0].records, "active_s": result[0].ns / 1e9}


def measure_report(path: str) -> dict:
    """The whole command, as a user starts it: interpreter, imports, all tables, JSON."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "weir", "report", str(Path(path).parent), "--json"],
        stdout=subprocess.PIPE, check=True
    )
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": cpu, "wall": wall, "rss": after.ru_maxrss * 1024}


MEASURES = {"totals": measure_totals, "active": measure_active, "report": measure_report}


def best(measure: str, path: Path, repeat: int) -> dict:
    """The fastest of some runs, each in a new process."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, __file__, "--measure", measure, str(path)], stdout=subprocess.PIPE,
            text=True, check=True
        )
        runs.append(json.loads(done.stdout))
    return min(runs, key=lambda one: one["seconds"])


def row(events: int, directory: Path, repeat: int) -> str:
    step = directory / f"run-{events}" / "main"
    path = step / "node0.weir"
    if not path.exists():
        step.mkdir(parents=True)
        write_trace(path, events)
    size = path.stat().st_size
    with open(path, "rb") as stream:  # into the page cache
        while stream.read(1 << 24):
            pass
    totals, active, report = (best(measure, path, repeat) for measure in MEASURES)
    count = active["records"]
    return (
        f"{count / 1e6:>8.1f} M {size / 1e6:>9.0f} {count / totals['seconds'] / 1e6:>12.1f} "
        f"{count / active['seconds'] / 1e6:>12.1f}"
        f" {report['seconds']:>9.2f} {report['wall']:>8.2f} "
        f"{count / report['seconds'] / 1e6:>10.1f} {report['rss'] / size:>9.2f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", default="1,10,100",
        help="millions of events, separated by commas")
    parser.add_argument("--directory",
        help="where to put the traces (33 bytes an event); a temporary directory otherwise")
    parser.add_argument("--keep", action="store_true", help="leave the traces")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASURES[options.measure[0]](options.measure[1])))
        return 0
    directory = Path(options.directory or tempfile.mkdtemp(prefix="weir-reading-"))
    try:
        print(f"seed {SEED}; {RANKS} ranks x {THREADS} threads, {FILES} files; best of "
              f"{options.repeat}, per CPU second")
        print(f"{'':>10} {'trace':>9} {'file totals':>12} {'active time':>12} "
              f"{'weir report --json':>29} {'peak RSS':>9}")
        print(f"{'events':>10} {'MB':>9} {'M events/s':>12} {'M events/s':>12} {'CPU s':>9} "
              f"{'wall s':>8} {'M ev/s':>10} {'/ trace':>9}")
        for millions in options.events.split(","):
            print(row(round(float(millions) * 1e6), directory, options.repeat), flush=True)
    finally:
        if not options.keep and not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
