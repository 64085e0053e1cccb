# SPDX-License-Identifier: Apache-2.0
"""Where arrays lie: what the C library does with memory that is freed (of other C libraries than
glibc nothing is asked), and arrays that are too large for memory."""

from __future__ import annotations

import ctypes as c
import functools
import gc
import tempfile
from typing import Any

from weir.trace._abi import spill_functions

KEPT_BYTES = 16 << 20  # of large arrays that a command keeps in its private memory
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_SET_HANDLER = 304  # PyDataMem_SetHandler in numpy/__multiarray_api.h
_has_one_heap = False  # keep_one_heap() was called


def keep_one_heap() -> None:
    """Let all threads of this process share one heap. Each has one of its own otherwise, and what
    is freed in one serves no other. For commands: the heap of a program that imports weir is its
    own, with libraries in it that weir knows nothing of."""
    global _has_one_heap
    if hasattr(libc := c.CDLL(None), "mallopt"):
        libc.mallopt(_ARENA_MAX, 1)
    _has_one_heap = True


def collect_seldom() -> None:
    """Let Python look for cycles of objects that nobody uses a hundred times less often: a step of
    many ranks has a million objects that stay, and each look goes through all of them."""
    gc.set_threshold(100_000, 100, 100)


def return_memory() -> None:
    """Give the system back what is free within the heap of a command: large arrays were made and
    are gone."""
    if _has_one_heap and hasattr(libc := c.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def spill_arrays(kept_bytes: int = KEPT_BYTES) -> None:
    """From now on large arrays that this thread makes lie in a temporary file once those in memory
    have so many bytes (native/reader/weir_spill.h): the kernel writes them to disk when memory is
    short. Nothing changes where there is no room for such a file, or only in memory."""
    with tempfile.TemporaryFile(prefix="weir-") as file:
        if spill_functions()[0](file.fileno(), kept_bytes) == 0:
            _handler()
            follow()


def follow() -> None:
    """Let arrays of this thread lie where spill_arrays() has decided: the initializer of threads.
    """
    if _handler.cache_info().currsize:
        set_handler, capsule = _handler()
        set_handler(capsule)


@functools.cache
def _handler() -> tuple[Any, Any]:
    """NumPy's function that sets who allocates arrays, and who does."""
    from numpy._core import _multiarray_umath as numpy

    pointer, capsule = c.pythonapi.PyCapsule_GetPointer, c.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    capsule.restype, capsule.argtypes = c.py_object, [c.c_void_p] * 3
    name = c.c_void_p()
    handler = spill_functions()[1](c.byref(name))
    api = c.cast(pointer(numpy._ARRAY_API, None), c.POINTER(c.c_void_p))
    set_handler = c.PYFUNCTYPE(c.py_object, c.py_object)(api[_SET_HANDLER])
    return set_handler, capsule(handler, name, None)
