# SPDX-License-Identifier: Apache-2.0
"""Answers as tables, CSV, JSON or Parquet, written as they come: an answer may be larger than
memory, but for tables."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from weir._errors import StorageError, UsageError
from weir._files import complete_file
from weir.analysis.names import escaped
from weir.query._arrow import pyarrow
from weir.query.schema import TABLES
from weir.report.frame.table import Table, text_lines
from weir.report.render import screen_width

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def open_output(path: str | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that is there when it is complete. What is no plain file
    (/dev/null, a named pipe) is written to as it is. Raises StorageError."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with complete_file(path) as stream:
            yield stream
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error


def waiting(is_wanted: bool) -> AbstractContextManager[object]:
    """A sign of life on a terminal, as long as nothing else is written to it."""
    if not is_wanted or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("reading the records")


def write_result(answer: pa.RecordBatchReader, format: str, stream: BinaryIO,
        top: int | None = None) -> None:
    """Write an answer; `top` is the number of lines of a table."""
    twice = [name for name, count in Counter(answer.schema.names).items() if count > 1]
    if twice and format in ("json", "parquet"):
        raise UsageError(
            f"--format {format}: two columns are called {twice[0]!r}; give one of them another "
            f"name with AS")
    try:
        FORMATS[format](answer, stream, top)
    except pyarrow().ArrowException as error:
        raise UsageError(
            f"--format {format} cannot hold this answer ({error}); cast the column to VARCHAR, or "
            f"choose another format") from error


def _write_table(answer: pa.RecordBatchReader, stream: BinaryIO, top: int | None) -> None:
    """Plain text, or with bold heads on a terminal."""
    rows: list[tuple[str, ...]] = []
    more = 0
    with waiting(stream.isatty()):
        for batch in answer:
            wanted = batch if top is None else batch.slice(0, max(0, top - len(rows)))
            more += len(batch) - len(wanted)
            rows += zip(*([_cell(value) for value in column.to_pylist()]
                for column in wanted.columns))
    pa = pyarrow()
    heads = tuple(field.name if _is_number(pa, field.type) else f"<{field.name}"
        for field in answer.schema)
    remarks = (f"{more} more rows: --top 0 shows all, --format csv writes them",) if more else ()
    table = Table("", heads, tuple(rows), remarks=remarks)
    _print(list(text_lines(table, screen_width(), is_split=False))[1:], stream)


def _print(lines: list[str], stream: BinaryIO) -> None:
    if not stream.isatty():
        stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for number, line in enumerate(lines):
        console.print(Text(line, style="" if number else "bold"), soft_wrap=True)


def _is_number(pa: Any, kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return escaped(str(value))


def _write_csv(answer: pa.RecordBatchReader, stream: BinaryIO, _: int | None) -> None:
    from pyarrow import csv

    plain = _plain_schema(answer.schema)
    with csv.CSVWriter(stream, plain) as writer:
        for batch in answer:
            writer.write_batch(batch.cast(plain))


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Dictionary columns as texts, which CSV knows alone."""
    pa = pyarrow()
    return pa.schema([f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f
        for f in schema])


def _write_json(answer: pa.RecordBatchReader, stream: BinaryIO, _: int | None) -> None:
    """An array with an object for each row, a row a line. What JSON has no number for is null."""
    between = b"["
    for batch in answer:
        for row in batch.to_pylist():
            printed = {name: None if isinstance(value, float) and not math.isfinite(value)
                else value for name, value in row.items()}
            stream.write(between + b"\n" + json.dumps(printed, default=_json_value,
                ensure_ascii=False).encode())
            between = b","
    stream.write(b"\n]\n" if between == b"," else b"[]\n")


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def _write_parquet(answer: pa.RecordBatchReader, stream: BinaryIO, _: int | None) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(stream, answer.schema, compression="zstd") as writer:
        for batch in answer:
            writer.write_batch(batch)


FORMATS: dict[str, Callable[[Any, BinaryIO, int | None], None]] = {
    "table": _write_table, "csv": _write_csv, "json": _write_json, "parquet": _write_parquet,
}  # fmt: skip


def print_schema(stream: TextIO) -> None:
    """The tables with their columns."""
    for table in TABLES:
        stream.write(f"{table.name}: {table.meaning}\n")
        for column in table.columns:
            kind = f"{column.kind} {column.unit}".rstrip()
            stream.write(f"  {column.name:<15} {kind:<11} {column.meaning}\n")
        stream.write("\n")
