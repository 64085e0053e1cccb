#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weir advise` expects of its rules and what they bring, over the workloads: each case is
tuned (`weir tune`), and expected and obtained seconds stand side by side.

    python bench/estimates.py [--only scf,olam] [--preset lustre] [--runs 4] [--allow stage,pack]
        [--directory DIR] [--json FILE [--resume] [--round third]] [--out DIR]
    python bench/estimates.py --page docs/validation/estimates.md [--json ALL] FILE...

A case is one line of estimate_cases.py: how its input is made, and the command (IOR and mdtest,
which Debian does not package, are built of their source with the MPI that weir bench finds). It
runs in a directory of its own on the test file system, and on DIR (a local disk) with --preset
none. The page has all rows, good or bad; a row counts as within when the obtained I/O seconds,
plain less tuned, lie in the expected range.

FILE is written after each case. A case that fails is a line with its reason, and the next one is
run; so is a case that takes longer than --minutes. --resume goes on where FILE ends, and runs cases
that failed once more. --round: the held-out round that the cases belong to, while the model has not
been fitted to them; without --only all its cases are run. estimate_fifth.py lists the packages that
its cases need.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from estimate_cases import CASES, OTHERS, RANKS, ROUNDS
from estimate_page import page_text
from estimate_rows import Failed, Labels, Results, Row, Whole, read
from weir._errors import Error
from weir.advise.advise import together
from weir.advise.probes import probes
from weir.bench._programs import Mpi, choose_mpi
from weir.probe.cache import probe
from weir.testfs import mounted
from weir.tune.decide import medians, of_kind, rule_gains, wall_gain
from weir.tune.runs import PLAIN, TUNED
from weir.tune.tune import Options, Outcome, Tuning

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = {name: one for part in (OTHERS, *ROUNDS.values()) for name, one in part.items()}
SLACK_S = 120  # beside --minutes, for the input and the last run
SCRIPTS = {"4dvar": "run"}  # workloads that a script runs, step after step


def main() -> int:
    options = parsed()
    if options.page:
        every = read(options.sources)
        Path(options.page).write_text(page_text(every))
        if options.json:
            Path(options.json).write_text(every.json() + "\n")
        return 0
    found = Results(Path(options.json) if options.json else None, options.resume)
    mpi = choose_mpi(None, ROOT / "build/native/workloads/overlap/{mpi}/weir-overlap")
    os.environ.update(mpi.environment)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a rank is one of several on the node
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
            if not found.has(name, named(options.preset)):
                run_case(name, mpi, place, scratch, options, found)
                shutil.rmtree(place / name, ignore_errors=True)
    return 1 if found.failures else 0


def run_case(name: str, mpi: Mpi, place: Path, scratch: Path, options: argparse.Namespace,
        found: Results) -> None:
    """Its rows, or the reason why it has none; what it started is ended."""
    labels = Labels(name, named(options.preset), options.round, round(os.getloadavg()[0], 1))
    if (program := missing(name)) is not None:
        found.add_failure(Failed(**asdict(labels), why=f"no {program} on PATH"))
        return
    before = signal.signal(signal.SIGALRM, _ended)
    signal.alarm(round(60 * options.minutes) + SLACK_S)
    try:
        outcome = tuned(name, mpi, place, scratch, options)
        found.add(rows_of(labels, outcome), whole_of(labels, outcome))
    except Exception as error:  # whatever it is, the other cases are run
        if not isinstance(error, (Error, OSError, subprocess.CalledProcessError)):
            traceback.print_exc()
        why = f"{type(error).__name__}: {error}".replace(sys.executable, "PYTHON")
        found.add_failure(Failed(**asdict(labels), why=why))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def named(preset: str) -> str:
    """Of the place in tables."""
    return "disk" if preset == "none" else preset


