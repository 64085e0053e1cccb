# SPDX-License-Identifier: Apache-2.0
"""``weir trace``"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from weir.cli import _options, _rules

CONTEXT = {"allow_interspersed_args": False}  # options after PROGRAM are the program's


def trace(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", show_default=False,
            help="What to run, with its arguments; put -- in front.")
    ],
    level: _options.Level = "trace",
    step: _options.Step = "main",
    output: _options.Run = "weir-run",
    budget: _options.Budget = "4G",
    overwrite: _options.Overwrite = False,
    share: _options.Share = None,
    quiet: _options.Quiet = False,
    rules: _rules.Rules = None,
    no_mpi: Annotated[bool, typer.Option("--no-mpi",
        help="Record I/O alone, without the calls of MPI in which ranks wait.")] = False,
) -> None:
    """Run a command and record its I/O.

    The command may be a program, a script or a launcher such as mpirun or srun; everything it
    starts is recorded. Input, output, signals and exit status of the command do not change. If no
    trace can be written, the command runs without one, and the status is 3 if it succeeded. With
    --rules its files get I/O layers (caches and others), as with weir run --trace. Print what was
    recorded with: weir report RUN
    """
    from weir.capture._launch import Options, launch

    options = Options(run=output, step=step, level=level, budget=budget, overwrite=overwrite,
        quiet=quiet, share=share, mpi=not no_mpi)
    text = _rules.compiled_rules(rules, os.environ, True, quiet) if rules else None
    raise typer.Exit(launch(options, command, os.environ, text))
