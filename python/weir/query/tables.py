# SPDX-License-Identifier: Apache-2.0
"""The tables that are no stream, as Arrow tables: totals, steps, processes, names, operations. Their figures are the report's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weir.analysis.columns import Columns
from weir.analysis.names import NO_NAME, fold
from weir.query._arrow import arrow_schema, encoded, pyarrow
from weir.query.events import class_indices, is_mpi_open, layer_names, of_mpi, op_names
from weir.query.schema import (
    CLASSES, CRITICAL, DECLARED, NAMES, OPERATIONS, PHASES, PROCESSES, STEPS, TOTALS, VARIABLES,
    WAITS, TableSchema,
)  # fmt: skip
from weir.report.files.last_names import last_names_of
from weir.report.frame.build import Report, StepReport
from weir.report.mpi_io.variables import variables_of
from weir.report.processes.compute import ProcessFigures, is_step_complete, process_figures
from weir.report.registry import BY_NAME
from weir.report.waits.summary import synchronisation_of
from weir.trace.ops import BELOW, NESTED, OF_OUTPUT, ops

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
            values = encoded(values) if pa.types.is_dictionary(field.type) else pa.array(values, field.type)
        made.append(values)
    return pa.table(made, fields)


def _from_rows(schema: TableSchema, rows: list[tuple]) -> pa.Table:
    """Rows in the order of the schema's columns."""
    columns = list(zip(*rows)) if rows else [()] * len(schema.columns)
    return _table(schema, {column.name: list(values) for column, values in zip(schema.columns, columns)})


def totals_table(report: Report) -> pa.Table:
    """Every row of the reader, of all processes and layers, launchers and pipes included."""
    named = [(step, one.columns, one.last) for step, one in zip(report.steps, last_names_of(report))]
    layered = [(step, step.data.layered, step.data.layered.name) for step in report.steps]
    parts = [_totals_of(*one) for every in zip(named, layered) for one in every if len(one[1])]
    pa = pyarrow()
    return pa.concat_tables(parts).unify_dictionaries() if parts else _from_rows(TOTALS, [])


def _totals_of(step: StepReport, columns: Columns, last: np.ndarray) -> pa.Table:
    pa, members = pyarrow(), step.data.members
    node_of = np.array([one.file for one in members], np.int32)[columns.member]

    def named(numbers: np.ndarray) -> pa.Array:
        known, place = np.unique(numbers, return_inverse=True)
        indices = pa.array(place.reshape(-1).astype(np.int32), mask=numbers == NO_NAME)
        return pa.DictionaryArray.from_arrays(indices, pa.array([step.names[n] for n in known.tolist()], pa.string()))

    def coded(indices: np.ndarray, texts: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), pa.array(texts, pa.string()))

    return _table(
        TOTALS,
        {
            "step": coded(np.zeros(len(columns)), [step.name]),
            "node": coded(node_of, [one.node for one in step.data.files]),
            "pid": pa.array(np.array([one.process.pid for one in members], np.int32)[columns.member]),
            "rank": pa.array(columns.rank),
            "op": coded(columns.op, op_names()),
            "layer": coded(columns.layer, layer_names()),
            "class": coded(class_indices()[columns.op], _CLASS_NAMES),
            "file": named(columns.name),
            "last_file": named(last),
            "is_file": pa.array(columns.is_file),
            "below": pa.array((columns.flags & BELOW) != 0),
            "nested": pa.array((columns.flags & NESTED) != 0),
            "of_output": pa.array((columns.flags & OF_OUTPUT) != 0),
            "launcher": pa.array(np.array([one.is_launcher for one in members], bool)[columns.member]),
            "bytes": pa.array(np.where(of_mpi(columns.op) | is_mpi_open(columns.op), 0, columns.bytes)),
            **{name: pa.array(getattr(columns, name)) for name in ("calls", "ns", "errors", "first_ns", "last_ns")},
        },
    )


def steps_table(report: Report) -> pa.Table:
    rows = []
    for step in report.steps:
        job, all_ranks = step.data.step.job, step.all
        command = " ".join(job.command) if job is not None and job.command is not None else None
        rows.append((
            step.name, step.level, command, step.data.cwd, step.started_ns, step.wall_ns,
            job.exit_status if job is not None else None, sum(rank >= 0 for rank in step.ranks), int(step.members.sum()),
            len(step.data.files), all_ranks.calls, all_ranks.bytes, all_ranks.ns, all_ranks.files, step.active_ns,
            step.lost_events, is_step_complete(step),
        ))  # fmt: skip
    return _from_rows(STEPS, rows)


