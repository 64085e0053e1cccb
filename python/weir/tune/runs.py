# SPDX-License-Identifier: Apache-2.0
"""One run of the command, and its figures out of its trace."""

from __future__ import annotations

import math
import os
import resource
import select
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from weir._errors import StorageError
from weir._files import complete_file
from weir.advise.findings.small_requests.finding import stream_flushes
from weir.advise.frame.facts import Facts, File
from weir.advise.frame.speeds import Probed
from weir.analysis.exclusion import exclusion_of
from weir.capture._command import shell_status
from weir.capture._left import BYTES_STATUS
from weir.report import build
from weir.report.layers.compute import LayeredFile, layers_of
from weir.trace.job import read_job
from weir.tune.outputs import Output

# Calls that the kernel or the C library answers without the file system.
_WITHIN = ("lseek", "fseek", "ftell", "rewind", "dup", "dup2", "dup3", "fcntl", "fdopen", "setvbuf",
    "munmap", "posix_fadvise")  # fmt: skip
_FLUSHES = ("fflush",)
# Statistics of the layer pack.
_PACKED = (("pack", "stored"), ("pack", "served"))
_SPILLED = (("pack", "spilled"),)
# And of the layer stage.
_STAGED = (("stage", "staged"), ("stage", "from_tier"))
_AT_ITS_PLACE = (("stage", "in_place"), ("stage", "moved"))
# And of the layer keep: opens that a kept descriptor serves, with the close before each; queries
# for that.
_REOPENED, _CHECKED = (("keep", "reopened"),), (("keep", "revalidated"),)
_OF_A_COPY, _COPIED_BYTES = 4, 1 << 20  # create, close, times, rename; bytes of a request
_OF_ARCHIVES = (("pack", "container_writes"), ("pack", "container_reads"))
_SILENT_S = 2.0  # without standard input, after which a note says what is waited for
_POLITE_S = 10.0  # a launcher has ranks to end
PLAIN, TUNED, SEARCH = "plain", "tuned", "search"


@dataclass(frozen=True)
class FileCost:
    """What the files of a rule cost: I/O seconds of all ranks, requests to the file system. files:
    their number, None in runs of a weir that did not count them."""

    io_s: float = 0.0
    requests: int = 0
    files: int | None = None


@dataclass(frozen=True)
class Figures:
    """requests: reads, writes and the calls that are neither, as they reached the file system as
    far as the trace shows it. active_s, critical_s: None where they are not known. by_rule: by the
    path of the rule."""

    wall_s: float
    cpu_s: float
    io_s: float
    active_s: float | None
    critical_s: float | None
    requests: int
    by_rule: dict[str, FileCost] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """A run that ended well. kind: PLAIN, TUNED or SEARCH; rules: paths of those in force; setting:
    of a search, by the names of its parameters."""

    number: int
    kind: str
    rules: tuple[str, ...]
    figures: Figures
    outputs: dict[str, Output]
    setting: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """What came of starting the command. status: of weir trace; command: of the command itself as
    job.json has it, None where weir trace did not come to write it."""

    status: int
    command: int | None
    wall_s: float
    cpu_s: float

    @property
    def is_of_weir(self) -> bool:
        """Whether it is weir trace that failed. It ends with the status of the command where that
        is not 0. Where bytes did not get to their files, the rules are at fault."""
        ended = None if self.command is None else shell_status(self.command)
        return self.status not in (0, BYTES_STATUS, ended)


def execute(command: Sequence[str], work: Path, trace: Path, rules: Path | None,
        output: Path | None, given: Path | None = None,
        environment: Mapping[str, str] | None = None) -> Started:
    """Run it in its directory, traced. output: a file for what it prints, None: where weir prints.
    given: what it reads as its standard input, None: nothing. environment: more variables."""
    words = [sys.executable, "-m", "weir", "trace", "--quiet", "--overwrite", "-o", str(trace)]
    words += ["--rules", str(rules)] if rules is not None else []
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with open(given or os.devnull, "rb") as stdin, ExitStack() as files:
        to: dict[str, Any] = {}
        if output is not None:
            to = {"stdout": files.enter_context(open(output, "wb")), "stderr": subprocess.STDOUT}
        status = _ended(subprocess.Popen([*words, "--", *command], cwd=work, stdin=stdin,
            env={**os.environ, "PWD": str(work), **(environment or {})}, **to))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))
    job, _ = read_job(trace / "main" / "job.json")
    return Started(status, None if job is None else job.exit_status, time.monotonic() - begin, cpu)


