# SPDX-License-Identifier: Apache-2.0
"""Calls of netCDF-C and PnetCDF on files as a whole, by function: ends and beginnings of
definitions, and what is flushed.

Source of the records: docs/formats/trace.md, section 3.8. Sums do not distinguish functions, so
this is a pass over the records of processes that make such calls, and nothing for all others.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from weir.analysis.names import NameTable
from weir.analysis.remote import pass_over_records
from weir.analysis.step import StepData
from weir.report.frame.build import StepReport, figure
from weir.trace.ops import NETCDF, PNETCDF, library_functions, op_named

_OPS = ("library_define", "library_sync")
_NUMBER = np.uint64(0xFFFF)  # of a function in an offset

Calls = dict[str, Counter[str]]


@figure
def functions_of(step: StepReport) -> Calls:
    """By file: calls of all chosen ranks by function."""
    if step.level != "trace":
        return {}
    callers = np.zeros(len(step.data.members), bool)
    for op in _OPS:
        callers[list(step.data.members_with(op_named(op).value))] = True
    callers &= step.members
    return _functions(step.data, step.names, callers) if callers.any() else {}


@pass_over_records
def _functions(data: StepData, names: NameTable, callers: np.ndarray) -> Calls:
    ops = [op_named(op).value for op in _OPS]
    known, found = library_functions(), Calls()
    for index, file in enumerate(data.files):
        first, numbers = data.first_member(index), data.name_numbers[index]
        texts: dict[int, dict[int, int]] = {}
        for chunk in file.event_chunks():
            process = int(chunk["process"])
            if not callers[first + process]:
                continue
            if process not in texts:
                texts[process] = {int(one["id"]): int(one["text"])
                    for one in file.names_of(process)}
            records = file.records(chunk)
            its = records[np.isin(records["layer"], (NETCDF, PNETCDF))
                & np.isin(records["op"], ops)]
            for name, offset in zip(its["file"].tolist(),
                    (its["offset_size"] & _NUMBER).tolist()):
                if name in texts[process] and offset in known:
                    path = names[int(numbers[texts[process][name]])]
                    found.setdefault(path, Counter())[known[offset].name] += 1
    return found
