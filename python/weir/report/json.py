# SPDX-License-Identifier: Apache-2.0
"""The report as JSON: a stable interface, keys are only ever added (docs/reference/tables.md).
Counts and bytes are exact. Lists have their first MOST_ROWS rows, unless `top` is 0."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from weir.advise.advise import findings_of
from weir.advise.text import advice_json
from weir.analysis.memory import return_memory
from weir.analysis.totals import Totals
from weir.report.ahead import read_ahead, read_beside_accesses
from weir.report.frame.build import Report
from weir.report.frame.excluded import excluded_of
from weir.report.frame.declared import First, Made
from weir.report.frame.kind import Options
from weir.report.notes import notes
from weir.report.processes.compute import is_complete, unseen_of
from weir.report.registry import KINDS
from weir.report.steps.table import totals_json
from weir.report.unseen import unseen_statement


MOST_KEYS = 40  # of an object on one line
_PLAIN = frozenset({int, str, float, bool, type(None)})  # what most values are


def report_json(report: Report, options: Options = Options()) -> dict[str, Any]:
    """What is known of the run as a whole, and the keys of every table that `all` prints or that is
    named. Files are those that by, top, threshold_ns and pattern choose as in
    weir.report.files.compute.chosen. rows: of each list that is cut, how many it would have."""
    read_ahead(report, accesses=True)
    not_files, launchers, segments = zip(*(step.left_out()
        for step in report.steps)) if report.steps else ((), (), ())
    kept = _Kept(options.json_limit)
    kept.add({
        "format": 1,
        "unseen": _unseen(report),
        "run": report.path,
        "total": {
            "wall_s": report.wall_ns / 1e9,
            "rank0": totals_json(report.rank0),
            "all": totals_json(report.all),
            "active_s": None if report.active_ns is None else report.active_ns / 1e9,
            **totals_json(report.all),
        },
        "lost_events": report.lost_events,
        "complete": is_complete(report),
        "notes": notes(report),
    })
    read_beside_accesses(report)
    kept.add({
        "findings": [advice_json(one) for one in findings_of(report).advices],
        "problems": [
            {"file": p.path, "byte": p.offset, "reason": p.reason, "count": p.count}
            for p in report.problems
        ],
        "not_files": _summed(not_files),
        "launchers": _summed(launchers),
        "excluded": _excluded(report),
        "mpi_segments": {"files": sum(t.files or 0 for t in segments), **_summed(segments)},
    })
    findings_of(report).facts.forget()
    return_memory()
    for kind in KINDS:
        if kind.json is not None and (kind.in_all or options.names(kind)):
            kept.add(kind.json(report, options))
    return kept.values | {"rows": kept.rows}


class _Kept:
    """What is printed, with the first rows of each list. rows: of each list that is cut, how many
    it would have, by place."""

    def __init__(self, limit: int | None):
        self.values: dict[str, Any] = {}
        self.rows: dict[str, int] = {}
        self._limit = limit

    def add(self, found: dict[str, Any]) -> None:
        self.values |= {key: _cut(value, self._limit, key, self.rows)
            for key, value in found.items()}


def _cut(value: Any, limit: int | None, place: str, rows: dict[str, int]) -> Any:
    """The value with the first rows of each list; rows: gets the number of all, by place."""
    if isinstance(value, dict):
        inner = {key: _cut(one, limit, f"{place}.{key}", rows) for key, one in value.items()
            if type(one) not in _PLAIN}
        return value | inner if inner else value
    if not isinstance(value, (list, Made)):
        return value
    total = value.total if isinstance(value, First) else len(value)
    kept = value[:] if limit is None or isinstance(value, First) else value[:limit]
    if total > len(kept):
        rows[place] = max(total, rows.get(place, 0))
    nested = any(isinstance(one, (dict, list)) for one in kept[:1])
    return [_cut(one, limit, place, rows) for one in kept] if nested else kept


def write_json(value: Any, stream: TextIO, indent: str = "") -> None:
    """One line for what holds no rows, and for each of these."""
    deeper = indent + " "
    if _is_plain(value):
        stream.write(json.dumps(value))
        return
    is_dict = isinstance(value, dict)
    stream.write("{" if is_dict else "[")
    for number, one in enumerate(value):
        stream.write(f"{',' if number else ''}\n{deeper}")
        if is_dict:
            stream.write(f"{json.dumps(one)}: ")
        write_json(value[one] if is_dict else one, stream, deeper)
    stream.write(f"\n{indent}" + ("}" if is_dict else "]"))


def _is_plain(value: Any) -> bool:
    """Whether it has no dictionary in it but small ones: then the encoder in C writes it."""
    if isinstance(value, dict):
        return not any(isinstance(one, list) and _has_rows(one) or isinstance(one, dict)
            and not _is_plain(one) for one in value.values()
            if type(one) not in _PLAIN) and len(value) < MOST_KEYS
    return not isinstance(value, list) or not _has_rows(value)


def _has_rows(value: list) -> bool:
    return bool(value) and isinstance(value[0], (dict, list))


def _summed(parts: Iterable[Totals]) -> dict[str, Any]:
    every = list(parts)
    calls, moved, ns = (sum(getattr(t, key) for t in every) for key in ("calls", "bytes", "ns"))
    return {"calls": calls, "bytes": moved, "seconds": ns / 1e9}


def _excluded(report: Report) -> dict[str, Any]:
    """Files that are left out: how many, calls, bytes and time, and the words that they are left
    out by."""
    found = excluded_of(report)
    return {"files": found.files, **_summed([found.totals]), "words": dict(found.words)}


def _unseen(report: Report) -> dict[str, Any]:
    """What the kernel counted and nobody saw; statement: the first line of the report where it is
    not the whole truth."""
    steps = [(step.name, unseen_of(step)) for step in report.steps]
    return {
        "statement": unseen_statement(report),
        "bytes": sum(one.bytes for _, one in steps),
        "kernel_bytes": sum(one.counted for _, one in steps),
        "processes": [
            {"step": name, "pid": p.pid, "command": p.command, "bytes": p.unseen, "way": p.way}
            for name, one in steps for p in one.processes
        ],
        "programs": [
            {
                "step": name, "node": p.node, "pid": p.pid, "rank": p.rank, "program": p.program,
                "reason": p.reason, "signal": p.signal or None, "group_bytes": group.bytes,
                "group_pids": [other.pid for other in group.programs], "matters": group.matters,
            }
            for name, one in steps for group in one.groups for p in group.programs
        ],
    }  # fmt: skip
