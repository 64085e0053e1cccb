# SPDX-License-Identifier: Apache-2.0
"""The documented tables as Parquet or CSV, streamed: a run larger than memory is written batch by
batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from weir._errors import StorageError
from weir.analysis.names import NameTable
from weir.analysis.remote import for_each
from weir.analysis.step import StepData
from weir.export._place import new_directory
from weir.query import TABLES, Run
from weir.query._arrow import arrow_schema, pyarrow
from weir.query.events import EventSource
from weir.query.output import write_result
from weir.query.schema import EVENTS, table_named
from weir.trace.file import remote_reader

if TYPE_CHECKING:
    import pyarrow as pa

# io and files are views of others, but files is what most ask for.
STORED = tuple(table.name for table in TABLES if table.name != "io")
GROUP_BATCHES = 8  # some 500,000 rows in a row group
Progress = Callable[[int], None]  # how many records have been written since


def export_parquet(run: Run, path: str, tables: Iterable[str] = STORED,
        progress: Progress = lambda _: None) -> None:
    """A directory: TABLE.parquet for each, and events/step=STEP/node=NODE/part-N.parquet, as Hive
    partitions. Compressed by zstd."""
    with new_directory(path) as directory:
        for name in tables:
            if name == EVENTS.name:
                _write_events(run, os.path.join(directory, name), progress)
            else:
                with open(os.path.join(directory, f"{name}.parquet"), "wb") as stream:
                    write_result(run.table(name).reader(), "parquet", stream)


def _write_events(run: Run, directory: str, progress: Progress) -> None:
    """Step and node are in the directories' names, and so not in the files. Each file is written
    where its trace file is read."""
    number = 0
    for step in run.report.steps:
        parts = []
        for index, file in enumerate(step.data.files):
            place = os.path.join(directory, f"step={quote(step.name, safe='')}",
                f"node={quote(file.node, safe='')}")
            os.makedirs(place, exist_ok=True)
            part = os.path.join(os.path.abspath(place), f"part-{number}.parquet")
            parts.append((index, part, step.chosen_of(index)))
            number += 1
        if remote_reader(step.data.files) is None:
            for part in parts:
                _write_part(step.data, run.report.names, *part, progress)
        else:
            for rows in for_each(_write_part, step.data, run.report.names, parts):
                progress(rows)
            _check_parts(parts)


def _write_part(data: StepData, names: NameTable, index: int, path: str,
        chosen: np.ndarray | None, progress: Progress = lambda _: None) -> int:
    """The records of one trace file, of the processes that a mask chooses; how many there are."""
    from pyarrow import parquet

    kept = [name for name in arrow_schema(EVENTS).names if name not in ("step", "node")]
    schema = pyarrow().schema([arrow_schema(EVENTS).field(name) for name in kept])
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batches in _grouped(EventSource(data, index, names, chosen).batches()):
            rows = pyarrow().Table.from_batches(batches).select(kept)
            writer.write_table(rows, row_group_size=len(rows))
            progress(len(rows))
            count += len(rows)
    return count


def _check_parts(parts: list[tuple]) -> None:
    """A directory of that name that a worker has for itself is not the one that was meant."""
    missing = [path for _, path, _ in parts if not os.path.isfile(path)]
    if missing:
        raise StorageError(
            f"{missing[0]}: a worker wrote it, and it is not here: name a directory on a file "
            f"system that all workers share")


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if len(group) == GROUP_BATCHES:
            yield group
            group = []
    if group:
        yield group


def export_csv(run: Run, path: str, tables: Iterable[str] = STORED,
        progress: Progress = lambda _: None) -> None:
    """A directory with TABLE.csv for each."""
    with new_directory(path) as directory:
        for name in tables:
            with open(os.path.join(directory, f"{name}.csv"), "wb") as stream:
                write_result(_counted(run, name, progress), "csv", stream)


def _counted(run: Run, name: str, progress: Progress) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in run.table(name).batches():
            yield batch
            if name == EVENTS.name:
                progress(len(batch))

    return pyarrow().RecordBatchReader.from_batches(arrow_schema(table_named(name)), batches())
