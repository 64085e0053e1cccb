# SPDX-License-Identifier: Apache-2.0
"""``weir trace``: one step around one command. The command runs whatever becomes of the trace."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import weir
from weir._errors import InputError, StorageError
from weir._native import PRELOAD, LibraryMissing, library_path
from weir.capture import _number
from weir.capture._background import background_note, in_background
from weir.capture._command import CannotStart, find_program, run_command, shell_status, word
from weir.capture._count import Count, count_traces
from weir.capture._environment import (
    PRELOAD_VARIABLE,
    check_level,
    check_share,
    idle_environment,
    parse_budget,
    rules_variables,
    tracing_variables,
    without_library,
)
from weir.capture._launcher import is_open_mpi, with_forwarding
from weir.capture._left import BYTES_STATUS, Left
from weir.capture._run import (
    Job,
    batch_job,
    check_run,
    check_step,
    children_io,
    job_name,
    make_step,
    trace_files,
    user_name,
)
from weir.capture._unseen import REFUSES, unseen_programs, why_without_library

NO_TRACE_STATUS = 3


@dataclass(frozen=True)
class Options:
    """What ``weir trace`` and ``weir env`` are asked for."""

    run: str = "weir-run"
    step: str = "main"
    level: str = "trace"
    budget: str = "4G"
    overwrite: bool = False
    quiet: bool = False
    share: str | None = None  # who else may read the run: group or all
    # collectives, messages and waits of MPI are recorded, unless the environment has WEIR_MPI=0
    mpi: bool = True


@dataclass(frozen=True)
class Prepared:
    """A step that can be traced into: its directory, its job.json as first written, the preload
    library."""

    directory: str
    job: Job
    library: str


def say(message: str) -> None:
    """One message to standard error, in one write, so that it does not mix with what the command's
    children say."""
    sys.stderr.write(f"weir: {message}\n")
    sys.stderr.flush()


def preload_library() -> str:
    """The absolute path of the preload library. Raises InputError when it is not there or its path
    cannot be used."""
    try:
        library = str(library_path(PRELOAD))
    except LibraryMissing as error:
        raise InputError(str(error)) from error
    if " " in library or ":" in library:
        raise InputError(
            f"{library}: blanks and colons separate the entries of LD_PRELOAD; install weir in a "
            f"directory without them")
    return library


def prepare(options: Options, environ: Mapping[str, str], command: Sequence[str] | None,
        rules: str | None = None) -> Prepared:
    """Check everything and make the step's directory and job.json. rules: compiled, of its layers.

    Raises UsageError for what must be asked differently, StorageError or InputError when no trace
    can be had here.
    """
    check_level(options.level)
    check_share(options.share)
    check_step(options.step)
    check_run(options.run)
    budget_bytes = parse_budget(options.budget)
    library = preload_library()
    rules = environ.get("WEIR_RULES") if rules is None else rules
    directory = make_step(options.run, options.step, options.overwrite,
        environ.get("WEIR_TRACE_DIR"), command is None, options.share)
    system, job_id = batch_job(environ)
    job = Job(
        step=options.step,
        command=list(command) if command is not None else None,
        cwd=os.getcwd(),
        level=options.level,
        budget_bytes=budget_bytes,
        weir=weir.__version__,
        started_realtime_ns=time.time_ns(),
        user=user_name(),
        batch_system=system,
        job_id=job_id,
        rules=rules,
        node_job=job_name(environ) if rules is not None else None,
    )
    try:
        job.write(directory, options.share)
    except OSError as error:
        raise StorageError(
            f"{directory}: the trace cannot be written here: {error.strerror}") from error
    return Prepared(directory, job, library)


def launch(options: Options, command: Sequence[str], environ: Mapping[str, str],
        rules: str | None = None) -> int:
    """Run the command as a step, with the layers of compiled rules if there are any; the status to
    exit with.

    Raises UsageError before anything is started.
    """
    if rules is not None or "WEIR_RULES" in environ:
        _layer_modules()  # loading them takes no part of the time of the step
    try:
        step = prepare(options, environ, command, rules)
    except (StorageError, InputError) as error:
        say(f"{error}; the program runs without a trace")
        return _run_untraced(command, environ, rules, options.quiet)
    variables = tracing_variables(environ, step.library, step.directory, options.level,
        step.job.budget_bytes, options.share)
    if not options.mpi:
        variables["WEIR_MPI"] = "0"
    if rules is not None:
        variables |= rules_variables(environ, step.library, rules)
    before = children_io()
    try:
        ended = _run_preloaded(command, environ, variables, step.library)
    except CannotStart as error:
        _finish(step, error.status)
        say(str(error))
        return error.status
    status = ended.status
    finished = _finish(step, status, before, ended.pid)
    displaced = _say_left(ended, options.quiet)
    own = _judge_trace(options, step, command, environ, status, finished)
    return shell_status(status) or (BYTES_STATUS if displaced else own)


def _judge_trace(options: Options, step: Prepared, command: Sequence[str],
        environ: Mapping[str, str], status: int, finished: bool) -> int:
    """Say what the trace has; the status that it gives to a command that succeeded."""
    background = in_background(step.directory)
    count = count_traces(trace_files(step.directory))
    empty = count.processes == 0
    if count.launchers and not count.ranks and _starts_ranks(command):
        say(_no_rank(shell_status(status), command))
        return NO_TRACE_STATUS
    if empty and count.nodes == 0 and finished and is_weir(command, environ):
        if not options.quiet:
            say(f"nothing in {step.directory}: weir's own commands are not recorded")
        return 0
    if empty:
        refused = (command[0], REFUSES) in unseen_programs(command[:1], environ)
        known = REFUSES if refused else why_without_library(command[0], environ)
        say(f"no trace: {command[0]}: {known}" if known and count.nodes == 0
            else _why_none(step.directory, command[0], count, status))
    elif finished and not options.quiet:
        say(_note(options, step.directory, count))
    if background:
        say(background_note(background))
    return NO_TRACE_STATUS if empty or not finished else 0


def launch_layered(command: Sequence[str], environ: Mapping[str, str], rules: str,
        quiet: bool = False) -> int:
    """Run the command with the layers of compiled rules and no trace of its own; the status to exit
    with.

    Programs in the command that the library cannot be put into are named when it has ended. Raises
    InputError, with nothing started, when the preload library is missing.
    """
    library = preload_library()
    try:
        ended = _run_preloaded(command, environ, rules_variables(environ, library, rules), library)
    except CannotStart as error:
        say(str(error))
        return error.status
    displaced = _say_left(ended, quiet)
    for program, why in unseen_programs(command, environ):
        say(f"{program}: its files had no layers: {why} (see: weir doctor {word(program)})")
    return shell_status(ended.status) or (BYTES_STATUS if displaced else 0)


@dataclass(frozen=True)
class _Ended:
    """A command that has ended. environ: with its variables."""

    status: int
    pid: int
    environ: Mapping[str, str]
    left: Sequence[Left] = ()


def _say_left(ended: _Ended, quiet: bool) -> bool:
    """Print what the command has left behind; whether bytes that it wrote could not get to their
    files. Waits a moment for what a tier brings there in the background."""
    lefts = [*ended.left]
    if "WEIR_RULES" in ended.environ:
        _, tier = _layer_modules()
        lefts.append(tier.settle(ended.environ, quiet))
    for message in dict.fromkeys(message for left in lefts for message in left.said):
        say(message)
    return any(left.displaced for left in lefts)


def _run_preloaded(command: Sequence[str], environ: Mapping[str, str], variables: Mapping[str, str],
        library: str) -> _Ended:
    """Run the command with these variables set on all its nodes. Raises CannotStart."""
    arguments, preloaded = list(command), {**environ, **variables}
    if "WEIR_RULES" in preloaded:
        preloaded[_number.VARIABLE] = str(_number.make_number(environ))
    started: list[int] = []
    if is_open_mpi(command[0], idle_environment(environ)):
        arguments, preloaded = with_forwarding(command, preloaded, library)
    if why_without_library(command[0], environ):
        if rest := without_library(preloaded.pop(PRELOAD_VARIABLE)):
            preloaded[PRELOAD_VARIABLE] = rest
    if "WEIR_RULES" not in preloaded:
        return _Ended(run_command(arguments, preloaded, started.append), *started, preloaded)
    drain, tier = _layer_modules()
    status = run_command(arguments, preloaded, started.append)
    lost = drain.finish(preloaded, preloaded.get("WEIR_TRACE_DIR"))
    return _Ended(status, *started, preloaded, (lost, tier.finish(preloaded)))


def _layer_modules() -> tuple[ModuleType, ModuleType]:
    """What waits for bytes that layers hold. Commands without layers start without loading it."""
    from weir.capture import drain, tier

    return drain, tier


def is_weir(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the command is weir's own script, run as such or by a Python: the preload library
    leaves those alone."""
    script = next((w for w in command[:2] if os.path.basename(w) == "weir"), None)
    if script is None or (script is not command[0] and not os.path.basename(command[0])
            .startswith("python")):
        return False
    try:
        with open(find_program(script, environ), "rb") as file:
            line = file.readline(4096)
    except (CannotStart, OSError):
        return False
    return line.startswith(b"#!") and b"python" in line


