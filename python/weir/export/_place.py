# SPDX-License-Identifier: Apache-2.0
"""Where an export goes: under another name until it is complete, and never over something that is
there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from weir._errors import StorageError, UsageError
from weir.analysis.names import is_utf8


@contextmanager
def new_directory(path: str) -> Iterator[str]:
    """A directory to write into that becomes `path` at the end. Raises UsageError when something is
    there, StorageError."""
    if not is_utf8(path):
        raise UsageError(
            f"{path}: Arrow writes to names that are UTF-8 alone; name another with -o")
    if os.path.isdir(path) and not os.listdir(path):
        os.rmdir(path)
    if os.path.lexists(path):
        raise UsageError(f"{path}: exists already; name another path with -o, or remove it")
    unfinished = f"{path.rstrip('/')}.{os.getpid()}.new"
    try:
        os.makedirs(unfinished)
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
