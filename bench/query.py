#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What asking, exporting and watching cost: CPU seconds and peak memory on synthetic traces of
growing size (those of bench/reading.py).

    python bench/query.py [--events 1,10,50] [--directory DIR] [--keep] [--repeat 3]

Each figure is the best of `repeat` runs in a process of its own, imports and the reading of the
trace included; the file is in the page cache.
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
from collections.abc import Callable
from pathlib import Path

from reading import SEED, write_trace

OWN = "SELECT file, count(*), sum(bytes), sum(duration_ns) FROM events GROUP BY file"


def ask(query: str) -> Callable[[str, str], object]:
    def measured(run: str, _: str) -> object:
        import weir

        with weir.open(run) as opened:
            return opened.sql(query).num_rows

    return measured


def batches(run: str, _: str) -> int:
    import weir

    return sum(len(batch) for batch in weir.open(run).events.batches())


def export_to(form: str) -> Callable[[str, str], object]:
    def measured(run: str, scratch: str) -> None:
        import weir
        from weir.export import export_parquet, export_perfetto

        with weir.open(run) as opened:
            if form == "parquet":
                export_parquet(opened, os.path.join(scratch, "tables"))
            else:
                with open(os.devnull, "wb") as stream:
                    export_perfetto(opened.report, stream)

    return measured


def watch(looks: int) -> Callable[[str, str], object]:
    def measured(run: str, _: str) -> int:
        from weir.watch import Watch

        watching = Watch(run)
        return sum(watching.look().calls for _ in range(looks))

    return measured


MEASURES: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "files": ("SQL: files (from totals)", ask("SELECT * FROM files")),
    "events": ("SQL: each file's sums over events", ask(OWN)),
    "io": ("SQL: each file's sums over io",
        ask("SELECT file, sum(calls), sum(bytes), sum(ns) FROM io GROUP BY file")),
    "batches": ("Python: all batches of events", batches),
    "parquet": ("export to Parquet", export_to("parquet")),
    "perfetto": ("export to Perfetto, to /dev/null", export_to("perfetto")),
    "watch": ("watch: the first look", watch(1)),
    "watch11": ("watch: that and ten more, nothing added", watch(11)),
}


def measure(name: str, run: str) -> dict:
    scratch = tempfile.mkdtemp(prefix="weir-bench-query-")
    try:
        MEASURES[name][1](run, scratch)
    finally:
        shutil.rmtree(scratch)
    return {"seconds": time.process_time(),
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def best(name: str, run: Path, repeat: int) -> dict:
    command = [sys.executable, __file__, "--measure", name, str(run)]
    runs = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True,
        check=True).stdout) for _ in range(repeat)]
    return min(runs, key=lambda one: one["seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", default="1,10,50",
        help="millions of events, separated by commas")
    parser.add_argument("--directory",
        help="where to put the traces (33 bytes an event); a temporary directory otherwise")
    parser.add_argument("--keep", action="store_true", help="leave the traces")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default=",".join(MEASURES),
        help="these of the measures, separated by commas")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return 0
    directory = Path(options.directory or tempfile.mkdtemp(prefix="weir-query-"))
    try:
        print(f"seed {SEED}; best of {options.repeat}: CPU s, peak MB; load "
              f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for millions in options.events.split(","):
            path = directory / f"run-{millions}" / "main" / "node0.weir"
            if not path.exists():
                path.parent.mkdir(parents=True)
                write_trace(path, round(float(millions) * 1e6))
            for name in options.only.split(","):
                title = MEASURES[name][0]
                found = best(name, path.parents[1], options.repeat)
                print(f"{millions:>6} M  {title:<40} {found['seconds']:>8.2f} "
                      f"{found['rss'] / 1e6:>8.0f}", flush=True)
    finally:
        if not options.keep and not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
