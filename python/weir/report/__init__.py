# SPDX-License-Identifier: Apache-2.0
"""Reports of a run: build() reads it, the render functions print its tables, trace_lines() streams
its records."""

from weir.report.frame.build import Report, build
from weir.report.json import report_json
from weir.report.lines import trace_lines
from weir.report.render import render_rich, render_text

__all__ = ["Report", "build", "render_rich", "render_text", "report_json", "trace_lines"]
