# SPDX-License-Identifier: Apache-2.0
"""Where the native libraries of the package lie. Loading them is left to those who need them."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from weir._errors import InputError, NotThere

if TYPE_CHECKING:
    import ctypes

PRELOAD = "libweir-preload.so"
READER = "libweir-reader.so"
DRAIN = "weir-drain"
STAGE = "weir-stage"
OUTPUT_CHECK = "libweir-output-check.so"
WRAP = "libweir-wrap.a"
WRAP_FLAGS = "weir-wrap.flags"
LAYERS = "layers.json"
# What declares layouts and signatures of READER; native/reader/CMakeLists.txt has the same list.
READER_DECLARATIONS = ("trace/_abi.py", "rules/matching/native.py")


class LibraryMissing(NotThere):
    """A native library that the package should carry is not there."""


class LibraryStale(InputError):
    """A native library was built for other declarations than those of this package."""


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


@functools.cache
def load_reader() -> ctypes.CDLL:
    """READER, loaded. The build stores the digests of READER_DECLARATIONS in the library: with
    layouts of another version numpy would read wrong columns without an error.

    Raises LibraryMissing, LibraryStale."""
    import ctypes
    import hashlib

    path = library_path(READER)
    library = ctypes.CDLL(str(path))
    package = Path(os.path.abspath(__file__)).parent
    declared = " ".join(hashlib.sha256((package / name).read_bytes()).hexdigest()
        for name in READER_DECLARATIONS)
    try:
        built_for = library.weir_reader_built_for
    except AttributeError:  # a library from before this check
        built = ""
    else:
        built_for.restype = ctypes.c_char_p
        built = built_for().decode()
    if built != declared:
        raise LibraryStale(
            f"{path}: built for another version of the Python files beside it; run `make build` in "
            f"the source tree or reinstall weir-io")
    return library
