# SPDX-License-Identifier: Apache-2.0
"""The calls of libweir-testfs.so (native/testfs/api.h)."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from weir import _native
from weir._errors import InputError, UsageError

_NAME = "libweir-testfs.so"


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_native.library_path(_NAME)), use_errno=True)
    library.weir_testfs_stats.argtypes = [ctypes.c_char_p, ctypes.c_int]
    library.weir_testfs_control.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.weir_testfs_free.argtypes = [ctypes.c_void_p]
    for function in (library.weir_testfs_stats, library.weir_testfs_control):
        function.restype = ctypes.c_void_p
    library.weir_testfs_free.restype = None
    return library


def _text(address: int) -> str:
    try:
        return os.fsdecode(ctypes.string_at(address))
    finally:
        _library().weir_testfs_free(address)


def stats(state: Path, *, reset: bool) -> str:
    """The counters as JSON. Raises InputError when the file is no state of this version."""
    address = _library().weir_testfs_stats(os.fsencode(state), int(reset))
    if not address:
        raise InputError(
            f"{state}: {os.strerror(ctypes.get_errno())}: written by another version of weir")
    return _text(address)


def control(state: Path, option: str) -> None:
    """Sets ``name=value``. Raises UsageError."""
    address = _library().weir_testfs_control(os.fsencode(state), os.fsencode(option))
    if address:
        raise UsageError(f"{option}: {_text(address)}")
