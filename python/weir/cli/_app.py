# SPDX-License-Identifier: Apache-2.0
"""The Typer app. A command is a module of its own here, which imports what it needs only when it is
called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

import weir

# As `weir --help` lists them. Module NAME_command has a function of the command's name, or `app` if
# it has subcommands.
COMMANDS = (
    "trace",
    "run",
    "assign",
    "env",
    "report",
    "advise",
    "tune",
    "probe",
    "compare",
    "scaling",
    "query",
    "export",
    "watch",
    "doctor",
    "testfs",
    "bench",
    "output",
    "drain",
    "pack",
    "join",
    "stage",
    "wrap-flags",
)


def app_for(words: Sequence[str]) -> typer.Typer:
    """The app for a command line: of one that begins with a command that command alone, as making
    all of them takes 60 ms of CPU."""
    app = typer.Typer(
        name="weir",
        help="Measure and regulate the I/O of weather and climate models.",
        epilog="Exit status: 0 success, 1 findings, 2 usage, 3 bad input or no trace, "
               "4 incomplete trace, 5 bytes not in their files, 70 an internal error of weir.",
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_weir)
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        _add(app, name)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"weir {weir.__version__}")
        raise typer.Exit


def _weir(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version,
            is_eager=True)
    ] = False,
) -> None:
    pass


def _add(app: typer.Typer, name: str) -> None:
    word = name.replace("-", "_")
    module = import_module(f"weir.cli.{word}_command")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name, context_settings=getattr(module, "CONTEXT", None))(getattr(module, word))
