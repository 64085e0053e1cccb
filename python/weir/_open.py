# SPDX-License-Identifier: Apache-2.0
"""``weir.open``: imported with the package, so it imports what it needs only when it is called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.query import Run


def open(path: str | os.PathLike[str], *, step: str | None = None, memory: str | None = None) -> Run:  # noqa: A001
    """A run as tables: ``weir.open("run").files.to_pandas()``, ``weir.open("run").sql("SELECT ...")``.

    step: only this step. memory: the most that SQL takes, e.g. "512MB". Needs pyarrow, and DuckDB for SQL and for `files`:
    pip install 'weir-io[query]'. Raises NotThere when there is no run, UsageError when a package is missing.
    """
    from weir.query import open_run

    return open_run(path, step=step, memory=memory)
