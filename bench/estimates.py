#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir advise` expects of its rules and what they bring, over the workloads: each case is
tuned (`weir tune`), and expected and obtained seconds stand side by side.

    python bench/estimates.py [--only scf,olam] [--preset lustre] [--runs 4] [--allow stage,pack]
        [--directory DIR] [--json FILE] [--out DIR]
    python bench/estimates.py --page docs/validation/estimates.md bench/estimates.json [FILE...]

A case is one line of estimate_cases.py: how its input is made, and the command; a program
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
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from estimate_cases import CASES, HELD_OUT, OTHERS, RANKS, SECOND
from estimate_page import Row, Whole, write_page
from weir.bench._programs import Mpi, choose_mpi
from weir.advise.probes import probes
from weir.probe.cache import probe
from weir.testfs import mounted
from weir.tune.decide import PLAIN, TUNED, medians, of_kind, rule_gains
from weir.tune.tune import Options, Outcome, Tuning

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = OTHERS | HELD_OUT | SECOND
SCRIPTS = {"4dvar": "run"}  # workloads that a script runs, step after step


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


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join((*CASES, *PROGRAMS)))
    parser.add_argument("--preset", default="lustre", help="of the test file system; none: a disk")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--allow", default="", help="stage,pack")
    parser.add_argument("--directory", default=None)
    parser.add_argument("--json", default=None)
    parser.add_argument("--out", default=None, help="keep reports and traces of weir tune there")
    parser.add_argument("--no-probe", action="store_true")
    parser.add_argument("--page", help="write this page from files of --json, and run nothing")
    parser.add_argument("sources", nargs="*", help="files of --json, for --page")
    return parser.parse_args()


def missing(name: str) -> str | None:
    """The program of a case that is not there."""
    words = shlex.split(PROGRAMS[name][1]) if name in PROGRAMS else ["sh"]
    program = words[words[0] == "MPIRUN"].replace("PYTHON", sys.executable)
    return None if shutil.which(program) else program


def tuned(name: str, mpi: Mpi, place: Path, scratch: Path, options: argparse.Namespace) -> Outcome:
    directory = place / name
    directory.mkdir()
    out = (Path(options.out).resolve() if options.out else scratch) / f"out-{name}"
    out.mkdir(parents=True)
    if name in PROGRAMS:
        setup, line = (one.replace("PYTHON", sys.executable) for one in PROGRAMS[name])
        subprocess.run(["sh", "-c", setup], cwd=directory, check=True)
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
