# SPDX-License-Identifier: Apache-2.0
"""Run directories: a directory of steps, each a directory with job.json and one trace file per
node."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from weir.trace.errors import RunNotFound
from weir.trace.job import Job, read_job

SUFFIX = ".weir"
# created_realtime_ns, launch, launcher, job: docs/formats/trace.md 2
_MARKS = struct.Struct("<40xQ96xQQQ")


@dataclass(frozen=True)
class Step:
    """One step of a run, not yet read."""

    name: str
    path: Path
    job: Job | None
    job_problem: str | None
    files: tuple[Path, ...]
    # of the first trace file, where no job.json says when it was started
    began_realtime_ns: int | None = None


@dataclass(frozen=True)
class Run:
    path: Path
    steps: tuple[Step, ...]


def _steps(path: Path) -> list[Step]:
    """What a directory holds: one step, or several when runs were traced into it without `weir
    trace`, in the order of their beginning."""
    files = tuple(sorted(entry for entry in path.glob(f"*{SUFFIX}") if entry.is_file()))
    job_path = path / "job.json"
    if not files and not job_path.is_file():
        return []
    job, problem = read_job(job_path)
    launches = _launches(files) if job is None and problem is None else []
    if len(launches) < 2:
        return [Step(path.name, path, job, problem, files)]
    return [Step(f"{path.name}.{i}", path, None, None, its, began) for i, (began,
        its) in enumerate(launches, 1)]


def _launches(files: tuple[Path, ...]) -> list[tuple[int, tuple[Path, ...]]]:
    """The files of each launch and when its first was made. Files of one launch, or of one job of
    MPI, are one launch's."""
    groups: list[tuple[set[int], list[tuple[int, Path]]]] = []
    for file in files:
        launch, job, began = _marks(file)
        marks, own = {launch} | ({job} if job else set()), [(began, file)]
        apart = []
        for group in groups:
            if group[0] & marks:
                marks |= group[0]
                own += group[1]
            else:
                apart.append(group)
        groups = [*apart, (marks, own)]
    return sorted((min(began for began, _ in own), tuple(sorted(file for _, file in own)))
        for _, own in groups)


def _marks(file: Path) -> tuple[int, int, int]:
    """launch, job and creation time of a file's header; of what is no trace 0."""
    try:
        with open(file, "rb") as stream:
            head = stream.read(_MARKS.size)
    except OSError:
        head = b""
    if len(head) < _MARKS.size or not head.startswith(b"WEIRTRC1"):
        return 0, 0, 0
    began, launch, _, job = _MARKS.unpack(head)
    return launch, job, began


def find_run(path: str | os.PathLike[str], step: str | None = None) -> Run:
    """The run at `path`, which may also be one of its steps; `step` selects one step by name.

    Steps are in the order in which they were started as far as job.json says. Raises RunNotFound.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise RunNotFound(
            f"{directory}: {'no directory' if directory.exists() else 'no such directory'}; "
            "name the directory that was given to `weir trace -o`")
    steps = _steps(directory.absolute())
    if not steps:
        steps = [found for entry in sorted(directory.iterdir()) if entry.is_dir()
            for found in _steps(entry)]
    if not steps:
        raise RunNotFound(
            f"{directory}: no steps in it (sub-directories with job.json or *{SUFFIX} files)")
    if step is not None:
        known = ", ".join(one.name for one in steps)
        steps = [one for one in steps if one.name == step]
        if not steps:
            raise RunNotFound(f"{directory}: no step {step!r}; it has {known}")
    return Run(directory, tuple(sorted(steps, key=_started)))


def _started(step: Step) -> tuple[int, str]:
    started = step.job.started_realtime_ns if step.job is not None else step.began_realtime_ns
    return (started if started is not None else 2**63, step.name)
