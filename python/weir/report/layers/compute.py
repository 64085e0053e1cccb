# SPDX-License-Identifier: Apache-2.0
"""Files under layers: what the program asked for, what reached the file system, and what the layers
noted.

Source of the records: docs/formats/trace.md, section 3.5. Logical requests and IOWAIT are the
program's own calls as the hooks recorded them; system requests are what the lowest of a stack's
event layers saw, and the program's POSIX calls that the topmost one did not see: those that went to
the kernel because a layer bypasses the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from weir.analysis.columns import Columns, merged, rows
from weir.analysis.names import NO_NAME, NameTable
from weir.report.frame.build import Report, figure
from weir.trace.ops import EVENTS, NOTES, POSIX, STDIO, LayerKind, layer_kinds, ops

_BYPASSED = "bypassed_"
_SIZE = "fstat"
TOPMOST = "event"
_FORWARDED = "forwarded"
_PACK = "pack"  # its open files are memory, whose calls reach no file system
_AT_SYSTEM = (("system", "reads"), ("system", "writes"))  # requests that the layers made
_BY_NO_CALL = ("mapped", "streams")  # bypassed for a way of I/O that no call of the program shows
_STATISTIC = "statistic_"
_UNKNOWN = LayerKind("(unknown layer)", {})


@dataclass(frozen=True)
class Requests:
    """Reads and writes, and below a layer also its questions for the size; ns: their time added up.
    """

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    ns: int = 0
    sizes: int = 0

    def __add__(self, more: Requests) -> Requests:
        return Requests(*(mine + its
            for mine, its in zip(vars(self).values(), vars(more).values())))

    def beside(self, others: Requests) -> Requests:
        """What these have more, of each."""
        return Requests(*(max(0, mine - its)
            for mine, its in zip(vars(self).values(), vars(others).values())))

    @property
    def count(self) -> int:
        return self.reads + self.writes + self.sizes

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True)
class Bypass:
    """A layer bypassed a file this number of times, for this reason
    (native/layers/machinery/stack/layer.h)."""

    layer: str
    reason: str
    times: int


@dataclass(frozen=True)
class Figure:
    """One statistic of a layer, added up over all openings of the file; its layer.toml has the
    unit."""

    layer: str
    name: str
    unit: str
    value: int


@dataclass
class LayeredFile:
    """One file under layers, over all ranks chosen. events: what each event layer saw, by its
    position in the stack.

    calls: reads and writes that the program and its libraries made of the kernel, by POSIX calls.
    has_streams: streams of the C library read or wrote it, whose own calls are not recorded.
    iowait_ns: time that the program spent in its own calls on the file. lost_bytes: accepted and
    not written.
    """

    file: str
    logical: Requests = Requests()
    calls: Requests = Requests()
    has_streams: bool = False
    iowait_ns: int = 0
    events: dict[int, Requests] = field(default_factory=dict)
    bypassed: list[Bypass] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    deferred_errors: int = 0
    lost_bytes: int = 0

    @property
    def _is_bypassed_whole(self) -> bool:
        return any(one.layer == TOPMOST for one in self.bypassed)

    @property
    def went_past(self) -> bool:
        """Whether requests reached the file system that nothing counted: by a forwarding process,
        or by what a layer bypassed the file for; or whether it cannot be said which calls of the
        program passed the layers."""
        if any(one.name == _FORWARDED and one.value for one in self.figures):
            return True
        if not self.bypassed:
            return False
        is_known = 0 in self.events or (self._is_bypassed_whole and not self.events)
        return (not is_known or self.has_streams or any(one.reason in _BY_NO_CALL or
            one.layer == _PACK for one in self.bypassed))

    @property
    def past(self) -> Requests:
        """Calls of the program that went to the kernel, past the layers."""
        if self.has_streams or any(one.layer == _PACK for one in self.figures):
            return Requests()
        is_known = 0 in self.events or self._is_bypassed_whole
        return self.calls.beside(self.events.get(0, Requests())) if is_known else Requests()

    @property
    def system(self) -> Requests | None:
        """What reached the file system; None when no event layer stood below another layer, or
        when requests went past it that were not counted. Questions for the size that a layer asks
        past the others (stripe: of each directory's file) are among them.
        """
        lowest = max(self.events, default=0)
        made = sum(f.value for f in self.figures if (f.layer, f.name) in _AT_SYSTEM)
        has_lowest = lowest > 0 or (self.bypassed and not made)  # all of them went past
        if not has_lowest or self.went_past:
            return None
        seen = (self.events[lowest] if lowest else Requests()) + self.past
        asked = sum(f.value for f in self.figures if f.name == "size_requests"
            and f.layer != "system")
        return replace(seen, sizes=seen.sizes + asked)

    def most_at_system(self, of_streams: int) -> int | None:
        """Requests that reached the file system, at most, where only streams of the C library leave
        open which calls passed the layers (a library that looks at the first bytes by fread, then
        reads by pread). of_streams: as many requests at most as the streams made."""
        if not (self.has_streams and 0 in self.events):
            return None
        known = replace(self, has_streams=False)
        if known.system is None:
            return None
        # Of what the topmost layer saw, these may be of streams: then as many calls went past.
        hidden = min(of_streams, self.events[0].count)
        return known.system.count + hidden + of_streams


def layered_files(program: Columns, layered: Columns, names: NameTable) -> list[LayeredFile]:
    """One entry for each file that event layers or notes speak of, most of the program's time
    first."""
    found: dict[int, LayeredFile] = {}
    for row in rows(merged(layered.where(layered.name != NO_NAME), "name", "op", "layer")):
        one = found.setdefault(row.name, LayeredFile(names[row.name]))
        if row.layer >= NOTES:
            _note(one, row)
        else:
            position = row.layer - EVENTS
            before = one.events.get(position, Requests())
            if ops()[row.op].name == _SIZE:
                one.events[position] = replace(before, sizes=before.sizes + row.calls,
                    ns=before.ns + row.ns)
            else:
                one.events[position] = _with(before, row)
    used = program.where(np.isin(program.name, list(found))) if found else program.where(np
        .zeros(len(program), bool))
    own = used.where(~used.is_below)
    for row in rows(merged(own, "name", "op", "layer")):
        one = found[row.name]
        one.logical = _with(one.logical, row)
    for row in rows(merged(used, "name", "op", "layer")):
        one = found[row.name]
        if row.layer == POSIX:
            one.calls = _with(one.calls, row)
        one.has_streams |= row.layer == STDIO and ops()[row.op].op_class in "RW"
    for row in rows(merged(used.where(~used.is_nested), "name")):
        found[row.name].iowait_ns = row.ns
    return sorted(found.values(), key=lambda one: (-one.iowait_ns, one.file))


def _with(sums: Requests, row) -> Requests:  # type: ignore[no-untyped-def]
    reads = row.calls if ops()[row.op].op_class == "R" else 0
    writes = row.calls if ops()[row.op].op_class == "W" else 0
    if not (reads or writes):
        return sums
    return replace(
        sums,
        reads=sums.reads + reads,
        writes=sums.writes + writes,
        read_bytes=sums.read_bytes + (row.bytes if reads else 0),
        written_bytes=sums.written_bytes + (row.bytes if writes else 0),
        ns=sums.ns + row.ns,
    )


def _note(one: LayeredFile, row) -> None:  # type: ignore[no-untyped-def]
    kind = layer_kinds().get(row.layer - NOTES, _UNKNOWN)
    name = ops()[row.op].name
    if name.startswith(_BYPASSED):
        one.bypassed.append(Bypass(kind.name, name.removeprefix(_BYPASSED), row.calls))
    elif name.startswith(_STATISTIC):
        statistic = kind.statistics.get(int(name.removeprefix(_STATISTIC)))
        if statistic is not None:
            one.figures.append(Figure(kind.name, statistic.name, statistic.unit, row.bytes))
    else:
        one.deferred_errors += row.calls
        one.lost_bytes += row.bytes


@figure
def layers_of(report: Report) -> list[LayeredFile]:
    """Of the chosen members, all steps together."""
    layered = Columns.joined([step.layered for step in report.steps])
    return layered_files(report.sums, layered, report.names) if len(layered) else []
