# SPDX-License-Identifier: Apache-2.0
"""Use SQLite as JOURNAL PART say, and print `PASS: name` or `FAIL: name` for each thing that must
hold."""

import os
import random
import signal
import sqlite3
import subprocess
import sys

JOURNAL, PART = sys.argv[1:3]
NAME = f"{JOURNAL}-{PART}.db"


def check(name: str, holds: bool) -> None:
    print(f"{'PASS' if holds else 'FAIL'}: {name}", flush=True)


def connect() -> sqlite3.Connection:
    database = sqlite3.connect(NAME, timeout=60, isolation_level=None)
    database.execute(f"pragma journal_mode={JOURNAL}")
    return database


def fill(database: sqlite3.Connection, rows: int) -> None:
    source = random.Random(7)
    database.execute("create table t(id integer primary key, who int, data blob)")
    database.execute("begin")
    for _ in range(rows):
        data = source.randbytes(source.randrange(1, 900))
        database.execute("insert into t(who, data) values(0, ?)", (data,))
    database.execute("commit")


def one(database: sqlite3.Connection, query: str):
    return database.execute(query).fetchone()[0]


def single() -> None:
    database = connect()
    fill(database, 3000)
    for i in range(60):
        database.execute("update t set data = ? where id = ?", (bytes([i]) * 700, 17 * i + 1))
    database.execute("delete from t where id % 3 = 0")
    database.execute("create index who on t(who, id)")
    check("rows", one(database, "select count(*) from t") == 2000)
    check("integrity", one(database, "pragma integrity_check") == "ok")
    database.close()
    database = connect()
    check("rows after opening again", one(database, "select count(*) from t") == 2000)
    print(one(database, "select sum(length(data)) from t"))


def processes() -> None:
    database = connect()
    fill(database, 10)
    database.close()
    children = []
    for who in range(1, 5):
        if (pid := os.fork()) == 0:
            mine = connect()
            for _ in range(25):
                mine.execute("begin immediate")
                mine.execute("insert into t(who, data) values(?, randomblob(300))", (who,))
                mine.execute("update t set who = who where id = 1")
                mine.execute("commit")
            mine.close()
            os._exit(0)
        children.append(pid)
    ends = [os.waitpid(pid, 0)[1] for pid in children]
    database = connect()
    check("children", ends == [0] * 4)
    check("rows of all", one(database, "select count(*) from t") == 110)
    counts = database.execute("select count(*) from t where who > 0 group by who").fetchall()
    check("rows of each", counts == [(25,)] * 4)
    check("integrity", one(database, "pragma integrity_check") == "ok")


def rollback() -> None:
    database = connect()
    database.execute("pragma cache_size=10")
    fill(database, 1000)
    before = one(database, "select sum(length(data)) from t")
    database.execute("begin")
    database.execute("update t set data = randomblob(2000)")
    database.execute("rollback")
    check("sum", one(database, "select sum(length(data)) from t") == before)
    database.execute("savepoint a")
    database.execute("delete from t")
    database.execute("rollback to a")
    database.execute("release a")
    check("rows", one(database, "select count(*) from t") == 1000)
    check("integrity", one(database, "pragma integrity_check") == "ok")


def vacuum() -> None:
    database = connect()
    fill(database, 3000)
    database.execute("delete from t where id > 500")
    size = os.stat(NAME).st_size
    database.execute("vacuum")
    if JOURNAL == "wal":
        database.execute("pragma wal_checkpoint(truncate)")
    check("smaller", os.stat(NAME).st_size < size)
    check("rows", one(database, "select count(*) from t") == 500)
    check("integrity", one(database, "pragma integrity_check") == "ok")


def write_until_killed() -> None:
    database = connect()
    while True:
        database.execute("begin")
        for _ in range(5):
            database.execute("insert into t(who, data) values(1, randomblob(500))")
        database.execute("commit")
        print("committed", flush=True)


def kill() -> None:
    database = connect()
    fill(database, 200)
    database.close()
    committed, whole, sound = 0, True, True
    for round_ in range(8):
        command = [sys.executable, __file__, JOURNAL, "kill", "write"]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        for _ in range(1 + 4 * round_):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        committed += 1 + 4 * round_ + writer.stdout.read().count(b"committed")
        writer.wait()
        database = connect()
        rows = one(database, "select count(*) from t") - 200
        sound = sound and one(database, "pragma integrity_check") == "ok"
        whole = whole and rows % 5 == 0 and rows // 5 >= committed
        committed = rows // 5
        database.close()
    check("integrity after each kill", sound)
    check("no transaction in part, none lost", whole)


if sys.argv[3:] == ["write"]:
    write_until_killed()
else:
    globals()[PART]()
