# SPDX-License-Identifier: Apache-2.0
"""All tables of `weir report`, in the order in which `--tables all` prints them. A new kind is one
line here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir._errors import UsageError
from weir.report.failures.table import FAILURES
from weir.report.file_systems.table import FILE_SYSTEMS
from weir.report.files.table import FILES
from weir.report.flow.table import FLOW, GRAPH, READS
from weir.report.forwarding.table import FORWARDING
from weir.report.frame.build import Report
from weir.report.frame.kind import ALL, Options, TableKind
from weir.report.frame.table import Table
from weir.report.interleaving.table import INTERLEAVING
from weir.report.layers.table import LAYERS
from weir.report.mpi_io.table import MPI_IO
from weir.report.mpi_io.variable_table import VARIABLES
from weir.report.mpi_io.view_table import FILE_VIEWS
from weir.report.output.table import OUTPUT
from weir.report.output_cost.table import OUTPUT_COST
from weir.report.processes.table import PROCESSES
from weir.report.patterns.table import PATTERNS
from weir.report.ranks.table import RANKS
from weir.report.requests.table import DURATIONS, REQUESTS
from weir.report.routines.detail import DETAIL
from weir.report.routines.table import SUMMARY
from weir.report.steps.table import STEPS
from weir.report.units.table import UNITS
from weir.report.wall.table import WALL
from weir.report.waits.phase_table import PHASES
from weir.report.waits.table import WAITS

KINDS: tuple[TableKind, ...] = (
    STEPS,
    WALL,
    OUTPUT_COST,
    WAITS,
    PHASES,
    SUMMARY,
    RANKS,
    FILES,
    FAILURES,
    REQUESTS,
    DURATIONS,
    PATTERNS,
    INTERLEAVING,
    UNITS,
    LAYERS,
    OUTPUT,
    MPI_IO,
    FILE_VIEWS,
    VARIABLES,
    FORWARDING,
    FILE_SYSTEMS,
    FLOW,
    GRAPH,
    READS,
    PROCESSES,
    DETAIL,
)
BY_NAME = {kind.name: kind for kind in KINDS}


def no_such_table(unknown: Sequence[str], known: Sequence[str]) -> str:
    """The message for words of `--tables`, an empty one among them."""
    named = [word for word in unknown if word]
    problem = f"no table {', '.join(named)}" if named else "a name is empty"
    return f"--tables: {problem}; the tables are {', '.join(known)}"


def named(names: str) -> tuple[str, ...]:
    """The words of `--tables`. Raises UsageError for one that is no table."""
    words = tuple(word.strip() for word in names.split(","))
    unknown = [word for word in words if word != ALL and word not in BY_NAME]
    if unknown:
        raise UsageError(no_such_table(unknown, (ALL, *BY_NAME)))
    return words


def report_tables(report: Report, options: Options) -> Iterator[Table | str]:
    """The tables that were asked for; plain lines (of details) as text. Raises KeyError for a name
    that is none."""
    for name in options.tables:
        for kind in [one for one in KINDS if one.in_all] if name == ALL else [BY_NAME[name]]:
            is_empty = True
            for part in kind.tables(report, options):
                is_empty = False
                yield part
            if is_empty and name != ALL:
                yield f"\n{name}: nothing to show; {kind.why_empty}"
