# SPDX-License-Identifier: Apache-2.0
"""What DataWarp makes for a job, made of a directory on a fast tier: its variables, its files
staged in, the script run, its files staged out. The directory says in ``instance.json`` what is
still to be staged out, so that a job that was killed can be finished."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from weir._errors import Error, InputError, StorageError, UsageError
from weir._files import complete_file
from weir.stage.copying import Copy, copy_all, files_below, one_file, size_of
from weir.stage.directives import Job, Staging
from weir.stage.signals import Signals, Stopped

RECORD = "instance.json"
NODE_COUNTS = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES")
Show = Callable[[str], None]


@dataclass(frozen=True)
class Instance:
    """`where`: the working directory of the script, which relative paths begin at."""

    directory: Path
    script: Path
    where: Path
    stagings: tuple[Staging, ...]

    def variables(self, modes: Sequence[str] | None = None) -> dict[str, str]:
        """As DataWarp sets them, with a slash at the end."""
        present = modes or [mode for mode in ("striped", "private")
            if (self.directory / mode).is_dir()]
        return {f"DW_JOB_{mode.upper()}": f"{self.directory / mode}/" for mode in present}


def run_script(job: Job, arguments: Sequence[str], tier: Path, show: Show,
        capacity_bytes: int | None = None, keep: bool = False,
        signals: Signals | None = None) -> int:
    """Stage in, run the script, stage out; the script's exit status.

    The files of a script that failed are staged out as well. When something cannot be staged out,
    or is asked to be kept, the instance stays: `finish` goes on with it. A signal to stop ends the
    script, not what is done for it; one that comes before the script ends the job.
    """
    with nullcontext(signals) if signals else Signals() as held:
        _check_nodes(job, os.environ)
        capacity = job.capacity_bytes if capacity_bytes is None else capacity_bytes
        instance = _make_instance(job, tier, capacity)
        try:
            _stage_in(job, instance, capacity, show, held)
        except Stopped as stopped:
            _give_up(instance)
            show(f"{job.script}: {stopped} came before the script was run: {instance.directory} "
                 f"is removed")
            return stopped.status
        except BaseException:
            _give_up(instance)
            raise
        try:
            status = _run(job, arguments, {**os.environ, **instance.variables()}, held)
        except InputError:  # it did not start
            _give_up(instance)
            raise
        finish(instance.directory, show, keep, held)
        return status


def _give_up(instance: Instance) -> None:
    shutil.rmtree(instance.directory, ignore_errors=True)


def _stage_in(job: Job, instance: Instance, capacity: int, show: Show, signals: Signals) -> None:
    inputs = _copies(instance, out=False)
    _check_capacity(job, instance, sum(size_of(copies) for _, copies in inputs), capacity)
    for staging, copies in inputs:
        copy_all(copies, _title(instance, staging), show, signals.check)
    signals.check()


def finish(directory: Path, show: Show, keep: bool = False, signals: Signals | None = None) -> int:
    """Stage out what the script of an instance left, and remove the instance. Bytes. signals:
    a signal to stop is answered with a line, and staging goes on."""
    instance = read_instance(directory)
    again = f"weir stage recover {shlex.quote(str(directory))}"
    done, problems = 0, []
    if signals is not None:
        signals.say = lambda name: (f"{name}: files are still being staged out; if weir is killed "
                                    f"before that ends, run: {again}")
    for staging in (one for one in instance.stagings if one.out):
        try:
            copies = _copies_of(instance, staging)
            done += copy_all(copies, _title(instance, staging), show)
        except (Error, OSError) as error:
            problems.append(f"{instance.script}:{staging.line}: #DW stage_out: {_message(error)}")
    if problems:
        raise StorageError("\n".join([*problems, f"the data is kept in {directory}; when the cause "
            f"is removed, run: {again}"]))
    if not keep:
        _remove(directory)
    return done


def _message(error: Exception) -> str:
    """Without the number of the error, which its words have."""
    return str(isinstance(error, OSError) and error.strerror or error)


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise StorageError(f"{directory}: all is staged out, and it cannot be removed: "
                           f"{error.strerror}; remove it") from error


def read_instance(directory: Path) -> Instance:
    """Raises InputError when the directory is none."""
    if not (directory / RECORD).is_file():
        raise InputError(f"{directory}: " + ("neither a tier of the layer stage nor a directory that "
            "'weir stage script' has left" if directory.is_dir() else "no such directory"))
    try:
        record = json.loads((directory / RECORD).read_text())
        stagings = tuple(Staging(**one) for one in record["stagings"])
        return Instance(directory, Path(record["script"]), Path(record["where"]), stagings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{directory}: not an instance that 'weir stage script' made: "
                         f"{RECORD} cannot be read: {error}") from error


def _check_nodes(job: Job, environ: Mapping[str, str]) -> None:
    """A batch system says in variables how many nodes there are; without one the script does."""
    for name in NODE_COUNTS:
        count = environ.get(name, "")
        if count.isdigit():
            return _refuse_nodes(f"{job.script}", int(count), name)
    for line, count, words in job.nodes:
        _refuse_nodes(f"{job.script}:{line}", count, words)


def _refuse_nodes(where: str, count: int, by: str) -> None:
    if count > 1:
        raise UsageError(f"{where}: the job has {count} nodes ({by}), and weir makes the "
                         f"directories of #DW jobdw on one: run the script on one node, or use "
                         f"rules with the layer stage on each")


def _make_instance(job: Job, tier: Path, capacity: int) -> Instance:
    try:
        free = shutil.disk_usage(tier).free
    except OSError as error:
        raise InputError(f"{tier}: cannot be used as a tier: {error.strerror}; name a directory on "
                         f"a fast file system with --tier") from error
    if free < capacity:
        raise InputError(
            f"{job.script}:{job.line}: #DW jobdw: capacity={capacity / 1e9:.1f} GB, and {tier} has "
            f"{free / 1e9:.1f} GB free; name another directory with --tier, or what the job needs "
            f"with --capacity")
    identity = os.environ.get("SLURM_JOB_ID") or os.environ.get("PBS_JOBID") or str(os.getpid())
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", identity)
    directory = (tier / f"weir-dw.{os.getuid()}.{name}").absolute()
    stagings = tuple(job.stagings)
    instance = Instance(directory, job.script.absolute(), Path.cwd(), stagings)
    try:
        directory.mkdir(mode=0o700)
        for mode in job.access_modes:
            (directory / mode).mkdir()
        record = {"script": str(instance.script), "where": str(instance.where),
            "stagings": [asdict(one) for one in stagings]}
        with complete_file(directory / RECORD) as file:
            file.write(json.dumps(record, indent=1).encode())
    except FileExistsError as error:
        raise UsageError(f"{directory} is there already, of an earlier run of this job: run 'weir "
                         f"stage recover {directory}', or remove it") from error
    except OSError as error:
        raise StorageError(f"{directory}: cannot be made: {error.strerror}") from error
    return instance


def _check_capacity(job: Job, instance: Instance, staged: int, capacity: int) -> None:
    if staged > capacity:
        raise InputError(f"{job.script}:{job.line}: #DW jobdw: capacity={capacity / 1e9:.3f} GB "
                         f"does not hold the {staged / 1e9:.3f} GB that are to be staged in")


def _title(instance: Instance, staging: Staging) -> str:
    return f"{'stage_out' if staging.out else 'stage_in'} (line {staging.line})"


def _copies(instance: Instance, out: bool) -> list[tuple[Staging, list[Copy]]]:
    """All of one direction, found before the first is copied."""
    found = []
    for staging in (one for one in instance.stagings if one.out == out):
        try:
            found.append((staging, _copies_of(instance, staging)))
        except Error as error:
            verb = "stage_out" if out else "stage_in"
            message = f"{instance.script}:{staging.line}: #DW {verb}: {error}"
            raise InputError(message) from error
    return found


def _copies_of(instance: Instance, staging: Staging) -> list[Copy]:
    source = instance.where / _expand(instance, staging.source)
    destination = instance.where / _expand(instance, staging.destination)
    if staging.type == "directory":
        return files_below(source, destination)
    if staging.type == "file":
        into = destination / source.name if _names_directory(destination, staging) else destination
        return [one_file(source, into)]
    return _listed(instance, source, destination, staging)


def _names_directory(destination: Path, staging: Staging) -> bool:
    return staging.destination.endswith("/") or destination.is_dir()


def _listed(instance: Instance, source: Path, destination: Path, staging: Staging) -> list[Copy]:
    """A line of a list names a file, which goes into the destination by its last component, or two:
    the second is then its path in the destination. A stage_out of a list reads the list on the
    tier, and its relative paths begin beside it."""
    try:
        lines = source.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise InputError(f"{source}: the list cannot be read: {error.strerror}") from error
    begin = source.parent if staging.out else instance.where
    found = []
    for number, line in enumerate(lines, 1):
        words = shlex.split(line, comments=True)
        if len(words) > 2:
            raise InputError(f"{source}:{number}: expected a path, or two (source and path below "
                             f"the destination), found {len(words)}")
        if words:
            file = begin / _expand(instance, words[0])
            into = _expand(instance, words[1]) if len(words) == 2 else file.name
            found.append(one_file(file, destination / into))
    return found


def _expand(instance: Instance, text: str) -> str:
    known = {**os.environ, **instance.variables()}

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in known:
            access = "; #DW jobdw has not this access_mode" if name.startswith("DW_JOB_") else ""
            raise InputError(f"{text}: the variable {name} is not set{access}")
        return known[name]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, text)


def _run(job: Job, arguments: Sequence[str], environment: Mapping[str, str],
        signals: Signals) -> int:
    """The script by its interpreter, as a batch system runs it; a signal to stop goes on to it, so
    that its files are staged out within the time that batch systems leave."""
    try:
        with job.script.open("rb") as file:
            first = file.readline().decode("utf-8", "surrogateescape").strip()
    except OSError as error:
        raise InputError(f"{job.script}: cannot be read: {error.strerror}") from error
    interpreter = shlex.split(first[2:]) if first.startswith("#!") else ["/bin/sh"]
    words = [*interpreter, str(job.script), *arguments]
    try:
        status = signals.run(lambda: subprocess.Popen(words, env=dict(environment)))
    except OSError as error:
        raise InputError(f"{job.script}: cannot be run by {interpreter[0]}: "
                         f"{error.strerror}") from error
    return status if status >= 0 else 128 - status
