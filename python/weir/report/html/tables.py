# SPDX-License-Identifier: Apache-2.0
"""The tables of the terminal as tables of the page: the same cells, which the page can sort."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from weir.report.frame.build import Report
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.section import Section, rendered
from weir.report.frame.table import Table
from weir.report.registry import KINDS

TOP = 30
# rows of all tables of a section that are open when the page opens: of more, the first tables, and
# one always
MOST_OPEN = 60


def early_sections(report: Report) -> list[Section]:
    """Sections of the tables that stand before the files."""
    return _sections(report, "early")


def late_sections(report: Report) -> list[Section]:
    """Sections of all other tables, but for those that have one of another form."""
    return _sections(report, "late") + _sections(report, "last")


def _sections(report: Report, place: str) -> list[Section]:
    kinds = [kind for kind in KINDS if kind.page == place and kind.in_all]
    return [made for kind in kinds if (made := table_section(report, kind)) is not None]


def table_section(report: Report, kind: TableKind) -> Section | None:
    """The tables of one kind; None when the run has none. Of one that takes long the command."""
    if not kind.is_quick(report):
        left_out = "Not on this page, because it takes long for so many ranks and files: "
        body = Markup("<p>{}<code>weir report {} --tables {}</code></p>").format(
            left_out, report.path, kind.name)
        return Section(kind.name, kind.heading, body, brief=kind.short_heading)
    found = [one for one in kind.tables(report, Options((kind.name,), top=TOP))
        if isinstance(one, Table) and one.rows]
    if not found:
        return None
    rows = list(accumulate(len(one.rows) for one in found))
    body = Markup("").join(
        rendered("tables.j2", table=one, has_caption=one.title != kind.heading, is_folded=i > 0
            and rows[i] > MOST_OPEN)
        for i, one in enumerate(found)
    )
    return Section(kind.name, kind.heading, body, brief=kind.short_heading)