def _run_untraced(command: Sequence[str], environ: Mapping[str, str], rules: str | None,
        quiet: bool) -> int:
    idle = idle_environment(environ)
    try:
        if rules is not None:
            return launch_layered(command, idle, rules, quiet) or NO_TRACE_STATUS
        return shell_status(run_command(command, idle)) or NO_TRACE_STATUS
    except InputError:  # no library, which was said already
        return shell_status(run_command(command, idle)) or NO_TRACE_STATUS
    except CannotStart as error:
        say(str(error))
        return error.status


def _no_rank(status: int, command: Sequence[str]) -> str:
    """A launcher that failed has said itself why no rank was started."""
    if status:
        return (f"no rank was traced: the launcher ended with exit status {status}; "
            "what it printed above says why")
    said = "no rank was traced: the launcher alone left records; "
    if any(PRELOAD_VARIABLE in one for one in command):
        return (f"{said}the command sets LD_PRELOAD for its ranks, in place of weir's library: set "
            "it for weir trace instead (LD_PRELOAD=... weir trace ...), which puts both there")
    return (f"{said}its ranks were started without LD_PRELOAD and WEIR_TRACE_DIR "
        "(srun --export=NONE, SLURM_EXPORT_ENV): hand them on, as docs/guide/cluster.md says")


