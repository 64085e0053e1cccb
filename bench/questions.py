#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same questions to weir and to general engines: totals of each file and operation, exact
active time, I/O over time.

    pip install weir-io[bench,query] python bench/questions.py [--events 20] [--directory DIR]
    [--repeat 3] [--only weir,duckdb,polars]

weir reads its trace; DuckDB and Polars read the same events as Parquet (columns they need, row
groups of a million), each in the SQL that says it best. All run in turn, `repeat` times, each
question in a process of its own with both cores; files are in the page cache. Answers are compared:
exit status 1 when they differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from reading import NS_PER_TICK, synthetic, write_trace

if TYPE_CHECKING:
    from weir.analysis.clock import Line
    from weir.trace import TraceFile

SLICE_NS = 1 << 30  # some seconds' worth of the power of two that weir's tiles have

TOTALS = (
    'SELECT file, op, count(*) AS calls, sum(bytes) AS bytes, sum(stop - start) AS ns FROM e GROUP '
    'BY file, op'
)
ACTIVE = """
SELECT sum(greatest(0, stop - greatest(start, coalesce(before, start)))) FROM (
    SELECT start, stop, max(stop) OVER (ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM e)
"""
# Busy ns of each slice: an event that ends in a later slice than it began in counts in both.
OVER_TIME = f"""
SELECT slice, sum(least(stop, (slice + 1) * {SLICE_NS}) - greatest(start, slice * {SLICE_NS})) AS busy FROM (
    SELECT start, stop, start // {SLICE_NS} AS slice FROM e
    UNION ALL SELECT start, stop, stop // {SLICE_NS} AS slice FROM e WHERE stop // {SLICE_NS} > start // {SLICE_NS})
GROUP BY slice
"""


