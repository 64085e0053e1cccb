# SPDX-License-Identifier: Apache-2.0
"""``weir pack``: ls, extract, verify, repair, merge"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from weir.pack.check import Problem

app = typer.Typer(
    help="Archives of small files (layer pack): list, extract, verify, repair, merge.",
    no_args_is_help=True,
)

Archive = Annotated[Path, typer.Argument(metavar="CONTAINER",
    help="The container, such as plots.zip.")]


@app.command()
def ls(container: Archive) -> None:
    """Print mode, size, time and name of each file."""
    import stat
    import time

    from weir.pack import Container

    with Container(container) as archive:
        for name, record in sorted(archive.files().items()):
            moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.mtime_ns // 10**9))
            mode = stat.filemode(stat.S_IFREG | record.mode)
            typer.echo(f"{mode} {record.size_bytes:>12,} {moment} {name}")


@app.command()
def extract(
    container: Archive,
    names: Annotated[Optional[list[str]], typer.Argument(metavar="[NAME]...",
        help="Names of the files; default: all.")] = None,
    directory: Annotated[Optional[Path], typer.Option("-C", "--directory", metavar="DIR",
        help="Write into DIR instead of the directory of the container.")] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, max=256,
        help="Number of files written at a time.")] = 16,
    part: Annotated[str, typer.Option(metavar="I/N",
        help="Extract only part I of N of the files, for N nodes at once, such as 1/8.")] = "1/1",
) -> None:
    """Extract packed files. A file that exists already is left as it is (exit status 1).

    A node creates files in one directory one after the other; several nodes are faster:
    srun -N 8 sh -c 'weir pack extract --part $((SLURM_PROCID + 1))/8 plots.zip'
    """
    from weir._errors import UsageError
    from weir.pack import extract as extract_files

    match = re.fullmatch(r"([0-9]+)/([0-9]+)", part)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--part {part}: expected I/N with I from 1 to N, such as 1/8")
    count, wrong = extract_files(container, directory, names or (), jobs, int(match[1]) - 1,
        int(match[2]))
    for text in wrong[:20]:
        typer.echo(text, err=True)
    if len(wrong) > 20:
        typer.echo(f"and {len(wrong) - 20} more", err=True)
    typer.echo(f"{count} file{'' if count == 1 else 's'} extracted")
    if wrong:
        raise typer.Exit(1)


def _verdict(count: int, problems: list[Problem]) -> str:
    damaged = sum(problem.name is not None for problem in problems)
    said = f"{count} file{'' if count == 1 else 's'}, {damaged} damaged"
    return said + ("; the central directory is missing" if damaged < len(problems) else "")


@app.command()
def verify(container: Archive) -> None:
    """Read all files and compare their checksums (exit status 1: something is wrong)."""
    from weir.pack import verify as verify_files

    count, problems = verify_files(container)
    for problem in problems:
        typer.echo(f"{problem.name or container} {problem.text}", err=True)
    typer.echo(_verdict(count, problems))
    if problems:
        raise typer.Exit(1)


@app.command()
def repair(container: Archive) -> None:
    """Rebuild the central directory of a container (the list of its files) after a kill."""
    from weir.pack import repair as repair_directory

    count, written = repair_directory(container)
    typer.echo(f"{container}: {count} files, "
               f"{'central directory written' if written else 'nothing to repair'}")


@app.command()
def merge(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The new container.")],
    containers: Annotated[list[Path], typer.Argument(metavar="CONTAINER...",
        help="Containers of the nodes of a job.")],
) -> None:
    """Make one container of several; of files with the same name the newest is taken."""
    from weir.pack import merge as merge_files

    typer.echo(f"{output}: {merge_files(containers, output)} files")
