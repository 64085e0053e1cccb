# SPDX-License-Identifier: Apache-2.0
"""SQLite: rollback journal and WAL, several processes, integrity after SIGKILL."""

from __future__ import annotations

from harness import parse
from harness.model import HERE, Step, Suite
from harness.run import debian_version

_PARTS = ("single", "processes", "rollback", "vacuum", "kill")


def _steps(_place):
    program = str(HERE / "programs" / "databases.py")
    for journal in ("delete", "truncate", "persist", "wal"):
        for part in _PARTS:
            command = ("/usr/bin/python3", program, journal, part)
            # kill ends a writer at a moment that differs, so that alone has no fixed bytes
            yield Step(f"{journal}-{part}", command, parse.automake, compare_output=part != "kill")
    script = (
        "sqlite3 c.db 'create table t(a, b); begin; insert into t with recursive n(i) as (select 1 "
        "union all select i + 1"
        " from n where i < 20000) select i, hex(i * i) from n; commit; create index x on t(b); "
        "select sum(a) from t;'"
        " && sqlite3 c.db .dump > c.sql && sqlite3 d.db < c.sql && sqlite3 d.db .dump | cmp - c.sql"
        " && sqlite3 c.db '.backup e.db' 'pragma integrity_check;' && sqlite3 e.db .dump | cmp - "
        "c.sql"
        " && sqlite3 c.db 'pragma mmap_size=10000000; select count(*), sum(length(b)) from t;'"
    )
    yield Step("command", ("bash", "-ec", script), compare_output=True)


SUITE = Suite(
    name="sqlite",
    title="SQLite with four kinds of journal: transactions, processes that compete, integrity "
          "after SIGKILL",
    steps=_steps,
    version=lambda _: debian_version("libsqlite3-0"),
    packages=("sqlite3", "python3"),
    needs=("sqlite3", "/usr/bin/python3"),
    outputs=("c.db", "c.sql", "d.db", "e.db", "*-single.db", "*-vacuum.db"),
)
