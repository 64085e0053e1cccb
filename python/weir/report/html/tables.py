# SPDX-License-Identifier: Apache-2.0
"""The tables of the terminal as tables of the page: the same cells, which the page can sort."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from weir.report.build import Report
from weir.report.html.section import Section, rendered
from weir.report.render import TABLES, Options, report_tables
from weir.report.tables import Table

# Those that have a section of their own kind, or are no tables.
SPECIAL = ("steps", "files", "requests", "durations", "detail")
TITLES = {
    "summary": "By routine",
    "units": "Fortran units",
    "layers": "Files under layers",
    "output": "Output through libweir",
    "processes": "Processes",
    "waits": "Who waits for whose I/O",
    "phases": "Phases",
    "flow": "Data between steps",
    "graph": "Who reads what others wrote",
    "reads": "Files read more than once",
    "mpi-io": "MPI-IO",
    "variables": "Variables",
    "filesystems": "File systems",
}
BRIEF = {"waits": "Waits", "flow": "Data flow", "summary": "Routines", "units": "Fortran", "layers": "Layers", "output": "Output"}
EARLY = ("waits", "phases")  # before the files: what the forecast pays
TOP = 30
MOST_OPEN = 60  # rows of all tables of a section that are open when the page opens: of more, the first tables, and one always


def early_sections(report: Report) -> list[Section]:
    """Sections of the tables that say what the forecast pays."""
    return [one for name in EARLY if name in TABLES and (one := table_section(report, name)) is not None]


def late_sections(report: Report) -> list[Section]:
    """All other tables of `weir report` that have no section of another kind."""
    names = [name for name in TABLES if name not in (*EARLY, *SPECIAL)]
    names.sort(key=lambda name: name in ("summary", "processes"))
    return [one for name in names if (one := table_section(report, name)) is not None]


def table_section(report: Report, name: str) -> Section | None:
    """The tables of one name; None when the run has none."""
    found = [one for one in report_tables(report, Options((name,), top=TOP)) if isinstance(one, Table) and one.rows]
    if not found:
        return None
    rows = list(accumulate(len(one.rows) for one in found))
    title = TITLES.get(name, name.capitalize())
    body = Markup("").join(
        rendered("tables.j2", table=one, has_caption=one.title != title, is_folded=i > 0 and rows[i] > MOST_OPEN)
        for i, one in enumerate(found)
    )
    return Section(name, title, body, brief=BRIEF.get(name, ""))
