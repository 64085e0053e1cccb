# SPDX-License-Identifier: Apache-2.0
"""The report as one file for a browser: opens offline, asks nothing of any server."""

from weir.report.html.page import render_html, write_html

__all__ = ["render_html", "write_html"]
