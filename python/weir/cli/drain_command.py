# SPDX-License-Identifier: Apache-2.0
"""``weir drain``"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

import typer

from weir._errors import UsageError


def drain(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]",
        help="Directory of a run with layers: names the job, and the tiers of its rules.")] = None,
    wait: Annotated[bool, typer.Option("--wait",
        help="Wait until the bytes of killed programs are on disk.")] = False,
    recover: Annotated[
        bool, typer.Option("--recover",
            help="The same, and retry bytes that could not be written (full disk, quota).")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard",
            help="The same, and give up the bytes that still cannot be written: they are lost.")
    ] = False,
    status: Annotated[bool, typer.Option("--status",
        help="List the bytes that are not on disk yet (the default).")] = False,
    job: Annotated[
        str | None, typer.Option("--job", metavar="ID",
            help="The job; default: the job of this environment (WEIR_JOB, or the batch system's).")
    ] = None,
) -> None:
    """Write the bytes of killed programs that layers still hold in memory to their files.

    The write-back daemon does this by itself within moments. This command waits for it, or writes
    the bytes if the batch system has killed the daemon as well. It works on the node on which it
    runs. Files of the job that are only on a tier (layer stage) are listed; copy them with weir
    stage recover. Tiers outside of /dev/shm are found by the rules of RUN, or of this environment.
    Status 1: some bytes are not on disk; they stay in memory for --recover or --discard, or on the
    tier. Status 3: --recover or --discard found nothing of the job on this node.
    """
    if wait + recover + discard + status > 1:
        raise UsageError("--wait, --recover, --discard and --status exclude one another")
    if run is not None and job is not None:
        raise UsageError("RUN names its job: leave out --job")
    done = [_drain_job(name, environ, wait, recover, discard)
        for name, environ in _jobs(run, job).items()]
    if not all(done):
        raise typer.Exit(1)


def _jobs(run: str | None, job: str | None) -> Mapping[str, Mapping[str, str]]:
    """The jobs to work on, each with an environment whose rules name its tiers."""
    from weir.capture import drain as draining
    from weir.capture import tier as tiers

    if run is None:
        return {job or draining.job_name(os.environ): {} if job else os.environ}
    found = tiers.layered_jobs(run)
    return {name: tiers.environment_of(rules) for name, rules in found.items()} or {
        draining.job_name(os.environ): os.environ}


def _drain_job(name: str, environ: Mapping[str, str], wait: bool, recover: bool,
        discard: bool) -> bool:
    """Whether all that was to be on disk is."""
    from weir.capture import drain as draining
    from weir.capture import tier as tiers

    waiting = tiers.waiting_of_job(name, environ)
    if recover or discard:
        if not waiting:
            draining.require_job(name)
    elif wait and (sentence := draining.missing_job(name)) and not waiting:
        typer.echo(sentence, err=True)
    refused = draining.refusals(name)
    for sentence in refused:
        typer.echo(sentence, err=True)
    written = True
    if discard:
        for path, count in draining.discard(name).items():
            typer.echo(os.fsencode(f"{path}: {count} bytes given up"))  # a path need not be UTF-8
    elif wait or recover:
        written = _written(name, recover)
    else:
        _list(name, bool(waiting))
    for directory, files in waiting.items():
        for sentence in tiers.left_alone(directory, files):
            typer.echo(os.fsencode(sentence), err=wait or recover or discard)
    stuck = any(one.is_stuck for files in waiting.values() for one in files)
    return not (stuck or not written or (refused and (wait or recover or discard)))


def _written(name: str, recover: bool) -> bool:
    """Whether the bytes of dead programs are on disk, when they were waited for."""
    from weir.capture import drain as draining

    before = draining.report_sizes(name)
    complete = (draining.recover if recover else draining.wait)(name)
    for loss in draining.losses_since(name, before):
        typer.echo(str(loss), err=True)
    if not complete:
        left = sum(a.dirty_bytes for a in draining.arenas(name) if not a.alive)
        typer.echo(f"job {name}: {left} bytes of dead programs are not on disk", err=True)
    return complete


def _list(name: str, is_staged: bool) -> None:
    from weir.capture import drain as draining

    found = draining.arenas(name)
    for arena in found:
        state = "running" if arena.alive else "ended; writing them failed, retry with --recover" \
            if arena.failed else "ended"
        typer.echo(f"pid {arena.pid} ({state}): {arena.dirty_bytes:,} bytes not on disk yet")
    if not found and not is_staged:
        nothing = draining.missing_job(name) or f"job {name}: no bytes are held on this node"
        typer.echo(f"{nothing} (files on a tier elsewhere: weir stage status TIER)")
