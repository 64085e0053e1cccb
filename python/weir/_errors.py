# SPDX-License-Identifier: Apache-2.0
"""What weir raises. Libraries raise these; ``weir.cli.main`` alone turns them into a message and an
exit status.

A message says what failed, on which object, what was expected, and what to do.
"""

from __future__ import annotations


class Error(Exception):
    """Anything that weir itself has to say went wrong; raised as one of the kinds below."""


class UsageError(Error, ValueError):
    """What was asked for makes no sense or would destroy something: a level that does not exist, a
    step that is there."""


class InputError(Error, ValueError):
    """A file or directory that was given is not what it should be."""


class NotThere(InputError, FileNotFoundError):
    """A file or directory that was given does not exist."""


class StorageError(Error, OSError):
    """A directory or file cannot be written."""


class InternalError(Error, RuntimeError):
    """A part of weir failed where it must not: to be reported."""


class IncompleteError(Error, RuntimeError):
    """A trace was read, but part of it is missing or damaged."""
