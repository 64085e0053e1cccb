#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir report` says output costs, beside the timers that programs have of their own.

    bench/output_cost.py [--only WORD] [--ior DIR] [--h5perf FILE] [--python FILE] [--page FILE]

Runs the writers of `weir bench wrf`, small programs of this file (their mpi4py, h5py and netCDF4
are those of --python), IOR and mdtest (in DIR) and h5perf_serial, traced, on Open MPI. What is not
there is left out. Needs `make build`; takes a minute.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

RANKS = 4
WEIR = ROOT / ".venv" / "bin" / "weir"
WRITERS = ROOT / "build" / "native" / "bench" / "wrf" / "openmpi"


class Timer:
    """Seconds within `with`."""

    seconds = 0.0

    def __enter__(self) -> None:
        self.begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.begin


def spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def write_log(timer: Timer) -> None:
    """A line after each ms of computing."""
    file = os.open("run.log", os.O_CREAT | os.O_WRONLY)
    for step in range(1500):
        spin(0.001)
        with timer:
            os.write(file, b"step %d done\n" % step)


def write_answers(timer: Timer) -> None:
    """A master writes a line for each answer of a worker, which computes for 5 ms."""
    import numpy
    from mpi4py import MPI

    world, answer = MPI.COMM_WORLD, numpy.zeros(8192, "u1")
    if world.rank > 0:
        for _ in range(100):
            spin(0.005)
            world.Send(answer, 0)
        return
    file = os.open("farm.log", os.O_CREAT | os.O_WRONLY)
    for number in range(100 * (world.size - 1)):
        world.Recv(answer, MPI.ANY_SOURCE)
        with timer:
            os.write(file, b"answer %d\n" % number)


