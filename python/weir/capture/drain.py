# SPDX-License-Identifier: Apache-2.0
"""Bytes that programs had accepted when they died: where they lie, waiting until the write-back
daemon has written them, and what it could not write. The daemon is the program ``weir-drain``
(native/layers/writeback/daemon); the files are those of docs/formats/arena.md. All of this is about
one node, the one it runs on."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir._errors import InputError, NotThere
from weir._native import DRAIN, LibraryMissing, library_path
from weir.capture._left import Left
from weir.capture._number import is_within, number_of
from weir.capture._run import job_name

SHARED_MEMORY = Path("/dev/shm")
MOST_JOBS = 10  # names in a message
_REPORTED = "reported_bytes"  # of a line that marks the first bytes of a report as reported


@dataclass(frozen=True)
class Arena:
    """One process's (or, shared, one node's) dirty bytes. ``failed``: some could not be written
    when they were due."""

    directory: Path
    name: str
    pid: int
    alive: bool
    dirty_bytes: int
    failed: bool


@dataclass(frozen=True)
class Loss:
    """Accepted bytes of a file that did not reach it. run: the number of the run that the process
    belonged to; 0: to none."""

    path: str
    error: str
    lost_bytes: int
    pid: int
    run: int = 0

    @property
    def orphaned(self) -> bool:
        """Whether no process has the file any more: nobody can write the bytes."""
        return self.error == "EOWNERDEAD"

    def __str__(self) -> str:
        if self.orphaned:
            return (
                f"{self.path}: {self.lost_bytes} bytes of a write that did not return are in "
                f"memory and belong to no process any more"
            )
        return (
            f"{self.path}: {self.lost_bytes:,} bytes accepted from process {self.pid} are not on "
            f"disk: {os.strerror(getattr(errno, self.error, 0))} ({self.error})"
        )


def node_directories(job: str) -> list[Path]:
    """The directories of the job on this node: one, or one for each emulated node."""
    directory = _job_directory(job)
    if not directory.is_dir() or _is_refused(directory):
        return []
    return sorted(node for node in directory.iterdir() if node.name.isdigit())


def missing_job(job: str) -> str:
    """A sentence when nothing of the job is on this node: where it was looked for; "" otherwise."""
    directory = _job_directory(job)
    if os.path.lexists(directory):
        return ""
    prefix = f"weir.{os.geteuid()}."
    names = sorted(path.name.removeprefix(prefix) for path in SHARED_MEMORY.glob(prefix + "*"))
    there = (f"this user's jobs here: {_listed(names, job)}" if names
        else "this user has no job here")
    return f"job {job}: no bytes are held on this node: {directory} does not exist; {there}"


def _listed(names: list[str], job: str) -> str:
    """Of many, those that are most like the job's name."""
    if len(names) <= MOST_JOBS:
        return ", ".join(names)
    import difflib

    near = difflib.get_close_matches(job, names, MOST_JOBS, 0.0)
    return f"{', '.join(sorted(near))} and {len(names) - MOST_JOBS} more"


def require_job(job: str) -> None:
    """Raises NotThere when nothing of the job is on this node."""
    if sentence := missing_job(job):
        hint = (
            "name another job with --job, or run the command on the node on which the program ran"
        )
        raise NotThere(f"{sentence}; {hint}")


def _job_directory(job: str) -> Path:
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", job.encode("utf-8", "surrogateescape")[:64]
        .decode("latin-1"))
    return SHARED_MEMORY / f"weir.{os.geteuid()}.{safe}"


def _is_refused(directory: Path) -> bool:
    """As the library refuses it: another user may have made it."""
    try:
        about = os.lstat(directory)
    except OSError:
        return False
    return not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid(
        ) or about.st_mode & 0o077 != 0


def arenas(job: str) -> list[Arena]:
    """Every arena of the job on this node. Raises InputError when the program weir-drain is
    missing."""
    found = []
    for directory in node_directories(job):
        lines = _call("--status", directory).stdout.splitlines()
        for one in map(json.loads, lines):
            found.append(Arena(directory, one["arena"], one["pid"], one["alive"],
                one["dirty_bytes"], one["failed"]))
    return found


