# SPDX-License-Identifier: Apache-2.0
"""A run while it goes on: what its ranks have done since the last look, from the mapped trace. The
program does not notice."""

from weir.watch.view import lines, watch_lines, watch_screen
from weir.watch.watch import Look, Watch

__all__ = ["Look", "Watch", "lines", "watch_lines", "watch_screen"]
