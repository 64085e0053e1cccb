# SPDX-License-Identifier: Apache-2.0
"""``weir env``"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from weir.cli import _options, _rules


def env(
    level: _options.Level = "trace",
    step: _options.Step = "main",
    output: _options.Run = "weir-run",
    budget: _options.Budget = "4G",
    overwrite: _options.Overwrite = False,
    share: _options.Share = None,
    quiet: _options.Quiet = False,
    rules: _rules.Rules = None,
    no_trace: Annotated[bool, typer.Option("--no-trace",
        help="With --rules: apply the layers, record no trace.")] = False,
    off: Annotated[bool, typer.Option("--off",
        help="Print the lines that end tracing and layers; record the end of the step.")] = False,
    shell: Annotated[str, typer.Option(metavar="SHELL",
        help="Syntax of the lines: sh (bash, dash, ksh, zsh) or csh (tcsh).")] = "sh",
) -> None:
    """Print the lines that make a shell trace what it starts: eval "$(weir env --step traj0 -o
    run)".

    For job scripts whose commands cannot be wrapped by weir trace. A step lasts until the next weir
    env. If no trace can be written, the lines end tracing, and the status is 3. With --rules the
    programs that the shell starts get layers as well; with --rules and --no-trace they get layers
    and are not traced. Standard output has only lines for the shell.
    """
    from weir._errors import Error, UsageError
    from weir.capture._launch import Options, say
    from weir.capture._run import finish_env_step
    from weir.capture._shell import begin_lines, check_shell, end_lines, rules_lines

    check_shell(shell)
    if no_trace and (off or not rules):
        raise UsageError(
            "--no-trace goes with --rules: name the rules whose layers are wanted without a trace")
    if off and rules:
        raise UsageError("--off ends tracing and layers: leave --rules out")
    if off:
        lines = end_lines(os.environ, shell)
        finish_env_step(os.environ.get("WEIR_TRACE_DIR"))
    else:
        options = Options(run=output, step=step, level=level, budget=budget, overwrite=overwrite,
            quiet=quiet, share=share)
        try:
            tracing = not no_trace or bool(os.environ.get("WEIR_TRACE_DIR"))
            text = _rules.compiled_rules(rules, os.environ, tracing, quiet) if rules else None
            if no_trace and text is not None:
                lines = rules_lines(os.environ, shell, text)
            else:
                lines = begin_lines(options, os.environ, shell, text)
        except Error:
            # A step that cannot be had must not be recorded as a part of the one before it.
            _print(end_lines(os.environ, shell))
            raise
        if not quiet and not no_trace:
            say(f"tracing into {os.path.join(os.path.abspath(output), step)}")
    _print(lines)


def _print(lines: list[str]) -> None:
    sys.stdout.buffer.write(b"".join(os.fsencode(line) + b"\n" for line in lines))
    sys.stdout.buffer.flush()
