# SPDX-License-Identifier: Apache-2.0
"""weir measures and regulates the I/O of weather and climate models."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("weir-io")
except PackageNotFoundError:  # a source tree on sys.path, never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
