# SPDX-License-Identifier: Apache-2.0
"""One module for each suite: SUITE, or SUITES where one program is tested in several ways."""

from __future__ import annotations

import importlib
import pkgutil

from harness.model import Suite


def all_suites() -> list[Suite]:
    """The suites of all modules, by name."""
    found: list[Suite] = []
    for module in pkgutil.iter_modules(__path__):
        content = importlib.import_module(f"{__name__}.{module.name}")
        found += getattr(content, "SUITES", None) or [content.SUITE]
    return sorted(found, key=lambda suite: suite.name)