def refusals(job: str) -> list[str]:
    """A sentence for each arena that is not written out because another than a program of the job
    could have made it."""
    directory = _job_directory(job)
    if _is_refused(directory):
        return [f"{directory}: refused: it is not a directory of this user alone"]
    return [line for node in node_directories(job) for line in _call("--status",
        node).stderr.splitlines()]


def wait(job: str, run: str | None = None) -> bool:
    """Wait until what dead programs had accepted is written, as far as it can be. False: something
    is not.

    Whatever daemon is running does it; where there is none it is done here. Failures are added to
    the directory's report, and to the one in ``run``.
    """
    return all([_call("--wait", directory, run).returncode == 0
        for directory in node_directories(job)])


def recover(job: str, run: str | None = None) -> bool:
    """The same, and what could not be written before is tried again."""
    return all([_call("--recover", directory, run).returncode == 0
        for directory in node_directories(job)])


def discard(job: str) -> dict[str, int]:
    """Try once more what dead programs had accepted, then give up what cannot be written: bytes by
    file, lost from now on."""
    given_up: Counter[str] = Counter()
    if not recover(job):
        for directory in node_directories(job):
            for one in map(json.loads, _call("--discard", directory).stdout.splitlines()):
                given_up[one["path"]] += one["bytes"]
    return dict(given_up)


def report_sizes(job: str) -> dict[Path, int]:
    """How long each report is now: what losses_since() skips."""
    return {path: path.stat().st_size for path in _reports(job)}


def losses_since(job: str, before: Mapping[Path, int]) -> list[Loss]:
    """What has been reported since."""
    found = []
    for path in _reports(job):
        with path.open("rb") as file:
            file.seek(before.get(path, 0))
            found += _losses(file.read())
    return found


def _losses(report: bytes) -> list[Loss]:
    lines = map(json.loads, report.decode("utf-8", "surrogateescape").splitlines())
    return [Loss(one["path"], one["error"], one["lost_bytes"], one["pid"], one.get("run", 0))
        for one in lines if _REPORTED not in one]


def take_unnumbered(job: str) -> list[Loss]:
    """What programs have lost that belong to no run and that was not taken before: whoever takes it
    reports it."""
    return [loss for path in _reports(job) for loss in _taken(path)]


def _taken(path: Path) -> list[Loss]:
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        report = file.read()
        done = max((json.loads(line)[_REPORTED] for line in report.splitlines()
            if line.startswith(b'{"%s"' % _REPORTED.encode())), default=0)
        found = [loss for loss in _losses(report[done:]) if loss.run == 0]
        if found:
            with open(path, "ab", buffering=0) as end:  # others append without the lock
                end.write(b'{"%s": %d}\n' % (_REPORTED.encode(), len(report)))
    return found


def finish(environ: Mapping[str, str], run: str | None = None) -> Left:
    """At the end of a command with layers: wait, and say in whole sentences what is lost and what
    can be done. Bytes that other runs of the job have lost are theirs to report; those of programs
    that belong to no run are said, and are not this one's."""
    job = job_name(environ)
    try:
        complete = wait(job, run)
    except InputError as error:
        return Left((str(error),))
    own = number_of(environ)
    new = [loss for loss in losses_since(job, {}) if is_within(loss.run, own)]
    said = [str(loss) for loss in new]
    said += [f"{loss} (of a program that weir run did not start; not lost by this command)"
        for loss in take_unnumbered(job)]
    directory = _job_directory(job)
    if _is_refused(directory):
        said.append(
            f"{directory} is not a directory of this user alone: layers that hold bytes bypassed "
            f"all files; "
            "have it removed, or set WEIR_JOB to another name"
        )
    if any(loss.orphaned for loss in new):
        said.append(f"no program waits for them: `weir drain --discard --job {job}` gives them up")
    # what other commands have reported is not this one's
    elif not complete and (new or not any(report_sizes(job).values())):
        said.append(f"what is not on disk is kept in memory: make room, then `weir drain --recover "
                    f"--job {job}`")
    return Left(tuple(said), bool(new))


def _reports(job: str) -> list[Path]:
    return [path for directory in node_directories(job) if (path := directory / "errors").is_file()]


def _call(what: str, directory: Path, run: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        command: Sequence[str] = [str(library_path(DRAIN)), what, str(directory),
            *([run] if run else [])]
    except LibraryMissing as error:
        raise InputError(str(error)) from error
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
