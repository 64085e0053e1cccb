# SPDX-License-Identifier: Apache-2.0
"""All tables of `weir report`, in the order in which `--tables all` prints them. A new kind is one line here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weir._errors import UsageError
from weir.report import (
    detail, file_systems, files, flow, layers, mpi_io, output, phases, processes, requests, routines, steps, units, waits,
)  # fmt: skip
from weir.report.kind import ALL, Options, TableKind
from weir.report.table import Table

if TYPE_CHECKING:
    from weir.report.build import Report

KINDS: tuple[TableKind, ...] = (
    steps.STEPS,
    waits.WAITS,
    phases.PHASES,
    routines.SUMMARY,
    files.FILES,
    requests.REQUESTS,
    requests.DURATIONS,
    units.UNITS,
    layers.LAYERS,
    output.OUTPUT,
    mpi_io.MPI_IO,
    mpi_io.VARIABLES,
    file_systems.FILE_SYSTEMS,
    flow.FLOW,
    flow.GRAPH,
    flow.READS,
    processes.PROCESSES,
    detail.DETAIL,
)
BY_NAME = {kind.name: kind for kind in KINDS}


def named(names: str) -> tuple[str, ...]:
    """The words of `--tables`. Raises UsageError for one that is no table."""
    words = tuple(names.split(","))
    unknown = [word for word in words if word != ALL and word not in BY_NAME]
    if unknown:
        raise UsageError(f"--tables {','.join(unknown)}: choose of {', '.join((ALL, *BY_NAME))}")
    return words


def report_tables(report: Report, options: Options) -> Iterator[Table | str]:
    """The tables that were asked for; plain lines (of details) as text. Raises KeyError for a name that is none."""
    for name in options.tables:
        for kind in [one for one in KINDS if one.in_all] if name == ALL else [BY_NAME[name]]:
            is_empty = True
            for part in kind.tables(report, options):
                is_empty = False
                yield part
            if is_empty and name != ALL:
                yield f"\n{name}: nothing to show; {kind.why_empty}"
