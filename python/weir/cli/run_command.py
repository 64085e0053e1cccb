# SPDX-License-Identifier: Apache-2.0
"""``weir run``"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from weir.cli import _options, _rules

Trace = Annotated[
    str | None, typer.Option("--trace", metavar="RUN",
        help="Record a trace into this directory, above and below the layers.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v",
    help="Print the rules in force before the command starts.")]

CONTEXT = {"allow_interspersed_args": False}  # options after PROGRAM are the program's


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", show_default=False,
            help="What to run, with its arguments; put -- in front.")
    ],
    rules: _rules.Rules = None,
    trace: Trace = None,
    level: _options.Level = "trace",
    step: _options.Step = "main",
    budget: _options.Budget = "4G",
    overwrite: _options.Overwrite = False,
    share: _options.Share = None,
    quiet: _options.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a command with the layers that rules give to its files.

    The command may be a program, a script or a launcher such as mpirun or srun; everything it
    starts has the layers. Input, output, signals and exit status of the command do not change.
    Without --rules the assignments made by weir assign are used, then those of IOBUF_PARAMS and
    MPICH_MPIIO_HINTS. A mistake in the rules is reported with its line, and nothing is started
    (status 2). Status 5: the command succeeded, but bytes that it wrote are not in their files; a
    line on standard error names the file.
    """
    from weir.capture._launch import Options, launch, launch_layered

    tracing = trace is not None or bool(os.environ.get("WEIR_TRACE_DIR"))
    text = _rules.compiled_rules(rules or (), os.environ, tracing, quiet, verbose)
    if trace is None:
        status = launch_layered(command, os.environ, text, quiet)
    else:
        options = Options(run=trace, step=step, level=level, budget=budget, overwrite=overwrite,
            quiet=quiet, share=share)
        status = launch(options, command, os.environ, text)
    raise typer.Exit(status)
