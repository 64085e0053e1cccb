# SPDX-License-Identifier: Apache-2.0
"""A table that is declared once.

Its fields give the text, the page, the JSON, the table of `weir query` and its reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, whole
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table

Row = tuple  # a value for each field, in their order


@dataclass(frozen=True)
class Field:
    """One column.

    name: of the column in SQL and of the key in JSON, where a time `x_ns` becomes `x_seconds`.
    kind: text, int, int32, bool or real; with ? behind it the value may be None. unit: of the
    value: bytes, ns, MB/s or "". heading: in the text and on the page (default: the name); group:
    what stands above it and its neighbours there.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    heading: str = ""
    group: str = ""

    @property
    def column(self) -> str:
        return ("<" if self.kind.startswith("text") else "") + (self.heading or self.name)

    def cell(self, value: Any) -> str:
        """The value as text: bytes in MB, times in s."""
        if value is None:
            return "-"
        if self.unit == "bytes":
            return f"{megabytes(value):.3f}"
        if self.unit == "ns":
            return f"{value / 1e9:.3f}"
        return whole(value) if self.kind.startswith("real") else str(value)

    def pair(self, value: Any) -> tuple[str, Any]:
        """Key and value in JSON."""
        if self.unit != "ns":
            return self.name, value
        return self.name.removesuffix("ns") + "seconds", None if value is None else value / 1e9


def declared_table(
    name: str,
    heading: str,
    shows: str,
    fields: Sequence[Field],
    rows: Callable[[Report], Sequence[Row]],
    **more: Any,
) -> TableKind:
    """The kind of a table with these rows; `rows` has the decorator `figure`.

    more: other fields of TableKind. The text shows as many rows as `--top` says, JSON and SQL all.
    """
    groups = tuple((group, len(list(of))) for group, of in groupby(one.group for one in fields))

    def tables(report: Report, options: Options) -> Iterable[Table]:
        every = rows(report)
        if not every:
            return
        cells = tuple(
            tuple(field.cell(value) for field, value in zip(fields, row))
            for row in every[: options.limit]
        )
        of = f" ({len(cells)} of {len(every)})" if len(cells) < len(every) else ""
        above = groups if any(text for text, _ in groups) else ()
        yield Table(heading + of, tuple(one.column for one in fields), cells, above)

    def as_json(report: Report, _: Options) -> dict[str, Any]:
        return {
            name: [
                dict(field.pair(value) for field, value in zip(fields, row)) for row in rows(report)
            ]
        }

    return TableKind(
        name=name,
        heading=heading,
        shows=shows,
        tables=tables,
        json=as_json,
        has_rows=lambda report: bool(rows(report)),
        fields=tuple(fields),
        rows=rows,
        **more,
    )
