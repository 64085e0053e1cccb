# SPDX-License-Identifier: Apache-2.0
"""What a command with layers has left behind: bytes that it wrote and that are not in their
files."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_STATUS = 5  # of a command that succeeded


@dataclass(frozen=True)
class Left:
    """said: sentences for the user. displaced: bytes that the command wrote could not get to their
    files."""

    said: tuple[str, ...] = ()
    displaced: bool = False
