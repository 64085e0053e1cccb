# SPDX-License-Identifier: Apache-2.0
"""The command ``weir``: verbs, options, and the one place where errors become messages and exit
statuses."""

from weir.cli._main import main

__all__ = ["main"]
