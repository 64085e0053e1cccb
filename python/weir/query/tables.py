# SPDX-License-Identifier: Apache-2.0
"""The tables that are no stream, as Arrow tables: totals, names, operations, and those of
weir.report. Their figures are the report's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.names import NO_NAME, fold
from weir.query._arrow import arrow_schema, encoded, pyarrow
from weir.query.events import class_indices, layer_names, of_mpi, op_names, size_columns
from weir.query.schema import CLASSES, DECLARED, NAMES, OPERATIONS, TOTALS, TableSchema, table_named
from weir.report.files.last_names import row_names_of
from weir.report.frame.build import Report, StepReport
from weir.report.frame.declared import Listing
from weir.trace.ops import BELOW, NESTED, OF_OUTPUT, ops, sizes_hold

if TYPE_CHECKING:
    import pyarrow as pa

_CLASS_NAMES = list(CLASSES.values())
_SOURCES = {1: "given", 2: "descriptor"}


def _table(schema: TableSchema, columns: dict[str, Any]) -> pa.Table:
    """Columns by name: arrays, or lists of plain values."""
    pa, fields = pyarrow(), arrow_schema(schema)
    made = []
    for field in fields:
        values = columns[field.name]
        if isinstance(values, list):
            values = encoded(values) if pa.types.is_dictionary(field.type) else pa.array(values,
                field.type)
        made.append(values)
    return pa.table(made, fields)


def _from_rows(schema: TableSchema, rows: list[tuple]) -> pa.Table:
    """Rows in the order of the schema's columns."""
    columns = list(zip(*rows)) if rows else [()] * len(schema.columns)
    return _table(schema,
        {column.name: list(values) for column, values in zip(schema.columns, columns)})


def totals_table(report: Report) -> pa.Table:
    """Every row of the reader, of all chosen processes, launchers and pipes included."""
    named = [(step, one.columns, one.last)
        for step, one in zip(report.steps, row_names_of(report))]
    layered = [(step, noted, noted.name) for step in report.steps
        for noted in [step.data.layered.where(step.with_launchers[step.data.layered.member])]]
    parts = [_totals_of(*one) for every in zip(named, layered) for one in every if len(one[1])]
    pa = pyarrow()
    return pa.concat_tables(parts).unify_dictionaries() if parts else _from_rows(TOTALS, [])


def _totals_of(step: StepReport, columns: Columns, last: np.ndarray) -> pa.Table:
    pa, members = pyarrow(), step.data.members
    node_of = np.array([one.file for one in members], np.int32)[columns.member]
    moves_data = sizes_hold("data")[columns.op] & ~of_mpi(columns.op)

    def named(numbers: np.ndarray) -> pa.Array:
        known, place = np.unique(numbers, return_inverse=True)
        indices = pa.array(place.reshape(-1).astype(np.int32), mask=numbers == NO_NAME)
        return pa.DictionaryArray.from_arrays(indices,
            pa.array([step.names[n] for n in known.tolist()], pa.string()))

    def coded(indices: np.ndarray, texts: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)),
            pa.array(texts, pa.string()))

    labels, places = step.names.ranks.labels(columns.rank)
    return _table(
        TOTALS,
        {
            "step": coded(np.zeros(len(columns)), [step.name]),
            "node": coded(node_of, [one.node for one in step.data.files]),
            "pid": pa.array(np.array([one.process.pid for one in members],
                np.int32)[columns.member]),
            "rank": pa.array(step.names.ranks.ranks(columns.rank)),
            "rank_label": coded(places, labels),
            "op": coded(columns.op, op_names()),
            "layer": coded(columns.layer, layer_names()),
            "class": coded(class_indices()[columns.op], _CLASS_NAMES),
            "file": named(columns.name),
            "last_file": named(last),
            "is_file": pa.array(columns.is_file | step.data.is_excluded(columns)),
            "excluded": pa.array(step.data.is_excluded(columns)),
            "below": pa.array((columns.flags & BELOW) != 0),
            "nested": pa.array((columns.flags & NESTED) != 0),
            "of_output": pa.array((columns.flags & OF_OUTPUT) != 0),
            "launcher": pa.array(np.array([one.is_launcher for one in members],
                bool)[columns.member]),
            "bytes": pa.array(np.where(moves_data, columns.bytes, 0)),
            **size_columns(columns.op, columns.bytes, columns.errors == columns.calls),
            **{name: pa.array(getattr(columns, name)) for name in ("calls", "ns", "errors",
                "first_ns", "last_ns")},
        },
    )


def names_table(report: Report) -> pa.Table:
    """Names of all chosen processes, in the reader's order."""
    parts = [_names_of(step, index) for step in report.steps
        for index in range(len(step.data.files))]
    return pyarrow().concat_tables(parts).unify_dictionaries() if parts else _from_rows(NAMES, [])


def _names_of(step: StepReport, index: int) -> pa.Table:
    pa = pyarrow()
    file = step.data.files[index]
    table, first = file.array("names"), step.data.first_member(index)
    table = table[step.with_launchers[first : first + len(file.processes)][table["process"]]]
    count = len(table)
    pids = np.array([one.pid for one in file.processes], np.int32)
    texts = pa.array([fold(text) for text in file.texts], pa.string())
    sources = [_SOURCES.get(value, f"source {value}") for value in table["source"].tolist()]
    is_counted = file.array("texts")["is_file"] != 0
    excluded = np.isin(step.data.name_numbers[index], step.data.excluded)
    return _table(
        NAMES,
        {
            "step": [step.name] * count,
            "node": [file.node] * count,
            "pid": pa.array(pids[table["process"]]),
            "id": pa.array(table["id"].astype(np.int64)),
            "name": pa.DictionaryArray.from_arrays(pa.array(table["text"].astype(np.int32)), texts),
            "is_file": pa.array((is_counted | excluded)[table["text"]]),
            "excluded": pa.array(excluded[table["text"]]),
            "source": sources,
        },
    )


def operations_table(_: Report) -> pa.Table:
    layers = layer_names()
    rows = [(op.value, op.name, layers[op.layer], CLASSES[op.op_class])
        for _, op in sorted(ops().items())]
    return _from_rows(OPERATIONS, rows)


def _declared_table(listing: Listing, schema: TableSchema, report: Report) -> pa.Table:
    return _from_rows(schema, listing.values(report))


MADE: dict[str, Callable[[Report], Any]] = {
    "totals": totals_table, "names": names_table, "operations": operations_table,
    **{name: partial(_declared_table, one, table_named(name)) for name, one in DECLARED.items()},
}  # fmt: skip
