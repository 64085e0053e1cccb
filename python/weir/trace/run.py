# SPDX-License-Identifier: Apache-2.0
"""Run folders: a folder of steps, each a folder with job.json and one trace file per node."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weir.trace.errors import RunNotFound
from weir.trace.job import Job, read_job

SUFFIX = ".weir"


@dataclass(frozen=True)
class Step:
    """One step of a run, not yet read."""

    name: str
    path: Path
    job: Job | None
    job_problem: str | None
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Run:
    path: Path
    steps: tuple[Step, ...]


def _step(path: Path) -> Step | None:
    files = tuple(sorted(entry for entry in path.glob(f"*{SUFFIX}") if entry.is_file()))
    job_path = path / "job.json"
    if not files and not job_path.is_file():
        return None
    job, problem = read_job(job_path)
    return Step(path.name, path, job, problem, files)


def find_run(path: str | os.PathLike[str], step: str | None = None) -> Run:
    """The run at `path`, which may also be one of its steps; `step` selects one step by name.

    Steps are in the order in which they were started as far as job.json says. Raises RunNotFound.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise RunNotFound(f"{folder}: no such folder; name the folder that was given to `weir trace -o`")
    itself = _step(folder.absolute())
    if itself is not None:
        steps = [itself]
    else:
        steps = [found for entry in sorted(folder.iterdir()) if entry.is_dir() and (found := _step(entry)) is not None]
    if not steps:
        raise RunNotFound(f"{folder}: no steps in it (sub-folders with job.json or *{SUFFIX} files)")
    if step is not None:
        known = ", ".join(one.name for one in steps)
        steps = [one for one in steps if one.name == step]
        if not steps:
            raise RunNotFound(f"{folder}: no step {step!r}; it has {known}")
    return Run(folder, tuple(sorted(steps, key=_started)))


def _started(step: Step) -> tuple[int, str]:
    started = step.job.started_realtime_ns if step.job is not None else None
    return (started if started is not None else 2**63, step.name)
