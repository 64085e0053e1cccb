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

app = typer.Typer(help="Data on a fast tier: a directory in memory or on a disk of the node.",
    no_args_is_help=True)


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
        help="Arguments of the script: all words after JOB.sh, options as well.")] = None,
    tier: Annotated[Path, typer.Option("--tier", metavar="DIR",
        help="Directory on a fast file system, instead of DataWarp.")] = Path("/dev/shm"),
    capacity: Annotated[str | None, typer.Option("--capacity", metavar="SIZE",
        help="Space that the job needs, instead of the script's capacity=, such as 20GB.")] = None,
    keep: Annotated[bool, typer.Option("--keep",
        help="Keep the job's directory on the tier after stage_out.")] = False,
) -> None:
    """Run a job script with DataWarp directives on a machine without DataWarp.

    Makes a directory for the job on the tier, sets DW_JOB_STRIPED and DW_JOB_PRIVATE, copies the
    files of stage_in, runs the script, copies the files of stage_out, and removes the directory.
    A copy gets its final name when it is complete and its size and CRC-32 equal the source's.

    Write options before JOB.sh: weir stage script --tier /local JOB.sh ARGUMENT

    The status is that of the script. Status 3: a directive cannot be carried out, or a file
    cannot be staged. If a file cannot be staged in, the script is not run.
    """
    from weir.stage.signals import Signals

    with Signals() as signals:  # before all else: nothing may end weir between
        _script(job, arguments or [], tier, capacity, keep, signals)


def _script(job: Path, arguments: list[str], tier: Path, capacity: str | None, keep: bool,
        signals: Signals) -> None:
    from weir import stage
    from weir.stage.directives import parse_size

    if arguments and arguments[0].split("=")[0] in _OPTIONS:
        stage.show(f"warning: {arguments[0]} is after {job} and is passed to the script; write "
                   f"options of weir before {job}")
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
    """List the files on a tier with their bytes and state.

    newer: not yet copied to its place, the path that the program used; drain= states when it is
    copied. copy: its place has the same bytes, and the tier drops it when it is full. If the last
    attempt to copy a file failed, the reason is printed.
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
        help="A tier of the layer stage, a run, or a directory that weir stage script left.")],
    unfinished: Annotated[bool, typer.Option("--unfinished",
        help="Also files whose writer was killed before it closed them.")] = False,
) -> None:
    """Copy files that a job left on a tier to their place, after it or its daemon was killed.

    DIR is a tier of the layer stage, or a run whose rules name tiers of this node: all files are
    copied, except scratch (drain=never), files that a process is writing, and files whose writer
    was killed before it closed them (see --unfinished). Each copy is read back and compared before
    it gets its name. Progress goes to standard error. A file that is left is listed with the
    reason, and the status is then 1.
    DIR is a directory of weir stage script: the files of its stage_out lines are copied, and the
    directory is removed.
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
               f"{tiers.amount(left)} left, {tiers.amount(scratch)} of scratch (drain=never)")
    return not left


@app.command()
def suggest(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run.")],
    tier: Annotated[Path, typer.Option("--tier", metavar="DIR",
        help="Directory on a fast file system of the node.")] = Path("/dev/shm/weir-tier"),
) -> None:
    """Print rules that keep files on a tier which one step of a run writes and another reads.

    Files that the run removes stay there (drain=never). Files that a later step reads, and output,
    are copied to their place in the background. Input, and files that are changed in place, get no
    rule. Example: weir stage suggest RUN > rules.toml; weir run --rules rules.toml -- ./job.sh
    """
    from weir.report import build
    from weir.report.flow.table import report_flow
    from weir.stage.suggest import rules_text, suggestions

    made = build(run)
    found = suggestions([file for row in report_flow(made).rows for file in row.files],
        made.cwd or "/")
    typer.echo(rules_text(found, tier.absolute(), run), nl=False)
