# SPDX-License-Identifier: Apache-2.0
"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes as c

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def keep_one_heap() -> None:
    """Let all threads of this process share one heap. In glibc each has one of its own otherwise,
    and what is freed in one serves no other. Nothing happens with other C libraries."""
    if hasattr(libc := c.CDLL(None), "mallopt"):
        libc.mallopt(_ARENA_MAX, 1)
