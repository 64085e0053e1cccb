# SPDX-License-Identifier: Apache-2.0
"""Of the records those columns are made that a query needs, and no others: the answer is that of
the whole table."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")

import weir
from weir.query.events import EventSource
from weir.query.schema import EVENTS, LIBRARY_CALLS

COUNTED = {"class", "layer", "is_file", "excluded", "launcher"}  # what the view io chooses by


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
    ("SELECT rank, sum(bytes) FROM io GROUP BY 1", COUNTED | {"rank", "bytes"}),
    ("SELECT count(*) FROM io", COUNTED),
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


@pytest.mark.parametrize("table", [EVENTS, LIBRARY_CALLS], ids=lambda one: one.name)
def test_each_column_alone_is_that_of_the_whole_table(golden_run, table):
    with weir.open(golden_run) as run:
        whole = run.table(table.name).to_arrow()
        for column in table.columns:
            alone = run.sql(f"SELECT {column.name} AS x FROM {table.name}").column(0)
            assert alone.to_pylist() == whole.column(column.name).to_pylist(), column.name
