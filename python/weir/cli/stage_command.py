# SPDX-License-Identifier: Apache-2.0
"""``weir stage``: script, status, recover, suggest"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir._errors import UsageError

if TYPE_CHECKING:
    from weir.stage.signals import Signals

app = typer.Typer(help="Data on a fast tier.", no_args_is_help=True)


@app.callback()
def _stage() -> None:
    pass


_OPTIONS = ("--tier", "--capacity", "--keep")


@app.command(options_metavar="[OPTIONS, before JOB.sh]",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def script(
    job: Annotated[Path, typer.Argument(metavar="JOB.sh",
        help="A job script with #DW lines (DataWarp).")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENT]...",
        help="Arguments of the script: all that stands behind JOB.sh, options as well.")] = None,
    tier: Annotated[Path, typer.Option("--tier", metavar="DIR",
        help="Directory on a fast file system, in place of DataWarp.")] = Path("/dev/shm"),
    capacity: Annotated[str | None, typer.Option("--capacity", metavar="SIZE",
        help="Space that the job needs, in place of the script's capacity=, such as 20GB.")] = None,
    keep: Annotated[bool, typer.Option("--keep",
        help="Keep the job's directory on the tier after stage_out.")] = False,
) -> None:
    """Run a job script with DataWarp directives on a machine without DataWarp.

    Makes a directory for the job on the tier, sets DW_JOB_STRIPED and DW_JOB_PRIVATE, copies what
    stage_in names, runs the script, copies what stage_out names, and removes the directory. A copy
    gets its final name once it is complete and its size and CRC-32 equal those of its source.

    Options stand before JOB.sh: weir stage script --tier /local JOB.sh ARGUMENT

    The status is that of the script. Status 3: a directive cannot be carried out, or a file
    cannot be staged; a script whose files could not be staged in has not been run.
    """
    from weir.stage.signals import Signals

    with Signals() as signals:  # before all else: nothing may end weir between
        _script(job, arguments or [], tier, capacity, keep, signals)


def _script(job: Path, arguments: list[str], tier: Path, capacity: str | None, keep: bool,
        signals: Signals) -> None:
    from weir import stage
    from weir.stage.directives import parse_size

    if arguments and arguments[0].split("=")[0] in _OPTIONS:
        stage.show(f"{arguments[0]} stands behind {job} and goes to the script; options of weir "
                   f"stand before it")
    size = None if capacity is None else parse_size(capacity)
    if capacity is not None and size is None:
        raise UsageError(f"--capacity {capacity}: expected a size such as 20GB or 1GiB")
    status = stage.run_script(stage.read_directives(job), arguments, tier, stage.show, size, keep,
        signals)
    if status:
        raise typer.Exit(status)


@app.command()
def status(
    directory: Annotated[Path, typer.Argument(metavar="TIER|RUN",
        help="A tier of the layer stage (tier=...), or a run, whose rules name its tiers.")],
) -> None:
    """List the files on a tier: bytes, when they go to their place, whether they are newer there.

    A file that is not newer is a copy, which makes room when the tier is full. One that could not
    go to its place when that was last tried has the reason.
    """
    for tier in _tiers(directory):
        _list(tier)


def _tiers(directory: Path) -> list[Path]:
    from weir.capture import tier as tiers

    is_run = not tiers.is_tier(directory) and any(directory.glob("*/job.json"))
    return tiers.of_run(str(directory)) if is_run else [directory]


def _list(tier: Path) -> None:
    from weir.capture import tier as tiers

    files = tiers.status(tier)
    for one in files:
        state = f"newer, drain={one.drain}" if one.newer else "copy"
        why = f": {one.reason}" if one.is_stuck else ""
        typer.echo(os.fsencode(f"{one.bytes:>14} {state:<18} {one.path}{why}"))  # need not be UTF-8
    newer = [one for one in files if one.newer]
    typer.echo(f"{tier}: {tiers.amount(files)}; newer than at their place: {tiers.amount(newer)}")


@app.command()
def recover(
    directory: Annotated[Path, typer.Argument(metavar="DIR",
        help="A tier of the layer stage, a run, or what 'weir stage script' has left.")],
    unfinished: Annotated[bool, typer.Option("--unfinished",
        help="Also files whose writer was killed before it closed them.")] = False,
) -> None:
    """Bring what a job left on a tier to its place, after it or its daemon was killed.

    On a tier of the layer stage, or on those of this node that a run's rules name: all files but
    scratch (drain=never), those that a process writes, and those whose writer was killed before it
    closed them (see --unfinished). The bytes of each are read back and compared before it gets its
    name; each second a line on standard error has files, bytes and rate. A file that is left is
    listed with the reason, and the status is then 1.
    A directory of 'weir stage script': what its stage_out lines name; the directory is removed.
    """
    from weir import stage
    from weir.capture import tier as tiers

    found = _tiers(directory)
    if found == [directory] and not tiers.is_tier(directory):
        size = stage.finish(directory, stage.show)
        typer.echo(f"{directory}: {size} bytes staged out; the directory is removed")
        return
    if not all([_recover(tier, unfinished) for tier in found]):
        raise typer.Exit(1)


def _recover(tier: Path, unfinished: bool) -> bool:
    """Whether nothing is left on the tier that is to go to its place."""
    from weir import stage
    from weir.capture import tier as tiers

    waiting = [one for one in tiers.status(tier) if one.newer and not one.stays]
    progress = stage.Progress(str(tier), len(waiting), sum(one.bytes for one in waiting),
        stage.show)
    files = tiers.publish(tier, unfinished,
        lambda one: None if one.newer else progress.add(1, one.bytes))
    for one in files:
        if one.newer:
            typer.echo(os.fsencode(f"{one.path}: {one.bytes} bytes on the tier: {one.reason}"))
    brought = [one for one in files if not one.newer]
    left = [one for one in files if one.newer and not one.stays]
    scratch = [one for one in files if one.stays]
    typer.echo(f"{tier}: {tiers.amount(brought)} brought to their place, "
               f"{tiers.amount(left)} left, {tiers.amount(scratch)} of scratch")
    return not left


@app.command()
def suggest(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run.")],
    tier: Annotated[Path, typer.Option("--tier", metavar="DIR",
        help="Directory on a fast file system of the node.")] = Path("/dev/shm/weir-tier"),
) -> None:
    """Print rules that keep on a tier what travels from step to step of a run.

    Files that the run removes stay there (drain=never); those that a later step reads, and output,
    go to their place in the background; input, and files that are changed in place, are left where
    they are. Example: weir stage suggest RUN > rules.toml; weir run --rules rules.toml -- ./job.sh
    """
    from weir.report import build
    from weir.report.flow.table import report_flow
    from weir.stage.suggest import rules_text, suggestions

    made = build(run)
    found = suggestions([file for row in report_flow(made).rows for file in row.files],
        made.cwd or "/")
    typer.echo(rules_text(found, tier.absolute(), run), nl=False)
