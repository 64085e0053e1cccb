# SPDX-License-Identifier: Apache-2.0
"""``weir drain``"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from weir._errors import UsageError


def drain(
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the bytes of dead programs are on disk.")] = False,
    recover: Annotated[
        bool, typer.Option("--recover", help="The same, and try again what could not be written before (full disk, quota).")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="The same, and give up the bytes that still cannot be written: they are lost.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="List what is accepted and not written yet. The default.")] = False,
    job: Annotated[
        str | None, typer.Option("--job", metavar="ID", help="The job, when it is not that of this environment.")
    ] = None,
) -> None:
    """See to it that what programs under layers had accepted when they were killed reaches its files.

    It does so by itself, within moments: this command waits for it, or does it where a batch system has killed the write-back daemon too.
    For the node it runs on. Status 1: something is not on disk; it stays in memory for --recover or --discard.
    """
    from weir.capture import drain as draining

    if wait + recover + discard + status > 1:
        raise UsageError("--wait, --recover, --discard and --status exclude one another")
    name = job or draining.job_name(os.environ)
    refused = draining.refusals(name)
    for sentence in refused:
        typer.echo(sentence, err=True)
    before = draining.report_sizes(name)
    if discard:
        for path, count in draining.discard(name).items():
            typer.echo(os.fsencode(f"{path}: {count} bytes given up"))  # a path need not be UTF-8
        if refused:
            raise typer.Exit(1)
        return
    if wait or recover:
        complete = (draining.recover if recover else draining.wait)(name)
        for loss in draining.losses_since(name, before):
            typer.echo(str(loss), err=True)
        if not complete:
            left = sum(a.dirty_bytes for a in draining.arenas(name) if not a.alive)
            typer.echo(f"job {name}: {left} bytes of dead programs are not on disk", err=True)
        if refused or not complete:
            raise typer.Exit(1)
        return
    found = draining.arenas(name)
    for arena in found:
        state = "alive" if arena.alive else ("failed" if arena.failed else "dead")
        typer.echo(f"{arena.directory.name}  pid {arena.pid}  {state}  {arena.dirty_bytes} bytes not written yet")
    if not found:
        typer.echo(f"job {name}: nothing is held on this node")
