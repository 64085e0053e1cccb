# SPDX-License-Identifier: Apache-2.0
"""``weir output``: check, recover"""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="The output library, libweir.", no_args_is_help=True)


@app.callback()
def _output() -> None:
    pass


@app.command()
def check(
    config: Annotated[str, typer.Argument(metavar="CONFIG",
        help="A TOML file, or a Fortran namelist in WRF's names.")],
    ranks: Annotated[int, typer.Option(metavar="N",
        help="Ranks of the job, to check that the servers fit; 0: unknown.")] = 0,
) -> None:
    """Print what a configuration of libweir does, WEIR_OUTPUT_* of the environment included.

    A mistake is reported with file, line and column and what was expected there; the status is then
    3.
    """
    from weir import output

    typer.echo(output.check(config, ranks), nl=False)


@app.command()
def recover(
    file: Annotated[str, typer.Argument(metavar="FILE",
        help="The file: its final name, or .NAME.weir-part, its name while it is written.")],
    force: Annotated[bool, typer.Option("--force",
        help="Recover even if a process seems to write the file; its data may then be "
             "lost.")] = False,
) -> None:
    """Make the finished steps of a file readable after its writers were killed, and print their
    number.

    A netCDF-4 file whose writer was killed in the middle of its metadata is completed from
    FILE.journal; the other formats are readable at any time. Status 3: there is no such file, it
    cannot be read, or a process still writes it: it is named, with its host.
    """
    from weir import output

    typer.echo(output.recover(file, force), nl=False)