def processes_table(report: Report) -> pa.Table:
    return _from_rows(PROCESSES, [row for step in report.steps for row in _process_rows(step)])


def _process_rows(step: StepReport) -> Iterator[tuple]:
    data = step.data

    def place(index: int) -> tuple:
        """The order of process_figures."""
        member = data.members[index]
        process = member.process
        return member.rank < 0, member.rank, data.files[member.file].node, process.start_ticks, process.pid, index

    everyone = np.ones(len(data.members), bool)
    for index, figures in zip(sorted(range(len(data.members)), key=place), process_figures(data, everyone)):
        yield _process_row(step, index, figures)


def _process_row(step: StepReport, index: int, figures: ProcessFigures) -> tuple:
    member = step.data.members[index]
    process, line = member.process, step.data.lines[member.file]
    return (
        figures.step, figures.node, figures.pid, figures.rank, process.ppid, figures.command, process.cwd,
        line.timestamp(process.start_ticks), line.timestamp(process.end_ticks) if process.end_ticks else None, figures.end,
        figures.is_launcher, process.events, process.counted_calls, process.lost_events, figures.calls,
        round(figures.seconds * 1e9), figures.seen_read, figures.seen_written, figures.kernel_read, figures.kernel_written,
    )  # fmt: skip


def critical_table(report: Report) -> pa.Table:
    return _from_rows(CRITICAL, [
        (step.name, file.file, op.op, op.waited_ns, op.exposed_ns, op.critical_ns)
        for step in report.steps
        if (waits := synchronisation_of(step).waits) is not None
        for file in waits.files
        for op in file.ops
    ])  # fmt: skip


def waits_table(report: Report) -> pa.Table:
    return _from_rows(WAITS, [
        (step.name, one.routine, one.communicator or None, one.calls, one.waiting_ns, one.waited_ns, one.last, one.last_times)
        for step in report.steps
        if (waits := synchronisation_of(step).waits) is not None
        for one in waits.routines
    ])  # fmt: skip


def phases_table(report: Report) -> pa.Table:
    figures = [column.name for column in PHASES.columns[2:]]
    return _from_rows(PHASES, [
        (step.name, phase.name, *(getattr(phase, figure) for figure in figures))
        for step in report.steps
        for phase in synchronisation_of(step).phases
    ])  # fmt: skip


def variables_table(report: Report) -> pa.Table:
    figures = [column.name for column in VARIABLES.columns[5:]]
    return _from_rows(VARIABLES, [
        (one.step, one.library, one.file, one.variable, one.ranks, *(getattr(one, figure) for figure in figures))
        for step in report.steps
        for one in variables_of(step)
    ])  # fmt: skip


def names_table(report: Report) -> pa.Table:
    """Names of all processes, in the reader's order."""
    parts = [_names_of(step, index) for step in report.steps for index in range(len(step.data.files))]
    return pyarrow().concat_tables(parts).unify_dictionaries() if parts else _from_rows(NAMES, [])


def _names_of(step: StepReport, index: int) -> pa.Table:
    pa = pyarrow()
    file = step.data.files[index]
    table, count = file.array("names"), len(file.array("names"))
    pids = np.array([one.pid for one in file.processes], np.int32)
    texts = pa.array([fold(text) for text in file.texts], pa.string())
    sources = [_SOURCES.get(value, f"source {value}") for value in table["source"].tolist()]
    return _table(
        NAMES,
        {
            "step": [step.name] * count,
            "node": [file.node] * count,
            "pid": pa.array(pids[table["process"]]),
            "id": pa.array(table["id"].astype(np.int64)),
            "name": pa.DictionaryArray.from_arrays(pa.array(table["text"].astype(np.int32)), texts),
            "is_file": pa.array(file.array("texts")["is_file"][table["text"]] != 0),
            "source": sources,
        },
    )


def operations_table(_: Report) -> pa.Table:
    layers = layer_names()
    rows = [(op.value, op.name, layers[op.layer], CLASSES[op.op_class]) for _, op in sorted(ops().items())]
    return _from_rows(OPERATIONS, rows)


def _declared_table(schema: TableSchema, report: Report) -> pa.Table:
    return _from_rows(schema, BY_NAME[schema.name].rows(report))


MADE: dict[str, Callable[[Report], Any]] = {
    "totals": totals_table, "steps": steps_table, "processes": processes_table, "critical": critical_table, "waits": waits_table,
    "phases": phases_table, "variables": variables_table, "names": names_table, "operations": operations_table,
    **{schema.name: partial(_declared_table, schema) for schema in DECLARED},
}  # fmt: skip
