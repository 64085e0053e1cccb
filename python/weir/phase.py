# SPDX-License-Identifier: Apache-2.0
"""Phases of a Python program for `weir report`, as include/weir/phase.h has them for C.

    from weir.phase import phase

    with phase("9write"):
        ...

Without weir's preload library in the process nothing happens. The same name in all ranks makes one
phase.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

_BEGINS, _ENDS = 1, 2


@cache
def _recorder() -> Callable[[int, bytes], None] | None:
    try:
        found = ctypes.CDLL(None).weir_phase_event
    except AttributeError:  # no preload library here
        return None
    found.restype, found.argtypes = None, [ctypes.c_int, ctypes.c_char_p]
    return found


def _mark(event: int, name: str) -> None:
    if "\0" in name:
        raise ValueError(f"phase {name!r}: a name has no zero byte")
    recorder = _recorder()
    if recorder is not None:
        recorder(event, name.encode())


def begin(name: str) -> None:
    """The rank enters the phase. ValueError for a name with a zero byte in it."""
    _mark(_BEGINS, name)


def end(name: str) -> None:
    """The rank leaves the phase."""
    _mark(_ENDS, name)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The phase is what the block does; it ends with an exception, too."""
    begin(name)
    try:
        yield
    finally:
        end(name)
