# SPDX-License-Identifier: Apache-2.0
"""``weir output``: check"""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="The output library, libweir.", no_args_is_help=True)


@app.callback()
def _output() -> None:
    pass


@app.command()
def check(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A TOML file, or a Fortran namelist in WRF's names.")],
    ranks: Annotated[int, typer.Option(metavar="N", help="Of the job: whether the servers fit into it; 0: not known.")] = 0,
) -> None:
    """Say in plain words what a configuration of libweir does, with WEIR_OUTPUT_* of the environment.

    A mistake is told with file, line and column and what was expected there; the status is then 3.
    """
    from weir import output

    typer.echo(output.check(config, ranks), nl=False)
