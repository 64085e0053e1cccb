#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tracing costs: nanoseconds and instructions added to a call, milliseconds to a process,
bytes of trace for an event.

    bench/cost.py [--quick] [--json FILE] [--repeat N] [--dftracer] [--only fread,read] [--library
    FILE] [--directory DIR]

Every repetition runs all tools one after the other on each loop, and takes the difference from its
own untraced run; the tables show medians and extremes of these differences. Times are CPU time
(user and system, all threads), so that other users of the machine disturb them little. The floor is
measured by the same program: two readings of the clock that weir reads and a store of 32 bytes into
a mapped file that is in the cache. Needs `make build`; Python's standard library alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cost import instructions, measure, report, tools  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true",
        help="small loops, one repetition: shows that it works, not what it costs")
    parser.add_argument("--json", metavar="FILE",
        help="write all figures there (- for standard output, instead of the tables)")
    parser.add_argument("--repeat", type=int, metavar="N",
        help="repetitions (default 7, at least 5 for figures to quote)")
    parser.add_argument("--dftracer", action="store_true",
        help="compare with dftracer, installed from the package index if need be")
    parser.add_argument("--no-instructions", action="store_true", help="do not count instructions")
    parser.add_argument("--only", metavar="LOOPS", help="these loops alone, by name")
    parser.add_argument("--library", type=Path, default=ROOT
        / "python/weir/_lib/libweir-preload.so", help="the preload library to measure")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/native/bench/cost",
        help="where loops and statements were built")
    parser.add_argument("--directory", type=Path, default=ROOT / "build/bench",
        help="where traces are written")
    return parser.parse_args()


def count_instructions(options: argparse.Namespace, bench: measure.Bench, cases: list,
        chosen: list) -> list[dict] | str:
    """Rows of loops, and of calls of MPI with and without what ranks wait for; or why there are
    none."""
    if options.no_instructions:
        return "not asked for"
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    library = options.library.resolve()
    of_mpi = [tools.Tool(tools.BARE), tools.weir(library, "trace"), tools.without_mpi(library)]
    return instructions.count(bench, cases, chosen) + instructions.count(bench,
        measure.mpi_cases(options.programs, options.only), of_mpi)


def main() -> int:
    options = arguments()
    if not (options.programs / "loops").exists() or not options.library.exists():
        print(f"{options.programs}/loops or {options.library} does not exist: run `make build`",
            file=sys.stderr)
        return 3
    cases = measure.cases(options.programs, options.quick, options.only)
    if not cases:
        print(f"no loop of that name: {options.only}; there are {', '.join(measure.LOOPS)}, and "
              f"beside one of them {measure.MPI}", file=sys.stderr)
        return 2
    with measure.Bench(options.directory, options.quick) as bench:
        chosen, absent = tools.available(options.library.resolve(), bench, options.dftracer,
            ROOT / "build/bench-venv")
        result = {
            "machine": report.machine(options.directory),
            "absent": absent,
            **bench.run(cases, chosen, options.repeat or (1 if options.quick else 7)),
            "instructions": count_instructions(options, bench, cases, chosen),
        }
    if options.json == "-":
        json.dump(result, sys.stdout, indent=1)
        return 0
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    print(report.text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
