# SPDX-License-Identifier: Apache-2.0
"""``weir doctor``"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from weir.cli import _options

if TYPE_CHECKING:
    from weir.capture.doctor import Finding

_COLOURS = {"fine": typer.colors.GREEN, "note": typer.colors.BLUE, "finding": typer.colors.RED}
_WIDTH = max(len(status) for status in _COLOURS)


def doctor(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", show_default=False,
        help="Program or script to examine.")] = "",
    output: _options.Run = "weir-run",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation and what I/O weir can record; with PROGRAM, of this program.

    Exit status 0 when all is well, 1 when there are findings.
    """
    from weir.capture.doctor import any_findings, examine_machine, examine_program

    findings = examine_program(program) if program else examine_machine(output)
    found = any_findings(findings)
    if as_json:
        typer.echo(json.dumps(_as_data(program, findings, found), indent=1))
    else:
        for line in findings:
            typer.echo(f"{typer.style(line.status.ljust(_WIDTH), fg=_COLOURS[line.status])}  "
                       f"{line.text}")
    raise typer.Exit(1 if found else 0)


def _as_data(program: str, findings: list[Finding], found: bool) -> dict[str, object]:
    lines = [{"name": f.name, "status": f.status, "text": f.text} for f in findings]
    return {"program": program or None, "ok": not found, "findings": lines}
