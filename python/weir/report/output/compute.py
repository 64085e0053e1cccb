# SPDX-License-Identifier: Apache-2.0
"""What output through libweir cost the model: the figures of the WRF reference, from the records of
layer output.

Source of the records: docs/formats/trace.md, section 3.6. Times of ranks of the model are those of
the rank that lost most (the others wait for it sooner or later); times of writers are those of the
busiest one, bytes are those of all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from weir.analysis.columns import Columns, merged, rows
from weir.analysis.ranks import RankName
from weir.analysis.names import NO_NAME, NameTable
from weir.report.frame.build import Report, StepReport, figure
from weir.trace.ops import OF_OUTPUT, OUTPUT, ops

_PREFIX = "output:"
_STORED = re.compile(r"(\w+):(\d+):(\d+)")  # a field at the end of a file
_SEEN = ("put", "lend", "wait", "end_step")  # none of them lies within another
_BUSY = ("frame", "part", "accumulate", "close")
_WORK = ("fetch", "transpose", "encode", "write")


@dataclass(frozen=True)
class StreamOutput:
    """One stream. put_ns (lent fields included) and wait_ns: of the rank of the model that lost
    most to output in all. write_ns: of the busiest writer of the stream. fetch_ns to encode_ns: of
    all writers; encode_ns lies within the writing. refused: frames that failed or were not
    complete."""

    stream: str
    frames: int
    refused: int
    puts: int
    put_bytes: int
    put_ns: int
    wait_ns: int
    write_ns: int
    written_bytes: int
    fetch_ns: int
    transpose_ns: int
    encode_ns: int


@dataclass(frozen=True)
class FieldOutput:
    """A field of a stream whose values are packed, rounded or compressed, in all files: bytes of
    its values and of what is in the files; bits kept of the values of a chunk or message, 0 where a
    library decides."""

    stream: str
    field: str
    value_bytes: int
    file_bytes: int
    least_bits: int
    most_bits: int

    @property
    def saved_bytes(self) -> int:
        return self.value_bytes - self.file_bytes


@dataclass(frozen=True)
class StepOutput:
    """One step. seen_ns = put_ns + wait_ns + end_step_ns: effective write time, of the rank of the
    model that lost most; agree_ns is a part of end_step_ns. final_ns: weir_finalize. write_ns: of
    the busiest writer, close_ns of it after the last frame; busy_ns: of each writer. streams: none
    at level summary, which keeps no names. alive_ns: the life of the servers, 0 in modes without.
    system_*: the system's calls that libweir made, which the tables of I/O have too."""

    step: str
    wall_ns: int
    model_ranks: tuple[RankName, ...]
    servers: tuple[int, ...]
    writers: tuple[int, ...]
    groups: int
    how: str
    seen_ns: int
    mean_seen_ns: int
    put_ns: int
    wait_ns: int
    end_step_ns: int
    agree_ns: int
    final_ns: int
    define_ns: int
    get_ns: int
    frames: int
    refused: int
    put_bytes: int
    written_bytes: int
    write_ns: int
    close_ns: int
    busy_ns: dict[int, int]
    alive_ns: int
    system_writes: int
    system_written_bytes: int
    system_calls: int
    system_ns: int
    streams: tuple[StreamOutput, ...]
    fields: tuple[FieldOutput, ...]

    @property
    def output_ns(self) -> int:
        """What the model lost: effective write time and final write."""
        return self.seen_ns + self.final_ns

    def share(self, ns: int) -> float:
        """Of the step's wall time."""
        return ns / self.wall_ns if self.wall_ns else 0.0


class _Table:
    """Records of layer output by rank, stream and operation; sums are plain integers."""

    def __init__(self, columns: Columns, names: NameTable) -> None:
        self.cells: dict[tuple[int, str, str], list[int]] = {}
        self.what: dict[str, set[str]] = {}
        self.written: dict[tuple[str, str], int] = {}  # bytes of values, by stream and field
        self.stored: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        for row in rows(merged(columns, "rank", "name", "op")):
            op = ops()[row.op].name.removeprefix("output_")
            stream, what = _parts(names[row.name] if row.name != NO_NAME else "")
            self.what.setdefault(op, set()).add(what)
            if op == "write":
                self.written[stream, what] = self.written.get((stream, what), 0) + row.bytes
            elif op == "close" and stream and (found := _STORED.fullmatch(what)):
                field, least, most = found.groups()
                self.stored.setdefault((stream, field), []).append(
                    (row.bytes, int(least), int(most)))
            cell = self.cells.setdefault((row.rank, stream, op), [0, 0, 0, 0])
            for i, amount in enumerate((row.calls, row.bytes, row.ns, row.errors)):
                cell[i] += amount

    def sum(self, figure: int, wanted: tuple[str, ...], rank: int | None = None,
            stream: str | None = None) -> int:
        return sum(
            cell[figure]
            for (of_rank, of_stream, op), cell in self.cells.items()
            if op in wanted and rank in (None, of_rank) and stream in (None, of_stream)
        )

    def ranks(self, *wanted: str) -> tuple[int, ...]:
        return tuple(sorted({rank for rank, _, op in self.cells if op in wanted}))

    def streams(self) -> list[str]:
        return sorted({stream for _, stream, op in self.cells if op in (*_SEEN, *_BUSY, *_WORK)
            and stream})

    def fields(self) -> tuple[FieldOutput, ...]:
        return tuple(
            FieldOutput(stream, field, self.written.get((stream, field), 0),
                sum(part[0] for part in parts), min(part[1] for part in parts),
                max(part[2] for part in parts))
            for (stream, field), parts in sorted(self.stored.items())
        )

    def most(self, ranks: tuple[int, ...], *wanted: str, stream: str | None = None) -> int:
        """The rank with the greatest time; -1 when there is none."""
        return max(ranks, key=lambda rank: self.sum(_NS, wanted, rank, stream), default=-1)


