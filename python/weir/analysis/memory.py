# SPDX-License-Identifier: Apache-2.0
"""What the C library does with memory that is freed. Of other C libraries than glibc nothing is
asked."""

from __future__ import annotations

import ctypes as c

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def keep_one_heap() -> None:
    """Let all threads of this process share one heap. Each has one of its own otherwise, and what
    is freed in one serves no other."""
    if hasattr(libc := c.CDLL(None), "mallopt"):
        libc.mallopt(_ARENA_MAX, 1)


def return_memory() -> None:
    """Give the system back what is free within the heap: large arrays were made and are gone."""
    if hasattr(libc := c.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
