# SPDX-License-Identifier: Apache-2.0
"""The table io as a stream of Arrow batches: the records that the report counts, chosen before they
are columns. A view of events would compare the texts of every record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weir.analysis.columns import has_class
from weir.query._arrow import arrow_schema, chosen_schema, pyarrow
from weir.query.events import EventSource, Makers
from weir.query.schema import IO
from weir.report.frame.build import Report
from weir.trace.events import Events
from weir.trace.file import LOST
from weir.trace.ops import BELOW, ERROR, FORTRAN, MPI, POSIX, STDIO, has_own_time, sizes_hold

if TYPE_CHECKING:
    import pyarrow as pa


def counted_batches(
    report: Report, wanted: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The records of all steps that are counted; wanted: some of the columns. cost: one pass;
    memory: a batch."""
    for step in report.steps:
        for index in range(len(step.data.files)):
            source = CountedSource(step.data, index, report.names, step.chosen_of(index))
            yield from source.batches(wanted)


class CountedSource(EventSource):
    """The counted records of one trace file."""

    def batches(self, wanted: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        schema = chosen_schema(arrow_schema(IO), wanted)
        is_counted = self.text_is_file & ~self.text_is_excluded
        for events in self.records(has_class("RWOCM")):
            mask = self._mask(events, is_counted)
            if not mask.all():
                events = {name: column[mask] for name, column in events.items()}
            columns = self._columns(events, schema.names)
            yield pyarrow().record_batch([columns[name] for name in schema.names], schema)
        self.file.leave()

    def _mask(self, events: Events, is_counted: np.ndarray) -> np.ndarray:
        """Of the records on counted files, at the layers of the report, of other processes than
        launchers."""
        mask = np.isin(np.arange(256), (POSIX, STDIO, FORTRAN, MPI))[events["layer"]]
        if not is_counted.all():
            text = events["text"]
            mask &= is_counted[np.where(text == LOST, np.uint32(len(is_counted) - 1), text)]
        if self.launcher.any():
            mask &= ~self.launcher[events["process"]]
        return mask

    def _makers(self, events: Events) -> Iterable[Makers]:
        pa, flags = pyarrow(), events["flags"]

        def moved() -> np.ndarray:
            layer = events["layer"]
            moves = (has_class("RW") & sizes_hold("data"))[events["op"]] & ((flags & ERROR) == 0)
            return events["bytes"] * (moves & ((layer == POSIX) | (layer == STDIO)))

        yield from super()._makers(events)
        yield {
            "calls": lambda: pa.array(((flags & BELOW) == 0).astype(np.int64)),
            "bytes": lambda: pa.array(moved()),
            "ns": lambda: pa.array(events["duration_ns"]
                * has_own_time(events["op"], events["layer"], flags)),
        }
