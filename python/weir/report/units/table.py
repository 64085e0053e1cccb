# SPDX-License-Identifier: Apache-2.0
"""Fortran units: statements against the system requests that they became."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.report.frame.declared import Field, declared_table, sums
from weir.report.frame.figures import ms
from weir.report.units.compute import FortranUnit, units_of


def _remarks(every: Sequence[FortranUnit]) -> Iterator[str]:
    found = sums(every, "statements", "system_requests")
    yield f"{found['statements']} statements became {found['system_requests']} system requests"
    yield ("ms: in statements; library: of that in the Fortran library itself (text, copies), "
        "which no table counts as I/O")


UNITS = declared_table(
    name="units",
    heading="Fortran units",
    short_heading="Fortran",
    shows="Fortran statements by unit, and the requests they became",
    why_empty="no Fortran statement read or wrote",
    fields=[
        Field("units", "list", "", "units that the file was connected to; negative: newunit=",
              "Unit"),
        Field("reads", "int", "", "READ statements", "READ", "statements"),
        Field("writes", "int", "", "WRITE statements", "WRITE", "statements"),
        Field("payload_bytes", "int", "bytes", "of their I/O lists", "MB", "statements"),
        Field("ns", "int", "ns", "time in all statements on the file", "ms", "statements", ms),
        Field("library_ns", "int", "ns", "of that what the Fortran library did itself: conversion to "
              "text and back, copies; the rest is I/O", "library", "statements", ms),
        Field("io_ns", "int", "ns", "of that in calls on files"),
        Field("others", "int", "", "other statements: OPEN, CLOSE, INQUIRE, ..."),
        Field("system_requests", "int", "", "requests that libgfortran made", "system", "requests"),
        Field("system_bytes", "int", "bytes", "read and written by them", "MB", "requests"),
        Field("file", "path", "", "path of the file", "File"),
    ],
    rows=units_of,
    key="fortran_units",
    remarks=_remarks,
)
