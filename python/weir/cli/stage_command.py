# SPDX-License-Identifier: Apache-2.0
"""``weir stage``: script, recover"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from weir._errors import UsageError

app = typer.Typer(help="Data on a fast tier.", no_args_is_help=True)


@app.callback()
def _stage() -> None:
    pass


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def script(
    job: Annotated[Path, typer.Argument(metavar="JOB.sh",
        help="A job script with #DW lines (DataWarp).")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENT]...",
        help="Arguments of the script.")] = None,
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

    The status is that of the script. Status 3: a directive cannot be carried out, or a file
    cannot be staged; a script whose files could not be staged in has not been run.
    """
    from weir import stage
    from weir.stage.directives import parse_size

    size = None if capacity is None else parse_size(capacity)
    if capacity is not None and size is None:
        raise UsageError(f"--capacity {capacity}: expected a size such as 20GB or 1GiB")
    status = stage.run_script(stage.read_directives(job), arguments or [], tier, _show, size, keep)
    if status:
        raise typer.Exit(status)


@app.command()
def recover(
    directory: Annotated[Path, typer.Argument(metavar="DIR",
        help="Directory of a job, on a tier, that 'weir stage script' left there.")],
) -> None:
    """Stage out what a job left on a tier when it was killed, then remove its directory there."""
    from weir import stage

    size = stage.finish(directory, _show)
    typer.echo(f"{directory}: {size} bytes staged out; the directory is removed")


def _show(line: str) -> None:
    print(f"weir: {line}", file=sys.stderr, flush=True)
