# SPDX-License-Identifier: Apache-2.0
"""Which library makes the calls on files, for the words on what to change in the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.advise.frame.facts import File
from weir.trace.ops import LAYER_NAMES, ops

# Ends of names, for files whose library the trace does not have: one that is linked statically.
_ENDS = {"netcdf": (".nc", ".nc4", ".cdf"), "hdf5": (".h5", ".hdf5"),
    "eccodes": (".grib", ".grib2", ".grb", ".grb2", ".def", ".table")}  # fmt: skip


def libraries(files: Iterable[File]) -> set[str]:
    """Names as in the table of operations, and those of _ENDS."""
    every = list(files)
    layer_of = {one.name: LAYER_NAMES[one.layer] for one in ops().values()
        if one.layer < len(LAYER_NAMES)}
    found = {layer_of[op.op] for file in every if file.totals is not None
        for op in file.totals.ops if op.op in layer_of}
    found |= {name for name, ends in _ENDS.items() if any(f.path.endswith(ends) for f in every)}
    return found | {"eccodes" for file in every if "/eccodes/" in file.path}


def fitting(files: Iterable[File], texts: Mapping[str, str]) -> str:
    """Of texts by library those that fit, in brackets behind a blank; nothing where none does."""
    found = libraries(files)
    chosen = "; ".join(text for name, text in texts.items() if name in found)
    return f" ({chosen})" if chosen else ""
