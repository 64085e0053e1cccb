# SPDX-License-Identifier: Apache-2.0
"""pyarrow and DuckDB where they are installed, and what is said where they are not; Arrow's types
of the documented columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from weir._errors import UsageError
from weir.query.schema import TableSchema
from weir.report.frame.declared import Field

if TYPE_CHECKING:
    import pyarrow as pa


def pyarrow() -> ModuleType:
    """The module. Raises UsageError that says how to get it."""
    try:
        import pyarrow
        import pyarrow.dataset  # noqa: F401: with it DuckDB asks for needed columns alone
    except ImportError as error:
        raise _missing("pyarrow", error) from error
    return pyarrow


def pyarrow_without_pandas() -> ModuleType:
    """The same for a command, which makes no data frames: where pandas is installed,
    pyarrow.dataset imports it, which takes as long as all the rest of pyarrow. pyarrow makes no
    data frames in this process then."""
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)  # type: ignore[arg-type]
    try:
        return pyarrow()
    finally:
        sys.meta_path.remove(hidden)  # type: ignore[arg-type]


class _Hidden:
    """A finder of modules that finds no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def duckdb() -> ModuleType:
    """The module. Raises UsageError that says how to get it."""
    try:
        import duckdb
    except ImportError as error:
        raise _missing("duckdb", error) from error
    return duckdb


def _missing(package: str, error: ImportError) -> UsageError:
    return UsageError(
        f"{package} is needed for this and cannot be imported ({error}): pip install "
        f"'weir-io[query]'")


def arrow_type(column: Field) -> pa.DataType:
    pa = pyarrow()
    return {
        **dict.fromkeys(("text", "path", "list"), pa.dictionary(pa.int32(), pa.string())),
        "int": pa.int64(),
        "int32": pa.int32(),
        "bool": pa.bool_(),
        "real": pa.float64(),
    }[column.kind.rstrip("?")]


@cache
def arrow_schema(table: TableSchema) -> pa.Schema:
    """Arrow's schema of a table; each field carries its unit and meaning as metadata."""
    pa = pyarrow()
    return pa.schema(
        [
            pa.field(column.name, arrow_type(column), column.may_be_null,
                {"unit": column.unit, "meaning": column.meaning})
            for column in table.columns
        ]
    )


def chosen_schema(schema: pa.Schema, wanted: Sequence[str] | None) -> pa.Schema:
    """Its fields of these names; None: all."""
    return schema if wanted is None else pyarrow().schema([schema.field(one) for one in wanted])


def dataset_of(
    schema: pa.Schema, batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
) -> object:
    """A table for DuckDB, which asks a data set of Arrow for the columns that a query needs.
    batches: the rows, with some of the columns."""
    from pyarrow import dataset

    class Asked(dataset.Dataset):
        def __init__(self) -> None:
            """That of the class refuses."""

        @property
        def schema(self) -> pa.Schema:
            return schema

        def scanner(
            self, columns: Sequence[str] | None = None, filter: object = None, **options: object
        ) -> object:
            text = "" if filter is None else str(filter)
            wanted = schema.names if columns is None else [name for name in schema.names
                if name in columns or name in text]  # fmt: skip
            wanted = wanted or [next(one.name for one in schema if one.type == pyarrow().int32())]
            return dataset.Scanner.from_batches(batches(wanted), columns=columns, filter=filter,
                schema=chosen_schema(schema, wanted), **options)

    return Asked()


def encoded(values: list[str | None]) -> pa.Array:
    """Texts as a dictionary column."""
    pa = pyarrow()
    made = pa.array(values, pa.string()).dictionary_encode()
    return made if made.type.index_type == pa.int32() else made.cast(pa.dictionary(pa.int32(),
        pa.string()))


def distinct(table: pa.Table) -> pa.Table:
    """The table with each text once in the dictionary of its column, as pandas wants it: names that
    differ in the trace may be folded to one."""
    import pyarrow.compute as compute

    for at, field in enumerate(table.schema):
        column = table.column(at)
        if not pyarrow().types.is_dictionary(field.type) or column.num_chunks == 0:
            continue
        texts = column.chunk(0).dictionary
        if compute.count_distinct(texts, mode="all").as_py() < len(texts):
            table = table.set_column(at, field, column.cast(field.type.value_type)
                .dictionary_encode())
    return table
