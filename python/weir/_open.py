# SPDX-License-Identifier: Apache-2.0
"""``weir.open``: imported with the package, so it imports what it needs only when it is called."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing takes a third of the time of `import weir`

if TYPE_CHECKING:
    from weir.analysis.remote import RemoteReader
    from weir.query import Run


def open(  # noqa: A001
    path: str | os.PathLike[str], *, step: str | None = None, rank: int | str | None = None,
    memory: str | None = None,
    reader: RemoteReader | None = None, exclude: str | None = None, include: str | None = None,
) -> Run:
    """A run as tables: ``weir.open("run").files.to_pandas()``, ``weir.open("run").sql("SELECT
    ...")``.

    step: only this step. rank: only the processes of this rank: its number, or its label where a
    step has several programs, as in `weir report --rank`. memory: the most that SQL takes, e.g.
    "512MB". reader: weir.cluster.connect("local") or the like, whose workers read the traces; it
    must stay open as long as the run is used. exclude, include: lists of files as in the options of
    `weir query`; None: WEIR_EXCLUDE, WEIR_INCLUDE. Needs pyarrow, and DuckDB for SQL and for
    `files`: pip install 'weir-io[query]'. Raises NotThere when there is no run or no such rank,
    UsageError when a package is missing.
    """
    from weir.analysis.exclusion import exclusion_of
    from weir.query import open_run

    excluded = exclusion_of(exclude, include)
    return open_run(path, step=step, rank=rank, memory=memory, reader=reader, exclusion=excluded)