def save_stdin(path: Path, note: Callable[[str], None]) -> Path | None:
    """Standard input for each run; None where it is a terminal, a device or closed. Raises
    StorageError."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return None
    if stat.S_ISCHR(mode) or stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode) and not select.select([0], [], [], _SILENT_S)[0]:
        note("waiting for the end of standard input, which each run gets; use < /dev/null if the "
             "command reads none")
    try:
        with complete_file(path) as file, open(0, "rb", closefd=False) as stdin:
            shutil.copyfileobj(stdin, file)
    except OSError as error:
        raise StorageError(f"{path}: standard input cannot be saved: {error.strerror}") from error
    return path


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Its status. Where a signal interrupts the wait, the command is ended first."""
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        try:
            process.wait(_POLITE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def facts_of(trace: Path, probes: Mapping[str, Probed], tier: str) -> Facts:
    return Facts(build(str(trace), exclusion=exclusion_of(None, None)), probes, tier)


def figures_of(facts: Facts, started: Started, rules: Sequence[str]) -> Figures:
    """Wall time is that of the steps as they were traced."""
    report = facts.report
    layered = {one.file: one for one in layers_of(report)}
    costs = []
    for file in facts.files.values():
        names = (file.path, *(file.totals.also if file.totals is not None else ()))
        below = next((layered[name] for name in names if name in layered), None)
        is_renamed_away = bool(rules) and not any(fnmatchcase(file.path, rule) for rule in rules)
        requests = requests_at_system(file, below, is_real=is_renamed_away)
        costs.append((names, FileCost(file.ns / 1e9, requests, 1)))
    costs += [((one.file,), FileCost(0.0, _sum(one, _OF_ARCHIVES), 0)) for one in layered.values()
        if _sum(one, _OF_ARCHIVES)]
    critical = [one.critical_ns for one in facts.files.values()]
    return Figures(
        wall_s=facts.wall_s, cpu_s=started.cpu_s, io_s=report.all.seconds,
        active_s=None if report.active_ns is None else report.active_ns / 1e9,
        critical_s=None if None in critical else sum(filter(None, critical)) / 1e9,
        requests=sum(cost.requests for _, cost in costs),
        by_rule={rule: _of_rule(rule, costs) for rule in rules},
    )  # fmt: skip


def _of_rule(rule: str, costs: Sequence[tuple[tuple[str, ...], FileCost]]) -> FileCost:
    """Of files that the rule matches under any of their names."""
    chosen = [cost for names, cost in costs if any(fnmatchcase(name, rule) for name in names)]
    return FileCost(sum(one.io_s for one in chosen), sum(one.requests for one in chosen),
        sum(one.files or 0 for one in chosen))


def _sum(layered: LayeredFile, figures: Sequence[tuple[str, str]]) -> int:
    """Of statistics of layers, by layer and name."""
    return sum(one.value for one in layered.figures if (one.layer, one.name) in figures)


def requests_at_system(file: File, layered: LayeredFile | None, *, is_real: bool = False) -> int:
    """Of one file: below the layers where these stand. A packed file is memory; its archive has the
    requests. A staged one is on the tier, and is copied to its place if it was written. is_real: it
    was renamed to a path that no rule matches, which makes a real file."""
    if layered is not None and _sum(layered, _PACKED) and not (
            is_real or _sum(layered, _SPILLED)):
        return 0
    if layered is not None and _sum(layered, _STAGED) and not _sum(layered, _AT_ITS_PLACE):
        return _OF_A_COPY + math.ceil(file.written / _COPIED_BYTES) if file.written else 0
    others = max(0, file.of_class("OCM")[0] - file.of(_WITHIN)[0])
    flushes = file.of(_FLUSHES)[0]
    if layered is None:
        others += max(0, stream_flushes(file, "write")[0] - flushes)  # seeks, of what is written
    elif layered.system is not None:
        others -= flushes  # what the layers write of them is counted below these
    if layered is not None:
        others = max(0, others - 2 * _sum(layered, _REOPENED) + _sum(layered, _CHECKED))
    calls = file.requests("R") + file.requests("W")
    if layered is None:
        return calls + others
    if layered.system is not None:
        return layered.system.count + others
    most = layered.most_at_system(calls - file.of_posix("RW"))
    return others + (calls if most is None else min(most, calls))


def relative(words: Sequence[str], directory: Path, work: Path) -> list[str]:
    """The command with the paths of the user's directory replaced by those of the copy, which lies
    within it: a word such as ../bin/model, also behind an =, becomes absolute."""
    return [_moved(_absolute(word, directory), str(directory), str(work)) for word in words]


def _absolute(word: str, directory: Path) -> str:
    """Where it names a file above the directory."""
    begin, equals, path = word.rpartition("=")
    if os.path.isabs(path) or not os.path.normpath(path).startswith(".."):
        return word
    path = os.path.normpath(directory / path)
    return begin + equals + path if os.path.exists(path) else word


def _moved(word: str, directory: str, work: str) -> str:
    """Only whole components: /a/b is no part of /a/bc."""
    made, at = [], 0
    while (found := word.find(directory, at)) >= 0:
        end = found + len(directory)
        is_whole = word[end : end + 1] in ("", "/", ":", ",", "'", '"', " ", ";")
        is_begin = found == 0 or not (word[found - 1].isalnum() or word[found - 1] in "/._-")
        made += [word[at:found], work if is_whole and is_begin else directory]
        at = end
    return "".join([*made, word[at:]])


def environment_mentions(directory: Path) -> list[str]:
    """Variables whose value names the user's directory: the command may write there."""
    ignored = ("PWD", "OLDPWD", "PATH", "_")
    return sorted(name for name, value in os.environ.items()
        if name not in ignored and relative([value], directory, Path("/")) != [value])
