# SPDX-License-Identifier: Apache-2.0
"""``weir join``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def join(
    file: Annotated[Path, typer.Argument(metavar="FILE",
        help="A file that the layer stripe wrote, by the path that the program used.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="OUT",
        help="Write to OUT and leave FILE as it is.")] = None,
    remove: Annotated[bool, typer.Option("--remove",
        help="With -o: remove FILE and its pieces once OUT is complete.")] = False,
) -> None:
    """Join the pieces of a striped file into one plain file: in place (the pieces are removed when
    it is complete) or under another name."""
    from weir.stripe import join as join_file

    size = join_file(file, output, remove=remove)
    typer.echo(f"{output or file}: {size} bytes")
