# SPDX-License-Identifier: Apache-2.0
"""Columns that are declared once.

A `Field` is a column wherever it appears: in the text and on the page, in the JSON, in a table of
`weir query`, and in the reference. A `Listing` is rows of the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from weir.analysis.names import escaped, matches, shown
from weir.analysis.ranks import rank_list
from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, seconds, share_text, whole
from weir.report.frame.kind import Options, TableKind
from weir.report.frame.table import Table

Row = Any  # an object or a mapping with a value for the name of each field


@dataclass(frozen=True)
class Field:
    """One column.

    name: of the column in SQL. kind: text, path, int, int32, bool or real; with ? behind it the
    value may be None; list: of values, in SQL a text with blanks between them; object: in JSON
    alone; rank: a RankName (weir.analysis.ranks), in SQL and JSON two columns, of its number in its
    program and of its label; ranks: several of them. unit: of the value: bytes, ns, MB/s, 1 (a
    share, printed in %) or "". heading: in the
    text and on the page, < before it: aligned left; without one it is not there; group: what stands
    above it and its neighbours. show: the text of a value, where it is not that of its unit. key:
    in JSON, default: the name, and `x_s` or `seconds` of a time `x_ns` or `ns`; None: not there.
    is_whole: its texts are not shortened where the table is wider than the screen.
    is_key: every part of a table that is wider than the screen has it.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    heading: str = ""
    group: str = ""
    show: Callable[[Any], str] | None = None
    key: str | None = ""
    is_whole: bool = False
    is_key: bool = False

    @property
    def may_be_null(self) -> bool:
        return self.kind.endswith("?")

    @property
    def column(self) -> str:
        is_left = self.kind.startswith(("text", "path")) and self.heading[0] != "<"
        return "<" * is_left + self.heading

    def cell(self, value: Any, cwd: str | None) -> str:
        """The value as text: bytes in MB, times in s, a path from the working directory."""
        if value is None:
            return "-"
        if self.show is not None:
            return self.show(value)
        if self.kind.startswith("path"):
            return shown(value, cwd)
        if self.kind.startswith("text"):
            return escaped(value)
        if self.kind == "ranks":
            return rank_list(value) or "-"
        if self.kind.startswith("rank"):
            return value.label
        if self.kind == "list":
            return ",".join(map(str, value)) or "-"
        formats: dict[str, Callable[[Any], str]] = {
            "bytes": lambda count: f"{megabytes(count):.3f}",
            "ns": seconds,
            "1": share_text,
        }
        return formats.get(self.unit, whole if self.kind.startswith("real") else str)(value)

    @property
    def parts(self) -> tuple[Field, ...]:
        """The columns that it is in SQL."""
        if not self.kind.startswith("rank"):
            return (self,)
        kinds = ("list", "list") if self.kind == "ranks" else ("int32", "text")
        null, name = "?" * self.may_be_null, self.name
        labels = f"{name.removesuffix('s')}_labels" if self.kind == "ranks" else f"{name}_label"
        meaning = f"what tables print of {name}: model:0, post, ..."
        return (
            replace(self, kind=kinds[0] + null), Field(labels, kinds[1] + null, "", meaning)
        )  # fmt: skip

    def values(self, row: Row) -> tuple[Any, ...]:
        """Of its parts."""
        value = _value(row, self.name)
        if not self.kind.startswith("rank"):
            return (value,)
        if self.kind == "ranks":
            return tuple(one.rank for one in value), tuple(one.label for one in value)
        return (None, None) if value is None else (value.rank, value.label)

    @property
    def json_key(self) -> str | None:
        if self.key or self.key is None or self.unit != "ns":
            return self.name if self.key == "" else self.key
        return "seconds" if self.name == "ns" else self.name.removesuffix("ns") + "s"

    def json(self, value: Any) -> Any:
        """A time in s, but where the key says ns; an object may be a function that makes it."""
        if callable(value):
            return value()
        in_seconds = self.unit == "ns" and not str(self.json_key).endswith("ns")
        if in_seconds and value is not None:
            return value / 1e9
        return list(value) if isinstance(value, tuple) else value


def _value(row: Row, name: str) -> Any:
    is_mapping = type(row) is dict or isinstance(row, Mapping)  # the first is much faster
    return row[name] if is_mapping else getattr(row, name)


class First(list):
    """The first rows of a list that has `total`."""

    def __init__(self, rows: Iterable[Any], total: int):
        super().__init__(rows)
        self.total = total


