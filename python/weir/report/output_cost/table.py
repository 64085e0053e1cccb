# SPDX-License-Identifier: Apache-2.0
"""Tables output_cost and output_cost_by_variable (docs/guide/output-cost.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from weir.analysis.names import matches, shown
from weir.analysis.patterns import PATTERN_LEGEND
from weir.report.frame.build import Report, StepReport, figure
from weir.report.frame.declared import Field, Listing
from weir.report.frame.kind import DEFAULT_TOP, Options, TableKind
from weir.report.frame.table import Table
from weir.report.output_cost.compute import Cost, may_be_known, output_costs_of
from weir.report.waits.locations import EVERYTHING

LEAST_NS = 500_000  # less shows as 0.000 s
_IN_CALLS, _INFERRED = "s in calls", "s inferred"
_FIGURES = (
    Field("calls", "int", "", "calls of that rank", "calls"),
    Field("elapsed_ns", "int", "ns", "of the rank with most work on it: the sum of mpi_ns to "
          "packing_ns", "all", "s"),
    Field("waiting_ns", "int", "ns", "measured: for how long that rank waits for others within its "
          "calls in MPI and MPI-IO, which is no part of elapsed_ns", "waits", "s"),
    Field("mpi_ns", "int", "ns", "measured: in MPI and MPI-IO within its calls, less waiting_ns",
          "MPI", _IN_CALLS),
    Field("library_ns", "int", "ns", "measured: in its calls of netCDF, PnetCDF, HDF5 and libweir, "
          "outside of MPI and of system calls: conversion, compression, copies", "library",
          _IN_CALLS),
    Field("system_ns", "int", "ns", "measured: in calls of the system on files", "system",
          _IN_CALLS),
    Field("gather_ns", "int", "ns", "inferred: gathers of what it writes next, from when all have "
          "come", "gather", _INFERRED),
    Field("packing_ns", "int", "ns", "inferred: computing between gathers and calls", "packing",
          _INFERRED),
    Field("rank", "rank", "", "that rank", "rank"),
    Field("ranks", "int", "", "ranks that make calls on it"),
    Field("all_ns", "int", "ns", "elapsed_ns of all ranks, added up", "all", "rank-s"),
    Field("waited_ns", "int", "ns", "waits of other ranks in MPI for one in it", "caused",
          "rank-s"),
)  # fmt: skip
_STEP = Field("step", "text", "", "name of the step")
_FILE = Field("file", "path", "",
              "path of the file; output:STREAM: of libweir, on ranks of the model",
              "File")  # fmt: skip
LISTING = Listing(
    "output_cost",
    "what output costs as a whole, by file, as in `weir report --tables output-cost`",
    (_STEP, *_FIGURES, _FILE),
    lambda report: files_of(report),
)
_BY_PATTERN = replace(LISTING, fields=(
    _STEP, *_FIGURES, Field("files", "int", "", "how many they are", "files"),
    replace(_FILE, heading="File, or files of one pattern"),
))  # fmt: skip
BY_VARIABLE = Listing(
    "output_cost_by_variable",
    "what output costs as a whole, by variable, as in `weir report --tables output-cost`",
    (
        _STEP,
        *_FIGURES,
        Field("variable", "text", "", "its name; (the file): calls on the whole file",
              "Variable"),
        Field("file", "path", "", "path of the file", "File",
              show=lambda path: shown(os.path.basename(path), None)),
    ),
    lambda report: variables_of(report),
)  # fmt: skip


@figure
def files_of(report: Report) -> list[dict[str, Any]]:
    """Of all steps, in their order, the dearest file first."""
    return _rows(report, "files")


@figure
def variables_of(report: Report) -> list[dict[str, Any]]:
    return _rows(report, "variables")


def _rows(report: Report, of: str) -> list[dict[str, Any]]:
    return [
        row
        for step, found in zip(report.steps, output_costs_of(report))
        if found is not None
        for row in _of_step(getattr(found, of), step)
    ]


_LEGEND = (
    "of one rank, the one with most work on the file: all = in calls (measured) + inferred; waits: "
    "within these calls for other ranks, no part of all",
    "gather: data that it writes next; packing: computing from there to the call",
    "caused: waits of other ranks in MPI for one in output",
)


def _is_serial(whole: Cost) -> bool:
    """Whether there is nobody beside the process, and what it started."""
    return whole.rank.label == EVERYTHING


def _legend(whole: Cost) -> tuple[str, ...]:
    if whole.rank.is_rank:
        return _LEGEND
    who = "all processes together" if _is_serial(whole) else \
        "one process, the one with most work on the file"
    first = _LEGEND[0].replace("one rank, the one with most work on the file", who)
    return (first.partition("; waits:")[0], *_LEGEND[1:2])


def _of_total(whole: Cost) -> str:
    of_whom = f"of {whole.rank.title}, which has"
    if not whole.rank.is_rank:
        of_whom = "of the process with"
    if _is_serial(whole):
        return ("TOTAL: a moment in calls on several files counts once; the lines may add up to "
            "more")
    return (
        f"TOTAL: {of_whom} most work on all files together; no sum of the lines: these may be of "
        "other ranks, and add up to more where calls on several files overlap in time"
    )


def _tables(report: Report, options: Options) -> Iterator[Table]:
    for step, found in zip(report.steps, output_costs_of(report)):
        if found is None:
            continue
        wanted = options.pattern
        kept, variables = (
            [one for one in every if wanted is None or matches(one.file, wanted)]
            for every in (found.files, found.variables)
        )
        if kept:
            is_whole = wanted is None and len(kept) > 1
            if options.limit is not None and len(kept) > options.limit:
                kept = found.by_pattern(kept)
            has_patterns = any(one.files > 1 for one in kept)
            top, which = _listed(kept, options)
            yield (_BY_PATTERN if has_patterns else LISTING).table(
                f"Cost of output of {step.name}", _of_step(kept, step), cwd=step.data.cwd,
                top=top, which=which, footer=_of_step([found.whole], step) * is_whole,
                without=["rank"] * _is_serial(found.whole),
                remarks=_legend(found.whole) + (_of_total(found.whole),) * is_whole
                + (PATTERN_LEGEND,) * has_patterns,
            )  # fmt: skip
        yield from _by_file(variables, step, options.limit)


def _listed(costs: Sequence[Cost], options: Options) -> tuple[int | None, str]:
    """How many lines, the dearest, and what to say of the others: lines of zeros are not listed,
    unless there is no other, or the user chooses files."""
    seen = sum(one.elapsed_ns >= LEAST_NS for one in costs)
    if options.top is None and options.pattern is None and 0 < seen < min(len(costs), DEFAULT_TOP):
        return seen, ", the others 0.000 s"
    return options.limit, ""


def _by_file(
    variables: Sequence[Cost], step: StepReport, top: int | None
) -> Iterator[Table]:
    """Variables of all files, the dearest first."""
    if variables:
        title = f"Cost of output of {step.name} by variable"
        rows = _of_step(variables, step)
        without = ["all_ns", "rank"]
        yield BY_VARIABLE.table(title, rows, cwd=step.data.cwd, top=top, without=without)


def _of_step(costs: Sequence[Cost], step: StepReport) -> list[dict[str, Any]]:
    return [
        vars(one) | {"step": step.name} for one in costs
    ]  # fmt: skip


OUTPUT_COST = TableKind(
    name="output-cost",
    heading="Cost of output",
    short_heading="Output cost",
    shows="output as a whole: gather, packing, libraries, files",
    tables=_tables,
    why_empty="nothing was written, or single calls, and those of MPI, were not recorded",
    page="early",
    json=lambda report, options: {
        one.name: one.json(one.rows(report)) for one in (LISTING, BY_VARIABLE)
    },
    has_rows=lambda report: any(map(may_be_known, report.steps)),
    listings=(LISTING, BY_VARIABLE),
)
