# SPDX-License-Identifier: Apache-2.0
"""weir measures and regulates the I/O of weather and climate models."""

from weir._errors import Error, IncompleteError, InputError, NotThere, StorageError, UsageError
from weir._open import open
from weir._version import find_version

__version__ = find_version()

__all__ = ["Error", "IncompleteError", "InputError", "NotThere", "StorageError", "UsageError",
    "__version__", "open"]