def write_parquet(path: Path, events: int) -> None:
    """The synthetic events with start and stop in ns since the first, as weir's reader rounds them.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    schema = pa.schema([("rank", pa.int32()), ("file", pa.int32()), ("op", pa.uint8()),
        ("bytes", pa.int64()), ("start", pa.int64()), ("stop", pa.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        pending: list[pa.RecordBatch] = []
        for made in synthetic(events):
            start, stop = (np.floor(ticks * NS_PER_TICK).astype(np.int64)
                for ticks in (made.starts, made.starts + made.lengths))
            ranks = np.full(len(start), made.rank, np.int32)
            columns = [ranks, made.files.astype(np.int32), made.ops.astype(np.uint8),
                made.sizes.astype(np.int64), start, stop]
            pending.append(pa.record_batch([pa.array(column) for column in columns], schema=schema))
            if len(pending) == 32:
                writer.write_table(pa.Table.from_batches(pending), row_group_size=1 << 20)
                pending.clear()
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=1 << 20)


def by_weir(question: str, directory: Path) -> object:
    from weir.analysis.active import active_time
    from weir.analysis.clock import node_line
    from weir.trace import TraceFile
    from weir.trace.file import threads_for

    file = TraceFile(directory / "main" / "node0.weir")
    if question == "totals":
        file.scan(threads_for(file.header.file_bytes))
        rows = file.array("rows")
        keys = file.texts_of(rows["process"], rows["file"]).astype(np.int64) << 8 | rows["op"]
        groups, of_row = np.unique(keys, return_inverse=True)
        sums = np.zeros((len(groups), 3), np.int64)
        np.add.at(sums, of_row,
            np.stack([rows[key].astype(np.int64) for key in ("calls", "bytes", "ticks")], axis=1))
        return [len(groups), *sums.sum(axis=0).tolist()[:2]]
    line, _ = node_line(file)
    if question == "active":
        return active_time((file,), (line,)).ns
    return over_time(file, line, max(max(process.last_ticks, process.end_ticks)
        for process in file.processes))


def over_time(file: TraceFile, line: Line, last_ticks: int) -> list[int]:
    """Busy ns of each slice; last_ticks: when the last event may have ended. The pass over the
    events tells when it did."""
    from weir.analysis.tiles import Grid, tiles

    first, shift = line.timestamp(file.header.created_ticks), SLICE_NS.bit_length() - 1
    slices = ((line.timestamp(last_ticks) - first) >> shift) + 1
    by_row, _ = tiles((file,), (line,), [np.zeros(len(file.processes), np.uint32)],
        Grid(first, shift, slices), rows=1)
    found_ticks = int(file.find_times().array("chunks")["last_ticks"].max())
    used = ((line.timestamp(found_ticks) - first) >> shift) + 1
    if used > slices:
        return over_time(file, line, found_ticks)
    return [int(busy) for busy in by_row["busy_ns"].sum(axis=2)[0][:used]]


def by_duckdb(question: str, directory: Path) -> object:
    import duckdb

    base = duckdb.connect()
    base.execute("SET preserve_insertion_order = false")
    base.execute(f"CREATE VIEW e AS SELECT * FROM read_parquet('{directory / 'events.parquet'}')")
    if question == "totals":
        return [int(x) for x in base
            .execute(f"SELECT count(*), sum(calls), sum(bytes) FROM ({TOTALS})").fetchone() or ()]
    if question == "active":
        return int((base.execute(ACTIVE).fetchone() or (0,))[0])
    return [int(busy) for _, busy in base.execute(OVER_TIME + " ORDER BY slice").fetchall()]


def by_polars(question: str, directory: Path) -> object:
    import polars as pl

    e = pl.scan_parquet(directory / "events.parquet")
    start, stop = pl.col("start"), pl.col("stop")
    if question == "totals":
        made = e.group_by("file", "op").agg(pl.len().alias("calls"), pl.col("bytes").sum(),
            (stop - start).sum().alias("ns"))
        return [int(x) for x in made.select(pl.len(), pl.col("calls").sum(), pl.col("bytes").sum())
            .collect(engine="streaming").row(0)]
    if question == "active":
        before = stop.cum_max().shift(1)
        own = (stop - pl.max_horizontal(start, before.fill_null(start))).clip(lower_bound=0)
        return int(e.select("start", "stop").sort("start").select(own.sum())
            .collect(engine="streaming").item())
    first = e.select("start", "stop", slice=start // SLICE_NS)
    crossing = e.filter(stop // SLICE_NS > start // SLICE_NS).select("start", "stop",
        slice=stop // SLICE_NS)
    part = pl.min_horizontal(stop, (pl.col("slice") + 1) * SLICE_NS) - pl.max_horizontal(start,
        pl.col("slice") * SLICE_NS)
    made = pl.concat([first, crossing]).group_by("slice").agg(part.sum().alias("busy")).sort(
        "slice")
    return made.collect(engine="streaming")["busy"].to_list()


ENGINES: dict[str, Callable[[str, Path], object]] = {"weir": by_weir, "duckdb": by_duckdb,
    "polars": by_polars}
QUESTIONS = {"totals": "totals by file and operation", "active": "exact active time",
    "time": "I/O over time"}


def once(engine: str, question: str, directory: Path) -> dict:
    """One question in a process of its own: wall and CPU seconds without imports of the
    interpreter, peak memory in bytes, the answer."""
    done = subprocess.run(
        [sys.executable, __file__, "--ask", engine, question, str(directory)],
        stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def ask(engine: str, question: str, directory: Path) -> dict:
    module = {"weir": "weir.analysis.step"}.get(engine, engine)
    __import__(module)
    begin, begin_cpu = time.monotonic(), time.process_time()
    answer = ENGINES[engine](question, directory)
    seconds, cpu = time.monotonic() - begin, time.process_time() - begin_cpu
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM"))
    return {"seconds": seconds, "cpu": cpu, "rss": int(peak.split()[1]) * 1024, "answer": answer}


def agree(question: str, answers: dict[str, object], events: int) -> bool:
    """Counts and bytes are the same; sums of ns may differ by the rounding of each event: weir
    rounds timestamps since 1970, the others since the first event."""
    flat = [np.atleast_1d(np.array(answer, np.int64)) for answer in answers.values()]
    most = 0 if question == "totals" else events
    return all(one.shape == flat[0].shape and np.all(np.abs(one - flat[0]) <= most) for one in flat)


def report(engines: Sequence[str], directory: Path, repeat: int, events: int) -> bool:
    fine = True
    for question, title in QUESTIONS.items():
        runs: dict[str, list[dict]] = {engine: [] for engine in engines}
        for _ in range(repeat):
            for engine in engines:
                runs[engine].append(once(engine, question, directory))
        same = agree(question, {engine: made[0]["answer"] for engine, made in runs.items()}, events)
        fine &= same
        print(f"{title}{'' if same else ': THE ANSWERS DIFFER'}")
        mine = statistics.median(one["seconds"] for one in runs[engines[0]])
        for engine, made in runs.items():
            seconds, cpu = (statistics.median(one[key] for one in made)
                for key in ("seconds", "cpu"))
            peak = max(one["rss"] for one in made)
            print(f"  {engine:8} {seconds:8.2f} s {seconds / mine:7.1f} x {cpu:8.2f} CPU s "
                  f"{peak / 1e6:9.0f} MB at most", flush=True)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=float, default=20, help="millions of events")
    parser.add_argument("--directory",
        help="where the trace and the Parquet file are put (some 50 bytes an event); a temporary "
             "directory otherwise")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default=",".join(ENGINES), help="engines, separated by commas")
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(ask(options.ask[0], options.ask[1], Path(options.ask[2]))))
        return 0
    engines = options.only.split(",")
    for absent in [one for one in engines if one != "weir" and find_spec(one) is None]:
        print(f"left out: {absent} is not installed (pip install 'weir-io[bench]')")
        engines.remove(absent)
    directory, events = Path(options.directory
        or tempfile.mkdtemp(prefix="weir-questions-")), round(options.events * 1e6)
    try:
        trace = directory / "main" / "node0.weir"
        if not trace.exists():
            trace.parent.mkdir(parents=True)
            write_trace(trace, events)
            write_parquet(directory / "events.parquet", events)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {events / 1e6:.0f} "
              f"million events; trace {trace.stat().st_size / 1e6:.0f} MB, Parquet "
              f"{(directory / 'events.parquet').stat().st_size / 1e6:.0f} MB")
        return 0 if report(engines, directory, options.repeat, events) else 1
    finally:
        if not options.directory:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
