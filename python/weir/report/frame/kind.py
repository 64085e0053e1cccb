# SPDX-License-Identifier: Apache-2.0
"""How a table of `weir report` is declared: once, in the module that makes it. docs/extending.md
adds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.table import Table

ALL = "all"
DEFAULT_TOP = 20
DEFAULT_DETAILS = 5
MOST_ROWS = 2000  # of a list of JSON


@dataclass(frozen=True)
class Options:
    """What is printed. tables: names of kinds in the order in which they are printed, "all" for
    those that are printed together; none: the overview. top None: the default of each table; 0:
    everything. width: columns of the screen, which the overview fits into."""

    tables: Sequence[str] = ()
    by: str = "time"
    top: int | None = None
    threshold_ns: int = 0
    pattern: str | None = None
    width: int = 80

    def names(self, kind: TableKind) -> bool:
        """Whether a table is asked for by its name, and not as one of all."""
        return kind.name in self.tables

    @property
    def limit(self) -> int | None:
        """Lines of a long table; None: all of them."""
        return DEFAULT_TOP if self.top is None else self.top or None

    @property
    def json_limit(self) -> int | None:
        """Rows of a list of JSON; None: all of them."""
        return None if self.top == 0 else max(MOST_ROWS, self.top or 0)

    @property
    def file_limit(self) -> int | None:
        """Above a threshold all files are listed, unless a number is asked for."""
        return None if self.top is None and self.threshold_ns else self.limit

    @property
    def detail_limit(self) -> int | None:
        """Files of which each takes a screen."""
        return DEFAULT_DETAILS if self.top is None else self.limit


@dataclass(frozen=True)
class TableKind:
    """A kind of table, or of several that are read together.

    name: its word in `--tables`, its anchor on the page. heading: of its section there;
    short_heading: in the page's list of sections. shows: one sentence for `--help`, the overview
    and docs/reference/tables.md. tables: makes them of a report; yields nothing where the run has
    none. why_empty: the reason, when the user asked for it by name. in_all: printed by `--tables
    all`. page: where the page has it. is_in_overview: the overview shows the same itself.
    has_rows: whether a run has any, found without making the tables. is_quick: whether it is made
    where nobody named it, on the page and in JSON. json: keys of `weir report --json`; those of a
    kind that is not in `all` are there when it is named. listings: its rows by their fields
    (weir.report.frame.declared), each a table of `weir query`.
    """

    name: str
    heading: str
    shows: str
    tables: Callable[[Report, Options], Iterable[Table | str]]
    why_empty: str = "the run has none of it"
    in_all: bool = True
    short_heading: str = ""
    # early: before the files; last: at the end; own: its section is made elsewhere
    page: str = "late"
    is_in_overview: bool = False
    has_rows: Callable[[Report], bool] = lambda _: True
    is_quick: Callable[[Report], bool] = lambda _: True
    json: Callable[[Report, Options], dict[str, Any]] | None = None
    listings: tuple[Any, ...] = ()

    def has_more(self, report: Report) -> bool:
        """Whether the overview names it: the run has some of it, and the overview does not show it
        itself."""
        return self.in_all and not self.is_in_overview and self.has_rows(report)