def write_and_read_back(timer: Timer) -> None:
    with timer, open("data", "wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(1 << 20))
    for _ in range(4):
        with open("data", "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def write_hdf5(timer: Timer) -> None:
    """Five files of four data sets, each read afterwards."""
    import h5py
    import numpy

    field = numpy.random.default_rng(1).random((1000, 1000))
    for step in range(5):
        field = numpy.sin(field)  # the model
        with timer, h5py.File(f"{step}.h5", "w") as file:
            for name in "TUVQ":
                file.create_dataset(name, data=field)
    for step in range(5):
        with h5py.File(f"{step}.h5") as file:
            file["T"][:].sum()


def write_netcdf(timer: Timer) -> None:
    """Ten steps of four variables, one of them compressed, in one file."""
    import netCDF4
    import numpy

    field = numpy.random.default_rng(1).random((500, 1000)).astype("f4")
    with timer:
        data = netCDF4.Dataset("steps.nc", "w")
        for name, size in (("t", None), ("y", 500), ("x", 1000)):
            data.createDimension(name, size)
        variables = [data.createVariable(name, "f4", ("t", "y", "x"), zlib=name == "Q")
            for name in "TUVQ"]
    for step in range(10):
        field = numpy.sin(field * 1.1)  # the model
        spin(0.02)
        with timer:
            for variable in variables:
                variable[step] = field
    with timer:
        data.close()


PROGRAMS: dict[str, Callable[[Timer], None]] = {
    "log": write_log, "farm": write_answers, "back": write_and_read_back, "hdf5": write_hdf5,
    "netcdf": write_netcdf,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """what: in words. timer: seconds, from what the command prints."""

    what: str
    command: list[str]
    timer: Callable[[str], float]


@dataclass(frozen=True)
class Result:
    what: str
    timer_s: float
    all_s: float
    calls_s: float
    waits_s: float

    def line(self) -> str:
        inferred, found = self.all_s - self.calls_s, self.all_s + self.waits_s
        error = 100 * (found - self.timer_s) / self.timer_s
        figures = (self.timer_s, self.all_s, self.calls_s, inferred, self.waits_s)
        cells = " | ".join(f"{one:.3f}" for one in figures)
        return f"| {self.what} | {cells} | {error:+.0f} % |"


def _sum_of(*names: str) -> Callable[[str], float]:
    return lambda text: sum(float(re.search(rf"{one}=([\d.]+)", text)[1]) for one in names)


def _printed(pattern: str, made: Callable[[float], float] = float) -> Callable[[str], float]:
    return lambda text: made(float(re.search(pattern, text, re.MULTILINE | re.DOTALL)[1]))


def cases(options: argparse.Namespace, mpirun: list[str], directory: Path) -> Iterator[Case]:
    config = directory / "output.toml"
    config.write_text('[output]\nmode = "collective"\n')
    words = f"scale=0.02 steps=6 every=2 directory={directory}".split()
    for name, what in (("gather", "serial netCDF on rank 0"), ("plain", "plain pwrite"),
            ("pnetcdf", "PnetCDF"), ("netcdf4", "parallel netCDF-4"), ("weir", "libweir")):
        if (WRITERS / f"wrf-{name}").exists():
            more = [f"config={config}"] if name == "weir" else []
            timers = ("effective_s", "final_s", "define_s") if name == "weir" else ("effective_s",)
            yield Case(f"`weir bench wrf`, {name} ({what})", [*mpirun, str(WRITERS / f"wrf-{name}"),
                *words, *more], _sum_of(*timers))
    own = [options.python, __file__, "--program"]
    timer = _printed(r"timer ([\d.]+)")
    yield Case("log: a line each ms", [*own, "log"], timer)
    yield Case("farm: a master logs answers", [*mpirun, *own, "farm"], timer)
    yield Case("200 MiB, read back four times", [*own, "back"], timer)
    yield Case("h5py, read back", [*own, "hdf5"], timer)
    yield Case("netCDF4-python, appends steps", [*own, "netcdf"], timer)
    ior, mdtest = (shutil.which(one, path=options.ior) for one in ("ior", "mdtest"))
    for api in ("POSIX", "MPIIO", "MPIIO -c") if ior else ():
        for keeps in ("-k", ""):
            words = f"-a {api} -w {keeps} -b 16m -t 1m -o {directory}/ior".split()
            yield Case(f"IOR -a {api} {keeps}".strip(), [*mpirun, ior, *words],
                _printed(r"^write .*?([\d.]+) +\d+ *$"))
    if mdtest:
        words = f"-n 500 -w 4096 -F -C -d {directory}/md".split()
        yield Case("mdtest, creation of files of 4 KiB", [*mpirun, mdtest, *words],
            _printed(r"File creation +([\d.]+)", lambda rate: RANKS * 500 / rate))
    if shutil.which(options.h5perf):
        for api in ("posix", "hdf5"):
            words = f"-A {api} -e 256M -x 256K".split()
            yield Case(f"h5perf_serial, {api}", [options.h5perf, *words], _printed(
                r"Write Open-Close.*?Average Throughput: ([\d.]+)", lambda at: 256 / at))


def measure(case: Case, directory: Path, environment: dict[str, str]) -> Result:
    from weir.report import build
    from weir.report.output_cost.compute import output_costs_of

    run = directory / "run"
    shutil.rmtree(run, ignore_errors=True)
    done = subprocess.run([str(WEIR), "trace", "--quiet", "-o", str(run), "--", *case.command],
        cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    [found] = output_costs_of(build(run))
    whole = found.whole
    return Result(case.what, case.timer(done.stdout), whole.elapsed_ns / 1e9,
        whole.measured_ns / 1e9, whole.waiting_ns / 1e9)


HEAD = """\
| program | its timer, s | all, s | in calls | inferred | waits | all + waits against timer |
|---|--:|--:|--:|--:|--:|--:|"""

PAGE = """\
# What output costs: timers of programs and `weir report`

<!-- made by bench/output_cost.py -->

Programs time their own writing; `weir report --tables output-cost` finds the [cost of
output](../guide/output-cost.md) in their traces. {ranks} ranks where a program is parallel, Open
MPI with ROMIO, one run each, files on a local disk.

{rows}

All: of the rank with most work on output; in calls (measured) and inferred (gathers and packing
between calls) add up to it. Waits: of that rank for others within its calls, which its timer has,
too. The timers of `weir bench wrf` are of the slowest rank of each
frame and end when all ranks have written; that of libweir includes definitions and the end. A root
that waits for ranks which come late, on a busy machine, is in the timer and not in the figure. The
timers of the Python programs include the interpreter between a call and its record. mdtest counts
from its barrier to its barrier. Without `-k` IOR removes its file after its timer has ended, and
h5perf_serial reads its file then: removing and reading are no output.

To make this table again: `bench/output_cost.py --ior DIR --h5perf FILE --python FILE --page
docs/validation/output-cost.md`.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="WORD", help="programs whose text has it")
    parser.add_argument("--ior", metavar="DIR", help="where ior and mdtest are; default: PATH")
    parser.add_argument("--h5perf", default="h5perf_serial", metavar="FILE")
    parser.add_argument("--python", default=sys.executable, metavar="FILE",
        help="that has mpi4py, h5py and netCDF4")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table there")
    parser.add_argument("--program", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        timer = Timer()
        PROGRAMS[options.program](timer)
        if timer.seconds:
            print(f"timer {timer.seconds:.6f}")
        return 0
    from weir_mpi import IMPLEMENTATIONS

    mpi, results = IMPLEMENTATIONS["openmpi"], []
    environment = {**os.environ, **mpi.env}
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as name:
        for case in cases(options, mpi.launch(RANKS), Path(name)):
            if options.only in case.what:
                results.append(measure(case, Path(name), environment).line())
                print(results[-1], flush=True)
    if options.page:
        options.page.write_text(PAGE.format(ranks=RANKS, rows="\n".join([HEAD, *results])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
