#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What encoding costs: messages of GRIB by weir beside ecCodes alone in one process, chunks of
netCDF-4 by zstd and deflate, the estimate of information; then a server from fetching the data to
the written file.

    bench/encode.py [--rounds N] [--noise K] [--steps N] [--levels N] [--directory DIR] [--mpi NAME]

CPU time; the kinds take turns, and medians are printed. DIR should be in memory (/dev/shm). Needs
`make build`.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
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


def serve(mpi: Mpi, program: Path, directory: Path, packing: str, steps: int,
        levels: int) -> tuple[float, float, int]:
    """GB/s of the server's CPU time and elapsed, and the bytes of the file."""
    form, more = PACKINGS[packing]
    (directory / "output.toml").write_text(
        f'[output]\nmode = "servers"\n[stream.history]\nformat = "{form}"\n{more}\n')
    done = mpi.run(2, program, "output.toml", "out", steps, levels, cwd=directory, timeout=600)
    said = re.search(r"server cpu (\S+) elapsed (\S+) bytes (\d+)", done.stdout)
    if said is None:
        sys.exit(f"bench/encode.py: {packing}: {done.stdout}{done.stderr}")
    cpu_s, elapsed_s, size = (float(text) for text in said.groups())
    written = (directory / "out").stat().st_size
    (directory / "out").unlink()
    return 1e-9 * size / cpu_s, 1e-9 * size / elapsed_s, written


def main() -> None:
    parser = argparse.ArgumentParser(description="What encoding costs.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--noise", type=float, default=0.1, help="of the field's values, in K")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--levels", type=int, default=20)
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--mpi", choices=IMPLEMENTATIONS, default="openmpi")
    args = parser.parse_args()
    encode = BUILD / "bench" / "encode" / "encode"
    if not encode.exists():
        sys.exit(f"bench/encode.py: {encode} is not built; it needs ecCodes")
    subprocess.run([encode, str(args.rounds), str(args.noise)], check=True)
    mpi, libraries = IMPLEMENTATIONS[args.mpi], BUILD / "lib" / args.mpi
    with tempfile.TemporaryDirectory(dir=args.directory) as scratch:
        directory = Path(scratch)
        program = directory / "served"
        subprocess.run([mpi.cc.driver, "-O2", f"-I{ROOT / 'include'}", "-o", program,
            ROOT / "bench" / "encode" / "served.c", f"-L{libraries}", f"-Wl,-rpath,{libraries}",
            "-lweir", "-lm"], check=True)
        print(f"\na server, {args.steps} steps of {args.levels} levels, in {args.directory}, medians "
            f"of {min(args.rounds, 5)} runs")
        runs: dict[str, list[tuple[float, float, int]]] = {name: [] for name in PACKINGS}
        for _ in range(min(args.rounds, 5)):
            for name in PACKINGS:
                runs[name].append(serve(mpi, program, directory, name, args.steps, args.levels))
        values = 4 * 1440 * 721 * args.steps * args.levels
        for name, measured in runs.items():
            cpu, elapsed = (statistics.median(run[i] for run in measured) for i in (0, 1))
            print(f"{name:28} {cpu:6.2f} GB/s of its CPU time  {elapsed:6.2f} GB/s elapsed  "
                f"{100 * measured[0][2] / values:5.1f} %")


if __name__ == "__main__":
    main()