def _ended(*_: object) -> None:
    raise TimeoutError("it takes longer than --minutes")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of cases, with commas; else those of --round, or all")
    parser.add_argument("--preset", default="lustre", help="of the test file system; none: a disk")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=10, help="at most, of each case")
    parser.add_argument("--allow", default="", help="stage,pack")
    parser.add_argument("--directory", default=None)
    parser.add_argument("--json", default=None)
    parser.add_argument("--resume", action="store_true", help="keep what the file of --json has")
    parser.add_argument("--round", default="", choices=("", *ROUNDS), help="of held-out cases")
    parser.add_argument("--out", default=None, help="keep reports and traces of weir tune there")
    parser.add_argument("--no-probe", action="store_true")
    parser.add_argument("--page", help="write this page, and with --json all figures, from files of --json; run nothing")
    parser.add_argument("sources", nargs="*", help="files of --json, for --page")
    options = parser.parse_args()
    if options.only is None:
        options.only = ",".join(ROUNDS.get(options.round) or (*CASES, *PROGRAMS))
    if unknown := [one for one in options.only.split(",") if one not in {*CASES, *PROGRAMS}]:
        parser.error(f"--only: no case is called {', '.join(unknown)}")
    if options.resume and not options.json:
        parser.error("--resume needs --json FILE")
    return options


def missing(name: str) -> str | None:
    """The program of a case that is not there."""
    words = shlex.split(PROGRAMS[name][1]) if name in PROGRAMS else ["sh"]
    program = words[words[0] == "MPIRUN"].replace("PYTHON", sys.executable)
    return None if shutil.which(program) else program


def tuned(name: str, mpi: Mpi, place: Path, scratch: Path, options: argparse.Namespace) -> Outcome:
    directory = place / name
    directory.mkdir()
    out = (Path(options.out).resolve() if options.out else scratch) / f"out-{name}"
    shutil.rmtree(out, ignore_errors=True)  # of a case that was interrupted
    out.mkdir(parents=True)
    if name in PROGRAMS:
        setup, line = (one.replace("PYTHON", sys.executable) for one in PROGRAMS[name])
        subprocess.run(["sh", "-c", setup], cwd=directory, check=True, stdin=subprocess.DEVNULL)
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
    return Tuning(out, directory, command, Options(options.runs, options.minutes, allow, probes()),
        lambda line: print(f"{name}: {line}", file=sys.stderr)).run()


def rows_of(labels: Labels, found: Outcome) -> list[Row]:
    """All rules that were tried, those that were dropped as well."""
    tried = {one.rule.path: one for one in found.report.rules if one.rule is not None}
    gains = rule_gains(found.state.runs, list(tried))
    first = found.state.runs[0].figures.by_rule
    return [Row(**asdict(labels), finding=tried[one.rule].finding,
        stack=tried[one.rule].rule.stack,
        low=tried[one.rule].saving.io.low * one.before_s / max(first[one.rule].io_s, 1e-9),
        high=tried[one.rule].saving.io.high * one.before_s / max(first[one.rule].io_s, 1e-9),
        obtained=one.saved_s, requests_before=one.before_requests,
        requests_after=one.after_requests,
        kept=one.rule not in found.state.dropped) for one in gains]  # fmt: skip


def whole_of(labels: Labels, found: Outcome) -> Whole:
    """Of the runs with the rules that were in force first."""
    from weir.tune.text import sentence

    runs = found.state.runs
    plain = of_kind(runs, PLAIN)
    used = next((one.rules for one in of_kind(runs, TUNED)), ())
    tuned_runs = of_kind(runs, TUNED, used)
    key = "critical_s" if runs[0].figures.critical_s is not None else "io_s"
    now = medians(plain, key) or 0.0
    longer = now / max(getattr(runs[0].figures, key), 1e-9)
    expected = together(found.report.facts, [one for one in found.report.rules
        if one.rule is not None and one.rule.path in used]).times(longer)
    gain = wall_gain(runs, used) if tuned_runs else None
    return Whole(**asdict(labels), plain_s=medians(plain, "wall_s") or 0.0,
        tuned_s=medians(tuned_runs, "wall_s"), low=expected.low, high=expected.high,
        sentence=sentence(found),
        findings=tuple(dict.fromkeys(one.finding for one in found.report.advices)),
        gain=gain and gain.middle, gain_low=gain and gain.low, gain_high=gain and gain.high,
        plain_delay_s=now, tuned_delay_s=medians(tuned_runs, key),
        runs=(len(plain), len(tuned_runs)))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
