# SPDX-License-Identifier: Apache-2.0
"""Of the records those columns are made that a query needs, and no others: the answer is that of
the whole table."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")

import weir
from weir.query.events import EventSource
from weir.query.schema import EVENTS, IO, LIBRARY_CALLS

# io as a choice of events; tests/query/test_same_totals.py compares it with the report
COUNTED = """class <> 'none' AND layer IN ('posix', 'stdio', 'fortran', 'mpi') AND is_file
    AND NOT excluded AND NOT launcher"""
SAME = f"""SELECT step, node, pid, rank, thread, start_ns, duration_ns, op, layer, class, file,
    offset_bytes, CASE WHEN below THEN 0 ELSE 1 END AS calls,
    CASE WHEN layer IN ('posix', 'stdio') AND class IN ('read', 'write') THEN bytes ELSE 0 END
    AS bytes, CASE WHEN layer <> 'fortran' AND (NOT nested OR below) THEN duration_ns ELSE 0 END
    AS ns, error, rank_label
    FROM events WHERE {COUNTED}"""


@pytest.fixture
def made(monkeypatch) -> list[set[str]]:
    """The columns of each batch."""
    found: list[set[str]] = []
    plain = EventSource._columns

    def noted(self, events, wanted):
        columns = plain(self, events, wanted)
        found.append(set(columns))
        return columns

    monkeypatch.setattr(EventSource, "_columns", noted)
    return found


@pytest.mark.parametrize(("query", "columns"), [
    ("SELECT rank, sum(bytes) FROM io GROUP BY 1", {"rank", "bytes"}),
    ("SELECT count(*) FROM io", {"step"}),
    ("SELECT max(start_ns) FROM events", {"start_ns"}),
    ("SELECT pid FROM events WHERE op = 'read' AND thread > 0", {"pid", "op", "thread"}),
    ("SELECT * FROM events", {one.name for one in EVENTS.columns}),
])  # fmt: skip
def test_a_query_makes_the_columns_that_it_needs(two_steps, made, query, columns):
    with weir.open(two_steps) as run:
        assert run.sql(query).num_rows > 0
    assert made
    assert set().union(*made) == columns


def test_rows_are_counted_by_one_column(two_steps, made):
    with weir.open(two_steps) as run:
        [row] = run.sql("SELECT count(*) AS n FROM events").to_pylist()
        assert set(map(len, made)) == {1}
        assert row["n"] == len(run.events.to_arrow()) > 0


def test_io_is_a_choice_of_events(golden_run):
    with weir.open(golden_run) as run:
        found, same = run.sql("SELECT * FROM io"), run.sql(SAME)
        assert found.to_pylist() == same.to_pylist()
        assert run.asked == {"events"}


@pytest.mark.parametrize("table", [EVENTS, IO, LIBRARY_CALLS], ids=lambda one: one.name)
def test_each_column_alone_is_that_of_the_whole_table(golden_run, table):
    with weir.open(golden_run) as run:
        whole = run.table(table.name).to_arrow()
        for column in table.columns:
            alone = run.sql(f"SELECT {column.name} AS x FROM {table.name}").column(0)
            assert alone.to_pylist() == whole.column(column.name).to_pylist(), column.name
