# SPDX-License-Identifier: Apache-2.0
"""Run directories and job.json, as docs/formats/trace.md has them (sections 1 and 7)."""

from __future__ import annotations

import errno
import glob
import json
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from weir._errors import InputError, StorageError, UsageError
from weir._files import complete_file

FORMAT = 1
JOB_FILE = "job.json"
TRACE_SUFFIX = ".weir"
LONGEST_NAME_BYTES = 255
# Permissions by who shares a run. Command lines and names of files are in it: nobody else's
# business unless its owner says so.
_FILE_MODES = {None: 0o600, "group": 0o640, "all": 0o644}
_DIRECTORY_MODES = {None: 0o700, "group": 0o750, "all": 0o755}
LEAST_SPACE_BYTES = 256 << 10  # what a trace of one small program takes
# As native/layers/machinery/node/place.cc has them: the first that is set names the job.
_NODE_JOBS = ("WEIR_JOB", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")
# Variables that hold the number of the job: man sbatch, qsub, bsub, pjsub, flux-environment.
_BATCH_SYSTEMS = (
    ("SLURM_JOB_ID", "Slurm"),
    ("PBS_JOBID", "PBS"),
    ("LSB_JOBID", "LSF"),
    ("PJM_JOBID", "PJM"),
    ("FLUX_JOB_ID", "Flux"),
    ("COBALT_JOBID", "Cobalt"),
)


def check_step(step: str) -> str:
    """The name itself; raises UsageError when it cannot be the name of one directory."""

    def refuse(why: str) -> UsageError:
        return UsageError(
            f"--step {step!r}: {why}; a step is the name of one directory, for example traj0")

    if not step:
        raise refuse("the name is empty")
    if "/" in step:
        raise refuse("the name contains a slash")
    if step in (".", "..") or step.startswith("."):
        raise refuse("the name begins with a dot")
    if step.startswith("-"):
        raise refuse("the name begins with a dash, as options do; was it left out?")
    if any(ord(c) < 32 or ord(c) == 127 for c in step):
        raise refuse("the name contains control characters")
    if len(os.fsencode(step)) > LONGEST_NAME_BYTES:
        raise refuse(f"the name is longer than {LONGEST_NAME_BYTES} bytes")
    return step


def check_run(run: str) -> str:
    """The directory's name itself; raises UsageError when it looks like an option."""
    if not run:
        raise UsageError("-o '': the name of the directory is empty")
    if run.startswith("-"):
        raise UsageError(
            f"-o {run!r}: the directory's name begins with a dash, as options do; was it left out? "
            f"If not, write ./{run}")
    return run


@dataclass(frozen=True)
class Job:
    """What job.json says of a step. ``command`` is None for ``weir env``; a negative
    ``exit_status`` is a signal."""

    step: str
    command: list[str] | None
    cwd: str
    level: str
    budget_bytes: int
    weir: str
    started_realtime_ns: int
    ended_realtime_ns: int | None = None
    exit_status: int | None = None
    kernel_bytes: list[int] | None = None
    pid: int | None = None  # of the command
    user: str | None = None
    batch_system: str | None = None
    job_id: str | None = None
    rules: str | None = None  # WEIR_RULES, when the step began
    node_job: str | None = None  # what its programs call their job on a node
    format: int = FORMAT

    def write(self, directory: str, share: str | None = None) -> None:
        """Write directory/job.json so that a reader finds the old one or the new one whole. Raises
        OSError.

        share: who else may read a new one (`group`, `all`); one that is there keeps its
        permissions."""
        path = os.path.join(directory, JOB_FILE)
        text = json.dumps(asdict(self), indent=1) + "\n"
        try:
            with complete_file(path, _mode_of(path) or _FILE_MODES[share]) as file:
                file.write(text.encode("ascii"))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _write_in_place(path, text)

    def ended(self, exit_status: int | None, kernel_bytes: list[int] | None = None,
            pid: int | None = None) -> Job:
        return replace(self, ended_realtime_ns=time.time_ns(), exit_status=exit_status,
            kernel_bytes=kernel_bytes, pid=pid)


def user_name() -> str:
    """Of the user who starts the step; its number where it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def batch_job(environ: Mapping[str, str]) -> tuple[str, str] | tuple[None, None]:
    """The batch system and its number of the job in which weir runs; None outside a job."""
    for variable, system in _BATCH_SYSTEMS:
        if environ.get(variable):
            return system, environ[variable]
    return None, None


def job_name(environ: Mapping[str, str]) -> str:
    """What the programs of this environment call their job on a node."""
    return next((environ[name] for name in _NODE_JOBS if environ.get(name)), "none")


def _mode_of(path: str) -> int | None:
    """Of a file of this user; what another one has put there sets no permissions."""
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return stat.S_IMODE(about.st_mode) if stat.S_ISREG(
        about.st_mode) and about.st_uid == os.geteuid() else None


def _write_in_place(path: str, text: str) -> None:
    """On a full disk: the few bytes that are added at the end of a step fit into the block the file
    has already."""
    with open(path, "r+b", buffering=0, opener=lambda name, flags: os.open(name,
            flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
        file.write(text.encode("ascii"))
        file.truncate()


def layered_jobs(run: str) -> dict[str, str]:
    """Of the steps of a run that had layers: what their programs called their job, and its compiled
    rules, of several steps one after the other. Raises InputError where there is no step."""
    found: dict[str, str] = {}
    steps = sorted(glob.glob(os.path.join(glob.escape(run), "*", JOB_FILE)))
    if not steps:
        raise InputError(f"{run}: is no directory of a run: no step in it has {JOB_FILE}")
    for path in steps:
        try:
            with open(path, encoding="utf-8") as file:
                known = json.load(file)
            rules, job = known.get("rules"), known.get("node_job")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(rules, str) and isinstance(job, str):
            found[job] = found.get(job, "") + rules + "\n"
    return found


def trace_files(directory: str) -> list[str]:
    """Absolute names of the trace files of a step, sorted; none when the directory cannot be read.
    """
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return sorted(os.path.join(directory, n) for n in names if n.endswith(TRACE_SUFFIX))


def make_step(
    run: str, step: str, overwrite: bool, outer: str | None = None, begun: bool = False,
    share: str | None = None
) -> str:
    """Make the directory of a step, with the directories above it; its absolute name.

    Raises UsageError when it holds a trace and may not be overwritten, StorageError when it cannot
    be made. Of a step that is overwritten weir's own files alone are removed. ``outer``:
    WEIR_TRACE_DIR of the caller; that very step is refused once it holds a trace, and before, too,
    unless it was merely ``begun``, by a weir env which is now repeated. ``share``: who may read the
    directories that are made here beside their owner; one that is there keeps its permissions.
    """
    directory = os.path.join(os.path.abspath(run), step)
    try:
        _check_owner(directory)
        present = trace_files(directory)
        if (present or not begun) and outer and os.path.realpath(outer) == os.path.realpath(
                directory):
            raise UsageError(
                f"{directory}: this command is itself traced into that step; name another with "
                f"--step or -o")
        if present:
            if not overwrite:
                raise UsageError(
                    f"{directory}: this step holds a trace already; name another with --step or "
                    f"-o, or remove it with --overwrite"
                )
            for path in [*present, os.path.join(directory, JOB_FILE)]:
                with suppress(FileNotFoundError):
                    os.unlink(path)
        _make_directories(directory, _DIRECTORY_MODES[share])
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
        space = os.statvfs(directory)
        if space.f_bavail * space.f_frsize < LEAST_SPACE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)
    except OSError as error:
        raise StorageError(
            f"{directory}: the trace cannot be written here: {error.strerror or error}") from error
    return directory


def _check_owner(directory: str) -> None:
    """Raises StorageError when the directory is there and another user's: that one could replace
    what is written into it."""
    try:
        owner = os.stat(directory).st_uid
    except FileNotFoundError:
        return
    if owner in os.getresuid():
        return
    # On file systems that map users, what this user makes there has another owner, too.
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=directory, prefix=".owner.") as probe:
        if os.fstat(probe.fileno()).st_uid == owner:
            return
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"number {owner}"
    raise StorageError(
        f"{directory}: belongs to user {name}, who could replace what is written there; name "
        f"another with --step or -o")


def children_io() -> list[int] | None:
    """rchar and wchar of all children waited for so far (proc_pid_io(5)); None where the kernel
    does not tell."""

    def figures(path: str) -> list[int]:
        with open(path, encoding="ascii") as file:
            return [int(line.split()[1]) for line in file if line.startswith(("rchar:", "wchar:"))]

    try:
        own = [figures(f"/proc/self/task/{thread}/io") for thread in os.listdir("/proc/self/task")]
        return [total - sum(parts) for total, *parts in zip(figures("/proc/self/io"), *own)]
    except (OSError, ValueError, IndexError):
        return None


def _make_directories(step: str, mode: int) -> None:
    """The directories of a step and of its run with this mode, those above them as the umask has
    it."""
    run = os.path.dirname(step)
    above = os.path.dirname(run)
    if not os.path.lexists(above):
        os.makedirs(above, exist_ok=True)
    _make_directory(run, mode)
    _make_directory(step, mode)


def _make_directory(path: str, mode: int) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        return
    if mode != 0o700:
        os.chmod(path, mode)


def finish_env_step(directory: str | None) -> None:
    """Complete the job.json of a step begun by ``weir env``; does nothing for any other directory,
    or if it is not there."""
    if not directory:
        return
    try:
        with open(os.path.join(directory, JOB_FILE), encoding="utf-8") as file:
            known = json.load(file)
        if known["format"] != FORMAT or known["command"] is not None or known[
                "ended_realtime_ns"] is not None:
            return
        Job(**known).ended(None).write(directory)
    except (OSError, ValueError, KeyError, TypeError):
        return