class Made(Sequence):
    """So many rows, each made when it is asked for."""

    def __init__(self, count: int, row: Callable[[int], Row]):
        self._count, self._row = count, row

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        places = range(self._count)[at]
        return self._row(places) if isinstance(places, int) else list(map(self._row, places))

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, range(self._count))


@dataclass(frozen=True)
class Listing:
    """Rows of the same fields. name: of its table in `weir query`; meaning: its sentence in the
    reference. rows: all that a report has, computed once (decorator `figure`) where it is dear."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    rows: Callable[[Report], Sequence[Row]]

    @property
    def columns(self) -> list[Field]:
        """Those in SQL."""
        return [part for one in self.fields if one.kind != "object" for part in one.parts]

    def values(self, report: Report) -> list[tuple]:
        """The rows in SQL."""
        fields = [one for one in self.fields if one.kind != "object"]
        return [
            tuple(_sql(value) for one in fields for value in one.values(row))
            for row in self.rows(report)
        ]

    def json(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        fields = [(one, [(part.json_key, part.json) for part in one.parts])
            for one in self.fields if one.json_key]
        return [
            {
                key: json(value)
                for one, parts in fields
                for (key, json), value in zip(parts, one.values(row))
            }
            for row in rows
        ]

    def first(self, rows: Sequence[Row], limit: int | None) -> First:
        """As json(), of the first rows."""
        return First(self.json(rows[:limit]), len(rows))

    def table(
        self,
        title: str,
        rows: Sequence[Row],
        *,
        cwd: str | None = None,
        top: int | None = None,
        which: str = "",
        without: Sequence[str] = (),
        footer: Iterable[Mapping[str, Any]] = (),
        remarks: Iterable[str] = (),
    ) -> Table:
        """The first rows as text. which: words behind the number of those that are listed. without:
        names of fields that are left out. footer: lines at the end, empty where they have no value;
        a text there is printed as it is."""
        fields = [one for one in self.fields if one.heading and one.name not in without]
        listed = rows[:top]
        of = f" ({len(listed)} of {len(rows)}{which})" if len(listed) < len(rows) else ""
        groups = tuple((text, len(list(under))) for text, under in groupby(f.group for f in fields))

        def last(line: Mapping[str, Any], field: Field) -> str:
            value = line.get(field.name, "")
            return value if isinstance(value, str) else field.cell(value, cwd)

        return Table(
            title + of,
            tuple(one.column for one in fields),
            tuple(tuple(f.cell(_value(row, f.name), cwd) for f in fields) for row in listed),
            groups if any(text for text, _ in groups) else (),
            tuple(tuple(last(line, f) for f in fields) for line in footer),
            tuple(remarks),
            tuple(one.column for one in fields if one.is_whole),
            tuple(one.column for one in fields if one.is_key),
        )


def _sql(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else value


def sums(rows: Sequence[Row], *names: str) -> dict[str, Any]:
    """The sum of each of these fields; None where a value is not known."""
    columns = {name: [_value(row, name) for row in rows] for name in names}
    return {name: None if None in column else sum(column) for name, column in columns.items()}


def declared_table(
    name: str,
    heading: str,
    shows: str,
    fields: Sequence[Field],
    rows: Callable[[Report], Sequence[Row]],
    key: str = "",
    remarks: Callable[[Sequence[Row]], Iterable[str]] = lambda _: (),
    **more: Any,
) -> TableKind:
    """The kind of a table that is one listing. key: in JSON (default: the name). remarks: on all
    rows. more: other fields of TableKind. Text has the rows that `--top` and `--file` choose."""
    meaning = f"{shows}, as in `weir report --tables {name}`"
    listing = Listing(name, meaning, tuple(fields), rows)

    paths = [one.name for one in fields if one.kind == "path"]

    def is_chosen(row: Row, pattern: str | None) -> bool:
        found = [_value(row, name) for name in paths]
        return pattern is None or not found or any(matches(path, pattern) for path in found)

    def tables(report: Report, options: Options) -> Iterable[Table]:
        every = [row for row in rows(report) if is_chosen(row, options.pattern)]
        if every:
            top, said = options.limit, remarks(every)
            yield listing.table(heading, every, cwd=report.cwd, top=top, remarks=said)

    kind = TableKind(
        name=name,
        heading=heading,
        shows=shows,
        tables=tables,
        json=lambda report, options: {
            key or name: listing.first(rows(report), options.json_limit)
        },
        has_rows=lambda report: bool(rows(report)),
        listings=(listing,),
    )
    return replace(kind, **more)
