# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

Run = Annotated[str, typer.Option("--output", "-o", metavar="RUN",
    help="Directory of the run; each step is a directory in it.")]
Step = Annotated[str, typer.Option(metavar="NAME", help="Name of the step.")]
Level = Annotated[
    str, typer.Option(metavar="LEVEL",
        help="What is recorded: summary (per operation), detail (per file) or trace (each call).")
]
Rank = Annotated[str | None, typer.Option("--rank", metavar="RANK",
    help="Only this rank, e.g. 3; with several programs as tables print it, e.g. model:3. Table "
         "processes lists all processes regardless.")]
Budget = Annotated[
    str, typer.Option(metavar="BYTES",
        help="Largest trace file of a node: bytes, or with K, M, G, T (powers of 1024).")
]
Share = Annotated[
    str | None,
    typer.Option("--share", metavar="WHO",
        help="Who else may read the run: group or all. [default: its owner alone]"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite",
    help="Replace the trace that this step of the run has already.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q",
    help="Print nothing on standard error unless something failed.")]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="WHERE",
        help="Read the traces with Dask: local, or a scheduler's address or file. Its workers must "
             "see the run."),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        "--exclude", metavar="LIST", envvar="WEIR_EXCLUDE",
        help="Leave out these files as well: directories and patterns, e.g. /data/static,*.log; "
             "none: count system files, too.",
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        "--include", metavar="LIST", envvar="WEIR_INCLUDE",
        help="Count these files, left out by default, as well, e.g. /usr/share,*.so; /: all.",
    ),
]


def reader_of(dask: str | None) -> AbstractContextManager[Any]:
    """Who reads the traces, for weir.report.build(): None is this process."""
    if dask is None:
        return nullcontext()
    from weir.cluster import connect

    return connect(dask)
