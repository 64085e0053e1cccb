# SPDX-License-Identifier: Apache-2.0
"""The number of a run: which processes of a node one `weir run` has started.

Runs of a user outside any batch job share a directory on the node, and so do those of one job that
run at the same time. Bytes that layers could not write are recorded there with the number of their
run (docs/formats/arena.md), which all processes inherit in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "WEIR_RUN_NUMBER"
_HALF = 32


def make_number(environ: Mapping[str, str]) -> int:
    """For a run that begins in this environment. The upper half is the outermost run's, the lower
    half its own; the outermost one has the same in both."""
    own = (int.from_bytes(os.urandom(4), "little") >> 1) or 1
    outer = number_of(environ)
    return (outer >> _HALF or own) << _HALF | own


def number_of(environ: Mapping[str, str]) -> int:
    """Of the run that these variables are from; 0: of none."""
    text = environ.get(VARIABLE, "")
    return int(text) if text.isdecimal() and len(text) <= 19 else 0


def is_within(number: int, run: int) -> bool:
    """Whether a process with this number belongs to the run, or to one within it."""
    outermost = run >> _HALF
    return run != 0 and (number == run or (
        run == outermost << _HALF | outermost and number >> _HALF == outermost))
