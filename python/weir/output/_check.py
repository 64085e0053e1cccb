# SPDX-License-Identifier: Apache-2.0
"""What the output library does without MPI: it reads a configuration, and completes a file that a
killed job left."""

from __future__ import annotations

import ctypes
import os
import re

from weir import _native
from weir.output._errors import FileError, error_of


def check(path: str | os.PathLike[str], ranks: int = 0) -> str:
    """What the configuration (TOML or a namelist in WRF's names) means, in words, WEIR_OUTPUT_* of
    the environment included.

    ranks: of the job; 0 for not known. Raises ConfigError with file, line and column.
    """
    return _ask("weir_output_check", os.fsencode(path), ctypes.c_int64(ranks))


def recover(path: str | os.PathLike[str], force: bool = False) -> str:
    """Make the finished steps of a file readable whose writers were killed, and say how many there
    are.

    path: the file under its final or its temporary name; what has grown under a temporary one goes
    first, and keeps its name. A netCDF-4 file whose writer was killed while it wrote metadata is
    completed from the journal beside it; the other formats are always readable. Raises FileError
    where there is no such file or it cannot be read, OrderError while a process still writes it;
    force: not then.
    """
    return _ask("weir_output_recover", os.fsencode(_growing(os.fspath(path))), ctypes.c_int(force))


def _growing(name: str) -> str:
    """The name under which the file grows: .NAME.weir-part, with a number behind it when other
    servers have taken it over."""
    directory, last = os.path.split(name)
    temporary = f".{last}.weir-part"
    names = os.listdir(directory or ".") if os.path.isdir(directory or ".") else []
    parts = [n for n in names if n == temporary or re.fullmatch(re.escape(temporary) + r"\.\d+", n)]
    if parts:
        return os.path.join(directory, max(parts, key=lambda n: int("0" + n[len(temporary) + 1 :])))
    if not os.path.lexists(name):
        raise FileError(f"{name}: there is no such file, and no "
                        f"{os.path.join(directory, temporary)}, as it is called while it grows")
    return name


def _ask(function: str, *arguments: object) -> str:
    library = ctypes.CDLL(_library())
    library.weir_output_check_free.argtypes = [ctypes.c_void_p]
    library.weir_output_check_free.restype = None
    text = ctypes.c_void_p()
    code = getattr(library, function)(*arguments, ctypes.byref(text))
    words = (ctypes.string_at(text) if text else b"").decode(errors="replace")
    library.weir_output_check_free(text)
    if code:
        raise error_of(code, words)
    return words


def _library() -> str:
    directory = os.environ.get("WEIR_OUTPUT_LIBRARIES")
    return os.path.join(directory, _native.OUTPUT_CHECK) if directory else str(_native
        .library_path(_native.OUTPUT_CHECK))
