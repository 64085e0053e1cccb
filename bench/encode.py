#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What encoding costs: messages of GRIB by weir beside ecCodes alone in one process, chunks of
netCDF-4 by zstd and deflate, the estimate of information; then a server from fetching the data to
the written file, and the same by numbers of threads that encode.

    bench/encode.py [--rounds N] [--noise K] [--steps N] [--levels N] [--threads LIST]
                    [--directory DIR] [--mpi NAME] [--served]

CPU time; the kinds take turns, and medians are printed. DIR should be in memory (/dev/shm). Needs
`make build`. `--served` alone shows the goal of 1.2 GB/s from fetching to written GRIB, and how the
server's work is divided over threads: idle cores would not take less than what its busiest thread
uses, whatever else this machine does.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "native"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from weir_mpi import IMPLEMENTATIONS, Mpi  # noqa: E402

PACKINGS = {
    "GRIB, simple": ("grib2", 'grib = { packingType = "grid_simple", bitsPerValue = 16 }'),
    "GRIB, CCSDS": ("grib2", 'grib = { packingType = "grid_ccsds", bitsPerValue = 16 }'),
    "netCDF-4, zstd:1": ("netcdf4", 'compression = "zstd:1"'),
    "netCDF-4, deflate:1": ("netcdf4", 'compression = "deflate:1"'),
    "classic netCDF": ("cdf5", ""),
}


# Open MPI binds two ranks to a core each, which threads of the server would share.
UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none"}
GOALS_GB_S = {"GRIB, simple": 1.2}  # of the server's CPU time


@dataclass(frozen=True)
class Served:
    """A run of the server; threads' shares of its work show in `busiest_s`."""

    bytes: float  # of values that it was given
    written: int
    cpu_s: float
    elapsed_s: float
    busiest_s: float


def serve(mpi: Mpi, program: Path, directory: Path, packing: str, steps: int, levels: int,
        threads: int = 1) -> Served:
    form, more = PACKINGS[packing]
    (directory / "output.toml").write_text(
        f'[output]\nmode = "servers"\nencode_threads = {threads}\n'
        f'[stream.history]\nformat = "{form}"\n{more}\n')
    done = mpi.run(2, program, "output.toml", "out", steps, levels, cwd=directory, timeout=600,
        env=UNBOUND)
    said = re.search(r"server cpu (\S+) elapsed (\S+) busiest (\S+) bytes (\d+)", done.stdout)
    if said is None:
        sys.exit(f"bench/encode.py: {packing}: {done.stdout}{done.stderr}")
    cpu_s, elapsed_s, busiest_s, size = (float(text) for text in said.groups())
    written = (directory / "out").stat().st_size
    (directory / "out").unlink()
    return Served(size, written, cpu_s, elapsed_s, busiest_s)


def gb_s(runs: list[Served], key: str) -> float:
    """The median rate by one of the times."""
    return 1e-9 * statistics.median(run.bytes / getattr(run, key) for run in runs)


def print_packings(one, rounds: int) -> None:
    runs: dict[str, list[Served]] = {name: [] for name in PACKINGS}
    for _ in range(rounds):
        for name in PACKINGS:
            runs[name].append(one(name))
    for name, measured in runs.items():
        cpu, goal = gb_s(measured, "cpu_s"), GOALS_GB_S.get(name)
        judged = "" if goal is None else f"  goal {goal}: {'met' if cpu >= goal else 'missed'}"
        print(f"{name:20} {cpu:6.2f} GB/s of its CPU time  {gb_s(measured, 'elapsed_s'):6.2f} GB/s "
            f"elapsed  {100 * measured[0].written / measured[0].bytes:5.1f} %{judged}")


def print_threads(one, rounds: int, counts: list[int]) -> None:
    """Rates by threads, as a factor of the first count: elapsed, and of the busiest thread. CPU
    time a byte stays the same where threads cost nothing."""
    print(f"\nthe same by threads that encode, on {os.cpu_count()} cores (load "
        f"{os.getloadavg()[0]:.1f})")
    for name in ("GRIB, simple", "GRIB, CCSDS"):
        runs: dict[int, list[Served]] = {count: [] for count in counts}
        for _ in range(rounds):
            for count in counts:
                runs[count].append(one(name, threads=count))
        first = {key: gb_s(runs[counts[0]], key) for key in ("elapsed_s", "busiest_s")}
        for count, measured in runs.items():
            elapsed, busiest = (gb_s(measured, key) for key in first)
            factors = [rate / first[key] for key, rate in zip(first, (elapsed, busiest))]
            print(f"{name:13} {count:3} threads: elapsed {elapsed:5.2f} GB/s ({factors[0]:.2f} x), "
                f"busiest thread {busiest:5.2f} GB/s ({factors[1]:.2f} x), "
                f"{1 / gb_s(measured, 'cpu_s'):5.2f} CPU s/GB")


def main() -> None:
    parser = argparse.ArgumentParser(description="What encoding costs.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--noise", type=float, default=0.1, help="of the field's values, in K")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--levels", type=int, default=20)
    parser.add_argument("--threads", default=",".join(str(n) for n in (1, 2, 4, 8)
        if n <= (os.cpu_count() or 1)), help="numbers of threads that encode")
    parser.add_argument("--served", action="store_true", help="the server alone")
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--mpi", choices=IMPLEMENTATIONS, default="openmpi")
    args = parser.parse_args()
    encode = BUILD / "bench" / "encode" / "encode"
    if not encode.exists():
        sys.exit(f"bench/encode.py: {encode} is not built; it needs ecCodes")
    if not args.served:
        subprocess.run([encode, str(args.rounds), str(args.noise)], check=True)
    mpi, libraries = IMPLEMENTATIONS[args.mpi], BUILD / "lib" / args.mpi
    with tempfile.TemporaryDirectory(dir=args.directory) as scratch:
        directory = Path(scratch)
        program = directory / "served"
        subprocess.run([mpi.cc.driver, "-O2", f"-I{ROOT / 'include'}", "-o", program,
            ROOT / "bench" / "encode" / "served.c", "-pthread", f"-L{libraries}",
            f"-Wl,-rpath,{libraries}", "-lweir", "-lm"], check=True)
        rounds = min(args.rounds, 5)
        print(f"\na server, from fetching to the written file: {args.steps} steps of {args.levels} "
            f"levels ({4e-9 * 1440 * 721 * args.steps * args.levels:.2f} GB), in {args.directory}, "
            f"medians of {rounds} runs, load {os.getloadavg()[0]:.1f}")
        one = functools.partial(serve, mpi, program, directory, steps=args.steps,
            levels=args.levels)
        print_packings(one, rounds)
        print_threads(one, rounds, [int(count) for count in args.threads.split(",")])


if __name__ == "__main__":
    main()
