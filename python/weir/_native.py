# SPDX-License-Identifier: Apache-2.0
"""Where the native libraries of the package lie. Loading them is left to those who need them."""

from __future__ import annotations

import os
from pathlib import Path

from weir._errors import NotThere

PRELOAD = "libweir-preload.so"
READER = "libweir-reader.so"
DRAIN = "weir-drain"
STAGE = "weir-stage"
OUTPUT_CHECK = "libweir-output-check.so"
WRAP = "libweir-wrap.a"
WRAP_FLAGS = "weir-wrap.flags"
LAYERS = "layers.json"


class LibraryMissing(NotThere):
    """A native library that the package should carry is not there."""


def library_directory() -> Path:
    """The directory of the native libraries, absolute, whether or not anything lies in it."""
    return Path(os.path.abspath(__file__)).parent / "_lib"


def library_path(name: str) -> Path:
    """The absolute path of one native library, for example ``library_path(PRELOAD)``.

    Raises LibraryMissing with what to do about it when the file does not exist.
    """
    path = library_directory() / name
    if not path.is_file():
        raise LibraryMissing(
            f"{path}: the native library is not built; run `make build` in the source tree or "
            f"reinstall weir-io"
        )
    return path
