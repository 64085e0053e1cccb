# SPDX-License-Identifier: Apache-2.0
"""uPlot, which draws the lines: not in the source tree, but fetched by the build and carried by the
package (tools/fetch-uplot)."""

from __future__ import annotations

from dataclasses import dataclass

from weir._native import library_path

VERSION = "1.6.32"


@dataclass(frozen=True)
class Uplot:
    """Script and style with uPlot's licence in a comment, as it asks for."""

    script: str
    style: str


def uplot() -> Uplot:
    """The library as text. Raises weir._native.LibraryMissing when the build did not fetch it."""
    script, style, licence = (
        library_path(name).read_text("utf-8") for name in ("uPlot.iife.min.js", "uPlot.min.css",
            "uPlot.LICENSE")
    )
    notice = f"/*! uPlot {VERSION}\n{licence.strip()}\n*/\n"
    return Uplot(notice + script, notice + style)
