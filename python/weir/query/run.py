# SPDX-License-Identifier: Apache-2.0
"""A run that can be asked: its tables as Arrow, and SQL over them by DuckDB. What is not asked for
is not computed."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from weir._errors import UsageError
from weir.analysis.names import is_utf8
from weir.query._arrow import arrow_schema, dataset_of, distinct, duckdb, pyarrow
from weir.query.counted import counted_batches
from weir.query.events import event_batches
from weir.query.library_calls import library_call_batches
from weir.query.schema import TABLES, TableSchema, table_named
from weir.query.tables import MADE
from weir.report.frame.build import Report, build

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from weir.analysis.exclusion import Exclusion
    from weir.analysis.remote import RemoteReader

RESULT_ROWS = 1 << 16
_STREAMS = {
    "events": event_batches, "io": counted_batches, "library_calls": library_call_batches
}  # fmt: skip
_BELOW = {"io": "events"}  # a choice of the rows of another table
_NAMES = frozenset(table.name for table in TABLES) - {"critical"}  # the attributes of a Run


class Table:
    """A table of a run as a stream of Arrow batches, made anew each time it is read.

    Whatever takes Arrow takes it: ``pyarrow.table(t)``, ``polars.DataFrame(t)``, DuckDB. A table of
    events may be larger than memory: ``batches()`` and ``reader()`` then give it piece by piece.
    """

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]):
        self.schema, self._batches = schema, batches

    def __repr__(self) -> str:
        return f"weir.query.Table({', '.join(self.schema.names)})"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some 65,000 at a time."""
        return self._batches()

    def reader(self) -> pa.RecordBatchReader:
        return pyarrow().RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        return distinct(self.reader().read_all().unify_dictionaries())

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """options: those of pyarrow.Table.to_pandas."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        import polars

        return polars.DataFrame(self.to_arrow())

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)


class Run:
    """One run, read. Tables are those of weir.query.schema; a context manager, which closes
    DuckDB's connection."""

    def __init__(self, report: Report, *, memory: str | None = None):
        self.report, self._memory = report, memory
        self._asked: set[str] = set()
        self._kept: dict[str, pa.Table] = {}

    def __repr__(self) -> str:
        return f"weir.open({self.report.path!r})"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close DuckDB's connection; the next question opens another. Done at the end of the
        program, too."""
        if "_connection" in self.__dict__:
            del self.__dict__["_connection"]
            self._close()

    @property
    def path(self) -> str:
        return self.report.path

    def __getattr__(self, name: str) -> Table:
        """Each table of TABLES by its name: ``run.files``, ``run.waits``, ..."""
        if name in _NAMES:
            return self.table(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_NAMES})

    def critical(self) -> Table:
        """Critical I/O time of each file and operation; docs/guide/waits.md says what the figures
        mean."""
        return self.table("critical")

    @property
    def asked(self) -> frozenset[str]:
        """Names of the tables that were read so far, views as the tables below them."""
        return frozenset(self._asked)

    def table(self, name: str) -> Table:
        """A table by its name. Raises UsageError when there is none of that name."""
        try:
            schema = table_named(name)
        except KeyError:
            raise UsageError(
                f"no table {name!r}; there are {', '.join(one.name for one in TABLES)}") from None
        return Table(arrow_schema(schema), lambda: self._rows(schema))

    def _rows(
        self, schema: TableSchema, wanted: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """wanted: some of the columns, of a table that is a stream."""
        if schema.sql:
            return iter(self.sql(f"SELECT * FROM {schema.name}").cast(arrow_schema(schema))
                .to_batches(RESULT_ROWS))
        self._asked.add(_BELOW.get(schema.name, schema.name))
        if schema.name in _STREAMS:
            return _STREAMS[schema.name](self.report, wanted)
        if schema.name not in self._kept:
            self._kept[schema.name] = MADE[schema.name](self.report)
        return iter(self._kept[schema.name].to_batches(RESULT_ROWS))

    @cached_property
    def _connection(self) -> Any:
        options = {"temp_directory": os.path.join(tempfile.gettempdir(),
            f"weir-query-{os.getpid()}")}
        # Nothing is fetched from anywhere.
        options |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        if self._memory is not None:
            options["memory_limit"] = self._memory
        module = duckdb()
        try:
            connection = module.connect(config=options)
        except module.Error as error:
            memory = (
                ""
                if self._memory is None
                else f" with memory {self._memory!r} (a number with a unit is wanted, as in 512MB)"
            )
            raise UsageError(f"DuckDB does not start{memory}: {error}") from error
        connection.execute("SET enable_progress_bar = false")  # it would go to standard output
        self._close = weakref.finalize(self, connection.close)
        # By a weak reference: DuckDB keeps what is registered, and the garbage collector does not
        # see it there.
        itself = weakref.ref(self)
        for schema in TABLES:
            if schema.sql:
                continue
            fields, rows = arrow_schema(schema), partial(_rows_of, itself, schema)
            connection.register(schema.name,
                dataset_of(fields, rows) if schema.name in _STREAMS else Table(fields, rows))
        for schema in TABLES:
            if schema.sql:
                connection.execute(f"CREATE VIEW {schema.name} AS {schema.sql}")
        return connection

    def sql_reader(self, query: str) -> pa.RecordBatchReader:
        """What the query gives, as a stream. Raises UsageError with DuckDB's words and the place in
        the query."""
        module = duckdb()
        if not is_utf8(query):
            raise UsageError(
                r"the query is not UTF-8; bytes of names that are none stand in the tables as \xff")
        try:
            with interruptible():  # whatever DuckDB does at the moment, such as its start
                answers = [one for one in self._connection.extract_statements(query)
                    if one.type == module.StatementType.SELECT]
                if len(answers) > 1:
                    raise UsageError(
                        f"the query has {len(answers)} statements: give one; the second is "
                        f"{answers[1].query.strip()[:60]!r}")
                relation = self._connection.sql(query)
                if relation is None:
                    raise UsageError("the query returns no rows: use SELECT, or begin with FROM")
                return Results(self, relation.to_arrow_reader(RESULT_ROWS)).reader()
        except module.Error as error:
            raise query_error(self._placed(error, query)) from error

    def _placed(self, error: Exception, query: str) -> Exception:
        """The error with its line and column, which DuckDB tells of a statement but not of a
        relation."""
        try:
            if "LINE " not in str(error):
                self._connection.execute(query)
        except duckdb().Error as placed:
            return placed
        return error

    def interrupt(self) -> None:
        """End the question that another thread asks now, which raises KeyboardInterrupt there."""
        if "_connection" in self.__dict__:
            self._connection.interrupt()

    def sql(self, query: str) -> pa.Table:
        """What the query gives. Whole numbers are int64 where they fit."""
        return self.sql_reader(query).read_all()


def _rows_of(
    run: weakref.ref[Run], schema: TableSchema, wanted: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    found = run()
    if found is None:
        raise UsageError(f"{schema.name}: the run was closed")
    return found._rows(schema, wanted)


class Results:
    """The batches of a result: errors that come while it is read become weir's, sums of whole
    numbers become int64."""

    def __init__(self, run: Run, reader: pa.RecordBatchReader):
        # A run lives as long as its answers are read, but not beyond the end of the program, where
        # Arrow lets go of nothing more.
        self.held = [reader, run]
        weakref.finalize(self, self.held.clear)
        pa = pyarrow()
        self.schema = pa.schema(
            [field.with_type(pa.int64()) if _is_whole(field.type) else field
                for field in reader.schema]
        )

    def reader(self) -> pa.RecordBatchReader:
        return pyarrow().RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        pa = pyarrow()
        while self.held:
            try:
                with interruptible():
                    batch = self.held[0].read_next_batch()
            except StopIteration:
                return
            except (duckdb().Error, pa.ArrowException, OSError) as error:
                raise query_error(error) from error
            try:
                yield batch.cast(self.schema)
            except pa.ArrowInvalid as error:
                raise UsageError(
                    f"the query: a sum does not fit 64 bits ({error}); cast it to "
                    f"DOUBLE") from error


def _is_whole(kind: pa.DataType) -> bool:
    """DuckDB adds up integers in 128 bits, which reach Arrow as decimals without decimals."""
    pa = pyarrow()
    return pa.types.is_decimal(kind) and kind.scale == 0


@contextmanager
def interruptible() -> Iterator[None]:
    """What DuckDB raises when somebody presses Ctrl-C becomes what Python raises then."""
    try:
        yield
    except (duckdb().InterruptException, RuntimeError) as error:
        if isinstance(error, duckdb().InterruptException) or "Query interrupted" in str(error):
            raise KeyboardInterrupt from error
        raise


def _head(error: Exception) -> str:
    """The first line: what follows is advice on DuckDB's own settings."""
    return str(error).split("\n", 1)[0]


def query_error(error: Exception) -> UsageError:
    if isinstance(error, duckdb().OutOfMemoryException):
        return UsageError(
            f"the query does not fit the memory that it may take; give it more (--memory SIZE, "
            f"weir.open(memory=...)), or ask for less: {_head(error)}")
    return UsageError(f"the query: {error}")


def open_run(
    path: str | os.PathLike[str], *, step: str | None = None, rank: int | str | None = None,
    memory: str | None = None,
    reader: RemoteReader | None = None, exclusion: Exclusion | None = None,
) -> Run:
    """The run in a directory, or one of its steps, launchers and all.

    rank: only the processes of this rank, as of weir.report.build().
    memory: the most that DuckDB takes, e.g. "512MB" (default: its own, most of the machine); past
    it, it works on disk. reader: who reads the traces instead of this process, e.g.
    weir.cluster.connect(...), as long as the run is used. exclusion: files that are left out; None:
    those that the environment chooses. Raises weir.NotThere when there is no run, or no such rank,
    UsageError when pyarrow is not installed.
    """
    pyarrow()
    made = build(path, step=step, rank=rank, reader=reader, exclusion=exclusion)
    return Run(made, memory=memory)
