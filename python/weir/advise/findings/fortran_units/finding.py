# SPDX-License-Identifier: Apache-2.0
"""Finding fortran-units: statements on a Fortran unit become small requests, because the unit has a
small buffer or none, or is flushed behind each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weir.advise.frame.facts import Facts
from weir.advise.frame.finding import Advice, Finding
from weir.advise.frame.grouping import groups
from weir.advise.frame.openings import open_at_once
from weir.advise.findings.small_requests.finding import (
    CALL,
    MANY,
    SLOW,
    SMALL,
    advice_on,
    candidates,
    cured_ways,
    merged_of,
    of_fortran,
)
from weir.report.frame.amounts import amount, counted, number
from weir.report.units.compute import units_of

UNBUFFERED = 0.9  # requests for each statement: then each is one


def find(facts: Facts) -> Iterator[Advice]:
    units = {one.file: one for one in units_of(facts.report)
        if one.system_bytes <= SMALL.value * one.system_requests}
    mask = facts.files.mask(units) & candidates(facts.files)
    files = [one for one in facts.among(mask) if of_fortran(one) and cured_ways(one)]
    many = [one for one in groups(facts, files) if merged_of(one) >= MANY.value]
    at_once = open_at_once(facts, [file for group in many for file in group.files])
    for group in many:
        chosen = [units[path] for path in group.paths]
        statements, requests, moved = (sum(getattr(one, key) for one in chosen)
            for key in ("statements", "system_requests", "system_bytes"))
        is_unbuffered = requests >= UNBUFFERED * statements
        why = "each statement is a request" if is_unbuffered else "the unit has a small buffer"
        found = advice_on(facts, group, "fortran-units", at_once)
        change = ("Leave out FLUSH and GFORTRAN_UNBUFFERED_ALL, and set" if is_unbuffered
            else "Set") + (" GFORTRAN_FORMATTED_BUFFER_SIZE and GFORTRAN_UNFORMATTED_BUFFER_SIZE to"
            " 1048576 (gfortran 10 and later); ifort: BUFFERED=\"YES\" and BLOCKSIZE of OPEN.")
        yield replace(found, change=change, sentence=f"{counted(statements, 'Fortran statement')} "
            f"became {number(requests)} requests of {amount(moved / max(requests, 1))}: {why}. "
            f"{found.sentence}")


FORTRAN_UNITS = Finding(
    name="fortran-units",
    asks="Do statements on Fortran units become small requests?",
    shrinks="I/O",
    limits=(SMALL, MANY, SLOW, CALL),
    page="guide/advise.md",
    table="units",
    cure="bufa",
    find=find,
)
