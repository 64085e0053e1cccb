# SPDX-License-Identifier: Apache-2.0
"""``weir advise``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.cli._options import Exclude, Include

Run = Annotated[str, typer.Argument(metavar="RUN",
    help="Directory of the run, or of one of its steps.")]
Step = Annotated[str | None, typer.Option("--step", metavar="NAME",
    help="Only this step of the run.")]
Write = Annotated[Path | None, typer.Option("--write", "-w", metavar="FILE",
    help="Write the rules, each with its finding and expected saving, for weir run --rules.")]
Tier = Annotated[Path, typer.Option("--tier", metavar="DIR",
    help="Directory on a fast file system of the node, for rules with the layer stage.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: a stable interface.")]


def advise(
    run: Run,
    step: Step = None,
    write: Write = None,
    tier: Tier = Path("/dev/shm/weir-tier"),
    json: Json = False,
    exclude: Exclude = None,
    include: Include = None,
) -> None:
    """Print what costs time in the I/O of a run, what cures it, and what the cure would save.

    Each finding has a range of seconds of the run (critical time), of active time, and of the I/O
    of all ranks; the rule for weir run that cures it, or the change in the model. Findings that are
    worth less than 2 % of the run are left out. File systems that weir probe has measured have
    narrower ranges. Exit status 1: something was found. Exit status 4: the trace is incomplete; the
    first notes report what is missing.
    """
    import shutil
    import sys

    from weir.advise.advise import advise as advised
    from weir.advise.frame.facts import Facts
    from weir.advise.probes import probes
    from weir.advise.text import as_json, lines_of, rules_text
    from weir.analysis.exclusion import exclusion_of
    from weir.capture._launch import say
    from weir.report import build
    from weir.report.json import write_json
    from weir.report.processes.compute import is_complete
    from weir.tune.claim import left_behind

    for left in left_behind(Path.cwd()):
        say(left.text)
    made = build(run, step=step, exclusion=exclusion_of(exclude, include))
    found = advised(Facts(made, probes(), str(tier.absolute())))
    if write is not None:
        _write(write, rules_text(found))
    if json:
        write_json(as_json(found), sys.stdout)
        sys.stdout.write("\n")
    else:
        width = min(shutil.get_terminal_size((100, 24)).columns, 100)
        typer.echo("\n".join(lines_of(found, width)))
    if not is_complete(made):
        raise typer.Exit(4)
    if found.advices:
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    """Checked as `weir run` checks it."""
    import os

    from weir._errors import StorageError
    from weir._files import complete_file
    from weir.rules.forms.toml import decode_toml

    data = os.fsencode(text)
    decode_toml(data, str(path))
    try:
        with complete_file(path) as file:
            file.write(data)
    except OSError as error:
        raise StorageError(f"{path}: the rules cannot be written: {error.strerror}") from error
