# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

Run = Annotated[str, typer.Option("--output", "-o", metavar="RUN", help="Folder of the run; each step is a folder in it.")]
Step = Annotated[str, typer.Option(metavar="NAME", help="Name of the step.")]
Level = Annotated[
    str, typer.Option(metavar="LEVEL", help="What is kept: summary (per operation), detail (per file), trace (each call).")
]
Budget = Annotated[
    str, typer.Option(metavar="BYTES", help="Largest trace file of a node: bytes, or with K, M, G, T (powers of 1024).")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove the trace this step holds already.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No note on standard error when all went well.")]
