# SPDX-License-Identifier: Apache-2.0
"""The version of the installed package: importlib.metadata would do, but its import alone costs
what a launch may."""

from __future__ import annotations

import os
import sys

UNKNOWN = "0+unknown"  # a source tree on sys.path, never installed


def find_version() -> str:
    for directory in sys.path:
        try:
            names = os.listdir(directory or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("weir_io-") and name.endswith(".dist-info"):
                return name[len("weir_io-") : -len(".dist-info")]
    return UNKNOWN
