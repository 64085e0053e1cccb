# SPDX-License-Identifier: Apache-2.0
"""The report as one file for a browser: opens offline, asks nothing of any server."""

from weir.report.html.page import document, render_html, write_html, write_page

__all__ = ["document", "render_html", "write_html", "write_page"]
