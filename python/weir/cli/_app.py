# SPDX-License-Identifier: Apache-2.0
"""The Typer app: every verb is a module of its own here, which imports what it needs only when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

import weir
from weir.cli import (
    assign_command,
    bench_command,
    compare_command,
    doctor_command,
    drain_command,
    env_command,
    export_command,
    join_command,
    output_command,
    query_command,
    report_command,
    run_command,
    scaling_command,
    testfs_command,
    trace_command,
    watch_command,
    wrap_flags_command,
)

app = typer.Typer(
    name="weir",
    help="Measure and regulate the I/O of weather and climate models.",
    epilog="Exit status: 0 fine, 1 findings, 2 usage, 3 bad input or no trace, 4 incomplete trace, 70 a fault in weir.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"weir {weir.__version__}")
        raise typer.Exit


@app.callback()
def _weir(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("trace", context_settings={"allow_interspersed_args": False})(trace_command.trace)
app.command("run", context_settings={"allow_interspersed_args": False})(run_command.run)
app.command("assign")(assign_command.assign)
app.command("env")(env_command.env)
app.command("report")(report_command.report)
app.command("compare")(compare_command.compare)
app.command("scaling")(scaling_command.scaling)
app.command("query")(query_command.query)
app.command("export")(export_command.export)
app.command("watch")(watch_command.watch)
app.command("doctor")(doctor_command.doctor)
app.add_typer(testfs_command.app, name="testfs")
app.add_typer(bench_command.app, name="bench")
app.add_typer(output_command.app, name="output")
app.command("drain")(drain_command.drain)
app.command("join")(join_command.join)
app.command("wrap-flags")(wrap_flags_command.wrap_flags)
