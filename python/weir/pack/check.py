# SPDX-License-Identifier: Apache-2.0
"""Is a container whole?"""

from __future__ import annotations

import os
from dataclasses import dataclass

from weir.pack.archive import Container


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and with which file; None: with the container."""

    name: str | None
    text: str


def verify(path: str | os.PathLike[str]) -> tuple[int, list[Problem]]:
    """Reads all files and compares their checksums. How many there are, and what is wrong.

    Raises InputError when the file is no container.
    """
    with Container(path) as container:
        problems = []
        files = container.directory()
        if files is None:
            problems.append(Problem(None,
                "has no directory at its end: a job writes to it, or was killed; see weir pack "
                "repair"))
            files = container.scan()
        for record in files.values():
            if container.crc(record) != record.crc:
                problems.append(Problem(record.name, "differs from its checksum"))
        return len(files), problems
