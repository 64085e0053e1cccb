# SPDX-License-Identifier: Apache-2.0
"""Files that layers bypass by what else the program does with them: a rule for one saves nothing
(docs/reference/posix.md)."""

from __future__ import annotations

from weir.advise.frame.facts import File

_COPIES = ("dup", "dup2", "dup3")
_KERNEL = ("mmap", "aio_read", "aio_write", "lio_read", "lio_write", "async_read", "async_write")
_REOPENED = ("freopen",)  # of a standard stream as a rule, which layers cannot take over
_FCNTL = ("fcntl",)
UNNAMED = ("mkstemp",)  # makes files where layers that choose a place for a name have none
QUERIES = 3  # F_GETFD, F_GETFL, F_SETFL of one opening; more calls of fcntl are locks


def is_served_by_kernel(file: File) -> bool:
    """Whether all layers bypass it: it is mapped, moved by calls that the kernel completes, or by
    a standard stream that was reopened on it."""
    return file.of((*_KERNEL, *_REOPENED))[0] > 0


def is_left_alone(file: File) -> bool:
    """Whether layers for one process bypass it: by a second descriptor (of a shell that redirects
    to it, of dd), or locks on parts of it (sqlite) as well."""
    openings = max(1, file.of_class("O")[0])
    is_locked = file.of(_FCNTL)[0] > QUERIES * openings
    return is_served_by_kernel(file) or is_locked or file.of(_COPIES)[0] > 0