_CALLS, _BYTES, _NS, _ERRORS = range(4)


def _parts(name: str) -> tuple[str, str]:
    """Stream and subject of "output:stream:subject"."""
    stream, _, what = name.removeprefix(_PREFIX).partition(":")
    return stream, what


def is_output(columns: Columns) -> np.ndarray:
    """Mask of the records of libweir itself."""
    return columns.layer == OUTPUT


def _is_of_system(columns: Columns) -> np.ndarray:
    """Mask of the calls to the system that libweir makes."""
    return ((columns.flags & OF_OUTPUT) != 0) & columns.by_code("RWOCM") & columns.is_file


def step_output(step: str, wall_ns: int, columns: Columns, names: NameTable) -> StepOutput | None:
    """Figures of one step, of the members that columns has; None when libweir reported nothing."""
    own = columns.where(is_output(columns))
    if not len(own):
        return None
    table = _Table(own, names)
    model = table.ranks("define", "finalize", *_SEEN)
    # a killed one has no record of its life
    servers = tuple(rank for rank in table.ranks("serve", *_BUSY) if rank not in model)
    writers = table.ranks("frame", "part", "accumulate")
    loser = table.most(model, *_SEEN)
    busiest = table.most(writers, *_BUSY)
    seen = [table.sum(_NS, _SEEN, rank) for rank in model]
    system = columns.where(_is_of_system(columns))
    writes = system.where(system.by_code("W") & ~system.is_below)

    refused = table.sum(_ERRORS, ("frame",))

    def of_loser(*wanted: str) -> int:
        return table.sum(_NS, wanted, loser)

    return StepOutput(
        step=step,
        wall_ns=wall_ns,
        model_ranks=tuple(map(names.ranks.__getitem__, model)),
        servers=tuple(map(names.ranks.__getitem__, servers)),
        writers=tuple(map(names.ranks.__getitem__, writers)),
        groups=max(len(table.what.get("serve", ())), int(bool(servers))),
        how=max(table.what.get("define", {""}), key=len),
        seen_ns=of_loser(*_SEEN),
        mean_seen_ns=sum(seen) // len(seen) if seen else 0,
        put_ns=of_loser("put", "lend"),
        wait_ns=of_loser("wait"),
        end_step_ns=of_loser("end_step"),
        agree_ns=of_loser("agree"),
        final_ns=max((table.sum(_NS, ("finalize",), rank) for rank in model), default=0),
        define_ns=max((table.sum(_NS, ("define",), rank) for rank in model), default=0),
        get_ns=max((table.sum(_NS, ("get",), rank) for rank in model), default=0),
        frames=table.sum(_CALLS, ("frame",)) - refused,
        refused=refused,
        put_bytes=table.sum(_BYTES, ("put", "lend")),
        written_bytes=table.sum(_BYTES, ("write",)),
        write_ns=table.sum(_NS, _BUSY, busiest),
        close_ns=table.sum(_NS, ("close",), busiest),
        busy_ns={names.ranks[rank].label: table.sum(_NS, _BUSY, rank) for rank in writers},
        alive_ns=max((table.sum(_NS, ("serve",), rank) for rank in servers), default=0),
        system_writes=int(writes.calls.sum()),
        system_written_bytes=int(writes.bytes.sum()),
        system_calls=int(system.app_calls.sum()),
        system_ns=int(system.own_ns.sum()),
        streams=tuple(_stream(table, stream, loser, writers) for stream in table.streams()),
        fields=table.fields(),
    )


def _stream(table: _Table, stream: str, loser: int, writers: tuple[int, ...]) -> StreamOutput:
    busiest = table.most(writers, *_BUSY, stream=stream)
    frames, refused = table.sum(_CALLS, ("frame",), None, stream), table.sum(_ERRORS, ("frame",),
        None, stream)
    return StreamOutput(
        stream=stream,
        frames=frames - refused,
        refused=refused,
        puts=table.sum(_CALLS, ("put", "lend"), None, stream),
        put_bytes=table.sum(_BYTES, ("put", "lend"), None, stream),
        put_ns=table.sum(_NS, ("put", "lend"), loser, stream),
        wait_ns=table.sum(_NS, ("wait",), loser, stream),
        write_ns=table.sum(_NS, _BUSY, busiest, stream),
        written_bytes=table.sum(_BYTES, ("write",), None, stream),
        fetch_ns=table.sum(_NS, ("fetch",), None, stream),
        transpose_ns=table.sum(_NS, ("transpose",), None, stream),
        encode_ns=table.sum(_NS, ("encode",), None, stream),
    )


@figure
def output_of(step: StepReport) -> StepOutput | None:
    """What libweir recorded, of the chosen members; None: nothing."""
    columns = step.seen_where(lambda some: is_output(some) | _is_of_system(some))
    return step_output(step.name, step.wall_ns, columns, step.names)


def all_outputs(report: Report) -> list[StepOutput]:
    """Of the steps that wrote through libweir."""
    return [found for step in report.steps if (found := output_of(step)) is not None]
