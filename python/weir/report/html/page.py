# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: one file with its styles, scripts and numbers in it.

The page may run the one script that it carries (its policy names the script's hash) and load
nothing: a name in a trace that looks like markup stays a name even where escaping it had been
forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from weir._errors import StorageError
from weir._files import complete_file
from weir._version import find_version
from weir.report.ahead import read_ahead
from weir.report.files.groups import FileGroup, file_groups
from weir.report.frame.build import Report
from weir.report.frame.section import Section, asset, rendered
from weir.report.html import bars, overview, tables
from weir.report.html.findings import findings_section, shown_findings
from weir.report.html.uplot import uplot
from weir.report.html.views import file_views
from weir.report.html.wall import wall_time
from weir.report.offsets.page import offsets
from weir.report.sentences import heading
from weir.report.timeline.page import over_time

SCRIPTS = ("tiles.js", "view.js", "plot.js", "lanes.js", "heat.js", "rates.js", "sort.js",
    "ranks.js", "offsets.js",
    "main.js")


def sections(report: Report, pattern: str | None = None) -> Iterator[Section]:
    """What the page has, in the order in which it is read; what a run has no data for is left out.
    pattern: of the files whose offsets are plotted."""
    read_ahead(report, accesses=True)
    groups = file_groups(report)
    others = list(_others(report, groups, pattern))
    shown = shown_findings(report, {one.name: one.title for one in others})
    yield overview.overview(report, groups, shown)
    if (found := findings_section(report, shown)) is not None:
        yield found
    yield from others


def _others(report: Report, groups: list[FileGroup], pattern: str | None) -> Iterator[Section]:
    yield bars.steps(report)
    if (wall := wall_time(report)) is not None:
        yield wall
    yield from over_time(report)
    if (found := offsets(report, pattern)) is not None:
        yield found
    yield from tables.early_sections(report)
    for found in (bars.files(report, groups), bars.sizes(report), file_views(report)):
        if found is not None:
            yield found
    yield from tables.late_sections(report)


def render_html(report: Report, pattern: str | None = None) -> str:
    """The whole page. pattern: of the files whose offsets are plotted; None: those that matter.
    Raises what reading the run raises."""
    made = list(sections(report, pattern))
    library, head = uplot(), heading(report)
    values = {
        "heading": head,
        "path": report.path,
        "first": made[0],
        "sections": made[1:],
        "data": _data({one.name: dict(one.data) for one in made if one.data}),
        "blobs": {f"{one.name}-{name}": Markup(text) for one in made
            for name, text in one.blobs.items()},
    }
    scripts = [library.script, *map(asset, SCRIPTS)]
    return document("page.j2", f"I/O of {head['run']}", scripts, library.style, values)


def document(template: str, title: str, scripts: list[str], style: str,
        values: dict[str, Any]) -> str:
    """A page that carries its style and its one script, which its policy names by hash. style: of
    libraries."""
    script = "\n".join(scripts)
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    common = {
        "title": title,
        "style": Markup(style + asset("style.css")),
        "script": Markup(script),
        "script_hash": base64.b64encode(digest).decode("ascii"),
        "version": find_version(),
    }
    return str(rendered(template, **common, **values))


def write_html(
    report: Report, path: str | os.PathLike[str], pattern: str | None = None
) -> int:
    """Write the page, all of it or nothing, and return its size in bytes. What is no plain file
    (/dev/null, a named pipe) is written to as it is. Raises StorageError."""
    return write_page(render_html(report, pattern), path)


def write_page(text: str, path: str | os.PathLike[str]) -> int:
    """Write a finished page, as write_html does."""
    # a directory's name may be no text
    page = text.encode("utf-8", "backslashreplace")
    try:
        with complete_file(path) as stream:
            stream.write(page)
    except OSError as error:
        raise StorageError(
            f"{path}: the page cannot be written: {error.strerror or error}; name a file in a "
            f"directory that you may write to") from error
    return len(page)


def _data(values: dict[str, Any]) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
