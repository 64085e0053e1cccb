# SPDX-License-Identifier: Apache-2.0
"""A configuration of the output library, read by the library's own parser without MPI."""

from __future__ import annotations

import ctypes
import os

from weir import _native
from weir.output._errors import error_of


def check(path: str | os.PathLike[str], ranks: int = 0) -> str:
    """What the configuration (TOML or a namelist in WRF's names) means, in words, WEIR_OUTPUT_* of the environment included.

    ranks: of the job; 0 for not known. Raises ConfigError with file, line and column.
    """
    library = ctypes.CDLL(_library())
    library.weir_output_check.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)]
    library.weir_output_check_free.argtypes = [ctypes.c_void_p]
    library.weir_output_check_free.restype = None
    text = ctypes.c_void_p()
    code = library.weir_output_check(os.fsencode(path), ranks, ctypes.byref(text))
    words = (ctypes.string_at(text) if text else b"").decode(errors="replace")
    library.weir_output_check_free(text)
    if code:
        raise error_of(code, words)
    return words


def _library() -> str:
    folder = os.environ.get("WEIR_OUTPUT_LIBRARIES")
    return os.path.join(folder, _native.OUTPUT_CHECK) if folder else str(_native.library_path(_native.OUTPUT_CHECK))
