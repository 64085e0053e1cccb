#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir advise` expects of its rules and what they bring, over the workloads: each case is
tuned (`weir tune`), and expected and obtained seconds stand side by side.

    python bench/estimates.py [--only scf,olam] [--preset lustre] [--runs 4] [--allow stage,pack]
        [--directory DIR] [--json FILE]
    python bench/estimates.py --page docs/validation/estimates.md FILE...

A case is one line of CASES (workloads) or OTHERS: how its input is made, and the command; a program
that is not on PATH is left out (IOR and mdtest, which Debian does not package, are built of their
source with the MPI that weir bench finds). It runs
in a directory of its own on the test file system, and on DIR (a local disk) with --preset none. The
page has all rows, good or bad; a row counts as within when the obtained I/O seconds, plain less
tuned, lie in the expected range.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.bench._programs import Mpi, choose_mpi
from weir.advise.probes import probes
from weir.probe.cache import probe
from weir.testfs import mounted
from weir.tune.decide import PLAIN, TUNED, medians, of_kind, rule_gains
from weir.tune.tune import Options, Outcome, Tuning

ROOT = Path(__file__).resolve().parents[1]
CASES: dict[str, tuple[int, str, str]] = {  # ranks, arguments that make the input, of the run
    "scf": (4, "--setup --dir . --megabytes 8",
        "--dir . --megabytes 8 --iterations 3 --compute 1"),
    "overlap": (4, "--setup --file sections.dat --planes 64 --ghost 8",
        "--file sections.dat --planes 64 --ghost 8 --compute 1"),
    "sharedread": (4, "--setup --file climate.nc --times 3",
        "--file climate.nc --times 3 --compute 1"),
    "matrix": (8, "", "--file matrix.dat --rows 880 --columns 300 --mode noview"),
    "olam": (4, "--setup --input . --input-mb 8",
        "--input . --output . --input-mb 8 --frames 30 --sleep 0.4 --result-kb 40 --plot-kb 40"),
    "4dvar": (4, "", "--scale 0.12 --compute 0.5"),
}  # fmt: skip
RANKS = 4  # of programs of others
SCRIPTS = {"4dvar": "run"}  # workloads that a script runs, step after step
FIRST_ROUND = (
    "**In the first round 15 of 21 rules were in range (71 %)**: 11 of 13 of the cases that had "
    "been looked at before, 4 of 8 of IOR, mdtest, nccopy and h5repack, which had not. Expect as "
    "much of a program that is not in the table: where a range matters, measure."
)
NOTES = (
    "Test file systems: presets lustre and nfs, probed first (`weir probe`); none: a local disk. "
    "At most five runs of each case with lustre (`python bench/estimates.py --runs 5 --allow "
    "stage,pack`), three with the others (`--preset nfs`, `--preset none --directory DIR`). "
    "Programs of others: tar, gzip, dd, ncks, split, nccopy, h5repack, cdo, sqlite3, lmp (LAMMPS), "
    "icoFoam (OpenFOAM, its cavity), and with 4 ranks IOR and mdtest, as their users call them; "
    "healthy is dd in requests of 1 MiB.",
    "Measured on two cores; cases without a remark with lustre at a load below 2, cases with a "
    "star at a load of up to 30 of other programs, where calls take several times as long and "
    "plain runs differ by a factor of 2. After the first round the model was corrected by what "
    "the misses showed (flushes of streams, first reads of layer bufa, requests that it passes "
    "on, reads below layer global), and the cases that had missed were measured again, once: for "
    "these the model is fitted, and some ranges are wider than before. The cases with nfs were "
    "measured once, with the corrected model. Findings of cases without a star were not written "
    "down.",
    "In 4dvar the rule is for the tables of observations: some hundred small files that all ranks "
    "of each step open, stored in archives.",
)
_CAVITY = "/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity"
OTHERS = {  # programs of others: what makes the input, the command
    "healthy": ("head -c 50000000 /dev/urandom >big", "dd if=big of=copy bs=1M status=none"),
    "tar": ("mkdir tree; for n in $(seq 60); do head -c 100000 /dev/urandom >tree/$n; done",
        "tar cf all.tar tree"),
    "gzip": ("head -c 12000000 /dev/urandom >big", "gzip -1 -k big"),
    "dd": ("true", "dd if=/dev/zero of=out bs=4k count=3000 status=none"),
    "split": ("seq 60000 >big", "split -l 200 -a 4 big part."),
    "ncks": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.nc', "
        "'w', format='NETCDF3_CLASSIC'); d.createDimension('t'); d.createDimension('x', 2000); "
        "v = [d.createVariable(f'v{i}', 'f4', ('t', 'x')) for i in range(20)]; "
        "[v[i].__setitem__(t, t + i) for t in range(20) for i in range(20)]; d.close()\"",
        "ncks -O in.nc out.nc"),
    "cdo": ("cdo -s -f nc -seltimestep,1/12 -for,1,12 x.nc; cdo -s -f nc -mul -enlarge,r360x180 "
        "x.nc -random,r360x180 in.nc", "cdo -s -O -f nc copy in.nc out.nc"),
    "sqlite3": ("seq 20000 | sed 's/.*/INSERT INTO t VALUES(&, \"some text of row &\");/' >rows; "
        "(echo 'CREATE TABLE t(a, b);BEGIN;'; cat rows; echo 'COMMIT;CREATE INDEX i ON t(b);') "
        ">load.sql", "sqlite3 all.db '.read load.sql'"),
    "lmp": ("printf '%s\\n' 'units lj' 'lattice fcc 0.8442' 'region b block 0 6 0 6 0 6' "
        "'create_box 1 b' 'create_atoms 1 box' 'mass 1 1.0' 'velocity all create 1.44 87287' "
        "'pair_style lj/cut 2.5' 'pair_coeff 1 1 1.0 1.0 2.5' 'fix 1 all nve' "
        "'dump d all atom 1 dump.txt' 'run 200' >in.lj", "lmp -in in.lj"),
    # -G: bytes that do not depend on the time; -C: each rank reads what another one wrote
    "ior": ("true", "MPIRUN ior -a POSIX -t 8k -b 1m -s 2 -w -r -C -k -G 17 -o ior.dat"),
    "ior-own": ("true", "MPIRUN ior -a POSIX -F -t 4k -b 2m -w -r -k -G 17 -o ior.dat"),
    "ior-mpiio": ("true", "MPIRUN ior -a MPIIO -t 8k -b 8k -s 128 -w -r -C -k -G 17 -o ior.dat"),
    "ior-large": ("true", "MPIRUN ior -a POSIX -F -t 1m -b 16m -w -r -k -G 17 -o ior.dat"),
    "mdtest": ("true", "MPIRUN mdtest -F -C -E -n 100 -w 2000 -e 2000 -d md"),
    "icoFoam": (f"cp -r {_CAVITY}/* . && sed -i 's/^writeInterval.*/writeInterval 5;/; "
        "s/^endTime .*/endTime 0.2;/' system/controlDict && blockMesh >log", "icoFoam"),
    "nccopy": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.nc', 'w'); "
        "d.createDimension('t'); d.createDimension('x', 20000); v = [d.createVariable(f'v{i}', "
        "'f4', ('t', 'x'), chunksizes=(1, 2000)) for i in range(5)]; [v[i].__setitem__(t, t + i) "
        "for t in range(20) for i in range(5)]; d.close()\"", "nccopy -k classic in.nc out.nc"),
    "h5repack": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.h5', 'w'); "
        "d.createDimension('x', 400000); v = [d.createVariable(f'v{i}', 'f4', ('x',), "
        "chunksizes=(2000,)) for i in range(5)]; [v[i].__setitem__(slice(None), i) "
        "for i in range(5)]; d.close()\"", "h5repack -f GZIP=1 in.h5 out.h5"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One rule of a case. low, high, obtained: I/O seconds of all ranks that it saves."""

    case: str
    place: str
    finding: str
    stack: str
    low: float
    high: float
    obtained: float
    requests_before: int
    requests_after: int
    kept: bool

    @property
    def is_within(self) -> bool:
        return self.low <= self.obtained <= self.high


@dataclass(frozen=True)
class Whole:
    """A case. low, high: seconds of the run that its rules were expected to save together."""

    case: str
    place: str
    plain_s: float
    tuned_s: float | None
    low: float
    high: float
    sentence: str
    findings: tuple[str, ...] = ()


def main() -> int:
    options = parsed()
    if options.page:
        write_page(Path(options.page), options.sources)
        return 0
    rows: list[Row] = []
    wholes: list[Whole] = []
    mpi = choose_mpi(None, ROOT / "build/native/workloads/overlap/{mpi}/weir-overlap")
    os.environ.update(mpi.environment)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(
            dir=options.directory))).resolve()
        place = scratch / "mount"
        place.mkdir()
        if options.preset != "none":
            backing = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
            stack.enter_context(mounted(place, backing=backing, preset=options.preset,
                owner=os.getpid()))
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        if not options.no_probe:
            probe(place, True)
        for name in options.only.split(","):
            if (program := missing(name)) is not None:
                print(f"{name}: no {program} on PATH: left out", file=sys.stderr)
                continue
            found = tuned(name, mpi, place, scratch, options)
            rows += (new := rows_of(name, options.preset, found))
            wholes.append(whole_of(name, options.preset, found))
            print_rows(new, wholes[-1:])
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": [asdict(one) for one in rows],
            "wholes": [asdict(one) for one in wholes]}, indent=1))
    return 0


def write_page(path: Path, sources: list[str]) -> None:
    """The page of all rows of files that --json wrote."""
    found = [json.loads(Path(one).read_text()) for one in sources]
    rows = [Row(**one) for part in found for one in part["rows"]]
    wholes = [Whole(**one) for part in found for one in part["wholes"]]
    path.write_text(page_text(rows, wholes))


def page_text(rows: list[Row], wholes: list[Whole]) -> str:
    """In Markdown."""
    within = sum(one.is_within for one in rows)
    said = [
        "Are the ranges of [weir advise](../guide/advise.md) right? Each case was tuned ([weir "
        "tune](../guide/tune.md)); each row is a rule that was tried, those that were dropped as "
        "well. Seconds are of I/O of all ranks. Ranges come from the first plain run, times the "
        "median I/O time of the plain runs over that of the first: on a shared machine the same "
        "calls take longer now than then.",
        FIRST_ROUND,
        f"In the table {within} of {len(rows)} rules brought what was expected of them "
        f"({100 * within // max(1, len(rows))} %).", *NOTES,
    ]
    lines = [
        "# What weir advise expects, and what came of it", "",
        "<!-- made by bench/estimates.py --page from figures of --json -->", "",
        *(line for text in said for line in [*textwrap.wrap(text, 100, break_on_hyphens=False,
            break_long_words=False), ""]),
        "| case | on | finding | rule | expected, s | obtained, s | within | requests | |",
        "|---|---|---|---|--:|--:|---|--:|---|",
    ]  # fmt: skip
    lines += [
        f"| {one.case} | {one.place} | {one.finding} | `{one.stack.partition(':tier=')[0]}` | "
        f"{one.low:.3f} to {one.high:.3f} | {one.obtained:.3f} | "
        f"{'yes' if one.is_within else 'no'} | {one.requests_before:,} to {one.requests_after:,} | "
        f"{'kept' if one.kept else 'dropped'} |"
        for one in rows
    ]
    lines += ["", "The runs as a whole, in seconds of wall time; expected is critical time. The "
        "last column has", "all findings, also those that only a change of the program cures:", "",
        "| case | on | plain | with rules | saved | expected | | outputs | found |",
        "|---|---|--:|--:|--:|--:|---|---|---|"]
    lines += [_whole_line(one) for one in wholes]
    return "\n".join(lines) + "\n"


def _whole_line(one: Whole) -> str:
    cells = ["-", "-", "-", "-", "nothing worth changing"]
    if one.tuned_s is not None:
        saved = one.plain_s - one.tuned_s
        cells = [f"{one.tuned_s:.2f}", f"{saved:.2f}", f"{one.low:.2f} to {one.high:.2f}",
            "within" if one.low <= saved <= one.high else "outside",
            "identical" if "outputs are identical" in one.sentence else one.sentence]
    return (f"| {one.case} | {one.place} | {one.plain_s:.2f} | {' | '.join(cells)} | "
        f"{', '.join(one.findings) or '-'} |")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join((*CASES, *OTHERS)))
    parser.add_argument("--preset", default="lustre", help="of the test file system; none: a disk")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--allow", default="", help="stage,pack")
    parser.add_argument("--directory", default=None)
    parser.add_argument("--json", default=None)
    parser.add_argument("--no-probe", action="store_true")
    parser.add_argument("--page", help="write this page from files of --json, and run nothing")
    parser.add_argument("sources", nargs="*", help="files of --json, for --page")
    return parser.parse_args()


def missing(name: str) -> str | None:
    """The program of a case that is not there."""
    words = shlex.split(OTHERS[name][1]) if name in OTHERS else ["sh"]
    program = words[words[0] == "MPIRUN"]
    return None if shutil.which(program) else program


def tuned(name: str, mpi: Mpi, place: Path, scratch: Path, options: argparse.Namespace) -> Outcome:
    directory = place / name
    directory.mkdir()
    out = scratch / f"out-{name}"
    out.mkdir()
    if name in OTHERS:
        setup, line = OTHERS[name]
        subprocess.run(["sh", "-c", setup.replace("PYTHON", sys.executable)], cwd=directory,
            check=True)
        words = shlex.split(line)
        command = mpi.command(RANKS, words[1], words[2:]) if words[0] == "MPIRUN" else words
        return proved(name, out, directory, command, options)
    ranks, setup, arguments = CASES[name]
    program = ROOT / "build/native/workloads" / name / mpi.name / f"weir-{name}"
    if setup:
        subprocess.run(mpi.command(ranks, program, setup.split()), cwd=directory, check=True,
            stdout=subprocess.DEVNULL)
    command = mpi.command(ranks, program, arguments.split())
    if name in SCRIPTS:
        command = [str(ROOT / "workloads" / name / SCRIPTS[name]), "--work", ".", "--mpi", mpi.name,
            "--ranks", str(ranks), *arguments.split()]
    return proved(name, out, directory, command, options)


def proved(name: str, out: Path, directory: Path, command: list[str],
        options: argparse.Namespace) -> Outcome:
    allow = tuple(filter(None, options.allow.split(",")))
    return Tuning(out, directory, command, Options(options.runs, 30, allow, probes()),
        lambda line: print(f"{name}: {line}", file=sys.stderr)).run()


def rows_of(case: str, place: str, found: Outcome) -> list[Row]:
    """All rules that were tried, those that were dropped as well."""
    tried = {one.rule.path: one for one in found.report.rules if one.rule is not None}
    gains = rule_gains(found.state.runs, list(tried))
    first = found.state.runs[0].figures.by_rule
    return [Row(case, place, tried[one.rule].finding, tried[one.rule].rule.stack,
        *(end * one.before_s / max(first[one.rule].io_s, 1e-9)
            for end in (tried[one.rule].saving.io.low, tried[one.rule].saving.io.high)),
        one.saved_s, one.before_requests, one.after_requests,
        one.rule not in found.state.dropped) for one in gains]  # fmt: skip


def whole_of(case: str, place: str, found: Outcome) -> Whole:
    from weir.tune.text import sentence

    plain, tuned_runs = (of_kind(found.state.runs, kind) for kind in (PLAIN, TUNED))
    used = set(tuned_runs[0].rules) if tuned_runs else set()
    first = found.state.runs[0].figures
    is_known = first.critical_s is not None
    now = medians(plain, "critical_s" if is_known else "io_s") or 0.0
    longer = now / max((first.critical_s if is_known else first.io_s) or 0.0, 1e-9)
    ranges = [one.saving.critical or one.saving.io for one in found.report.rules
        if one.rule is not None and one.rule.path in used]
    return Whole(case, place, medians(plain, "wall_s") or 0.0, medians(tuned_runs, "wall_s"),
        longer * sum(one.low for one in ranges), longer * sum(one.high for one in ranges),
        sentence(found), tuple(dict.fromkeys(one.finding for one in found.report.advices)))


def print_rows(rows: list[Row], wholes: list[Whole]) -> None:
    for one in rows:
        print(f"{one.case:<11}{one.place:<8}{one.finding:<20}{one.stack:<28}"
            f"{one.low:8.3f} {one.high:8.3f} {one.obtained:8.3f} "
            f"{'within' if one.is_within else 'OUT':<7}{one.requests_before:>8}"
            f"{one.requests_after:>8} {'kept' if one.kept else 'dropped'}")
    for one in wholes:
        after = "-" if one.tuned_s is None else f"{one.tuned_s:.3f}"
        print(f"{one.case:<11}{one.place:<8}wall {one.plain_s:.3f} -> {after}; expected "
            f"{one.low:.3f} to {one.high:.3f}; {one.sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
