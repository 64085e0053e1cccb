# SPDX-License-Identifier: Apache-2.0
"""Reports of a run: build() reads it, the render functions print its tables, trace_lines() streams
its records."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.report.frame.build import Report, build
    from weir.report.json import report_json
    from weir.report.lines import trace_lines
    from weir.report.render import render_rich, render_text

__all__ = ["Report", "build", "render_rich", "render_text", "report_json", "trace_lines"]
_MODULES = {"Report": "frame.build", "build": "frame.build", "report_json": "json",
    "trace_lines": "lines", "render_rich": "render", "render_text": "render"}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Imported when they are first used: what the report shows (weir.advise) is computed from
    subjects in this package."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
