# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a run directory or a trace file."""

from __future__ import annotations

from weir._errors import InputError, NotThere


class RunNotFound(NotThere):
    """No run, or no such step, at the place that was named."""


class DamagedFile(InputError):
    """A trace file of which nothing can be read; `offset` is the byte that says so, None when there
    is none."""

    def __init__(self, path: str, offset: int | None, reason: str):
        place = "" if offset is None else f" at byte {offset}"
        super().__init__(f"{path}: {reason}{place}")
        self.path, self.offset, self.reason = path, offset, reason