def _starts_ranks(command: Sequence[str]) -> bool:
    """Whether there is more than options that print something and end."""
    return any(not word.startswith("-") for word in command[1:])


def _finish(step: Prepared, status: int | None, before: list[int] | None = None,
        pid: int | None = None) -> bool:
    after = children_io() if before is not None else None
    counted = [max(0, last - first)
        for first, last in zip(before, after)] if before and after else None
    try:
        step.job.ended(status, counted, pid).write(step.directory)
    except FileNotFoundError:  # the program removed it, which is said where the trace is missed
        return False
    except OSError as error:
        say(f"{step.directory}: job.json cannot be completed: {error.strerror}")
        return False
    return True


def _why_none(directory: str, program: str, count: Count, status: int) -> str:
    if not os.path.isdir(directory):
        return f"no trace: {directory} was removed while the program ran"
    if count.nodes:
        return f"no trace: the file in {directory} holds no process; it could not grow (disk full?)"
    if status < 0:
        killed = signal.Signals(-status).name if -status in list(
            signal.Signals) else f"signal {-status}"
        return (
            f"no trace: {program} was killed by {killed} before it recorded anything (see: weir "
            f"doctor {word(program)})"
        )
    return (
        f"no trace: {program} wrote none into {directory}; a static or setuid program, or one "
        f"started with an environment "
        f"of its own, cannot be seen (see: weir doctor {word(program)})"
    )


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else (
        f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"
    )


def _note(options: Options, directory: str, count: Count) -> str:
    held = [_plural(count.processes, "process")]
    if count.nodes > 1:
        held.append(_plural(count.nodes, "node"))
    if count.events:
        held.append(_plural(count.events, "record"))
    if count.calls:
        held.append(f"{count.calls:,} calls in counters")
    if count.lost:
        held.append(f"{count.lost:,} calls lost")


    look = f"weir report {word(options.run)}"
    return f"{', '.join(held)} in {directory}; look with: {look}"
