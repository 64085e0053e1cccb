# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: a server in a directory of its own, used by the commands that come with it; and its
own regression tests against such a server."""

from __future__ import annotations

import os
import re

from harness.model import Ended, Step, Suite, Tests
from harness.run import debian_version

_PROGRAMS = "/usr/lib/postgresql/15"
_PG_REGRESS = f"{_PROGRAMS}/lib/pgxs/src/test/regress/pg_regress"
_RESULT = re.compile(r"^(?:test| {4}) (\S+) +\.\.\. (ok|FAILED)\b", re.M)
# Root must not run the server; the namespace gives the same user another number.
_USER = (("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.geteuid() == 0 else ())
_BEGIN = f"""set -o pipefail; export PATH={_PROGRAMS}/bin:$PATH
export PGHOST=$PWD PGUSER=p PGDATABASE=postgres LC_ALL=C
configure() {{ printf "%s\\n" "listen_addresses=''" "unix_socket_directories='$PWD'" "$@" \
    >> data/postgresql.conf; }}
trap 'pg_ctl -D data -m immediate stop >/dev/null 2>&1 || true' EXIT
start() {{ pg_ctl -D data -w -t 120 -l log start 2>/dev/null | tail -1; }}
stop() {{ pg_ctl -D data -w -t 120 -m ${{1:-fast}} stop | tail -1; }}
q() {{ psql -XAt -v ON_ERROR_STOP=1 -c "$1"; }}
# what pgbench has added to accounts, tellers and branches, and written into its history
sums() {{ q "select (select sum(abalance) from pgbench_accounts) =
    (select sum(delta) from pgbench_history), (select sum(bbalance) from pgbench_branches) =
    (select sum(tbalance) from pgbench_tellers)"; }}
"""
_SERVER = {
    # small buffers, segments and limits: pages are written all the time, and segments used again
    "initdb": """initdb -D data -U p -A trust -k --wal-segsize=1 --no-locale -E UTF8 | tail -1 |
            wc -l
        configure shared_buffers=1MB max_wal_size=4MB min_wal_size=2MB work_mem=64kB \
            maintenance_work_mem=1MB wal_level=replica
        start; stop""",
    "pgbench": """start; pgbench -q -i -s 2 2>/dev/null >&2
        pgbench -n -c 4 -t 100 | grep 'actually processed'; sums
        q 'select count(*) from pgbench_history'; stop""",
    "pgbench connections": """start; pgbench -n -C -t 50 | grep 'actually processed'; sums
        stop""",
    "tables": """start
        q "create table t as select i, md5(i::text) m, repeat(md5((i*7)::text), i%50) r
            from generate_series(1, 40000) i; create index on t(m);
            create index on t using gin(string_to_array(m, 'a')); analyze"
        q "vacuum full t"
        q "copy t to '$PWD/t.copy'; create table u (like t); copy u from '$PWD/t.copy';
            select count(*), md5(string_agg(m, '' order by m)) from u"
        q "select count(*) from (select m from t order by r desc, m) s;
            select count(*) from t a join u b using(m)"
        q "delete from u"; q "vacuum u"; q "select count(*), pg_relation_size('u') from u"
        q "insert into u select * from t"; q "select count(*) from u"
        mkdir space; q "create tablespace s location '$PWD/space'"
        q "create table v tablespace s as select * from t"
        q "select lo_from_bytea(77, convert_to(repeat('abc', 100000), 'UTF8'))"
        q "select md5(lo_get(77))"; stop""",
    "recovery": """start; pgbench -n -c 4 -T 2 >/dev/null 2>&1 & sleep 1; stop immediate
        wait || true; start; sums
        pgbench -n -c 4 -T 3 >/dev/null 2>&1 & sleep 1
        kill -9 $(head -1 data/postmaster.pid); wait || true
        for i in $(seq 120); do start | grep -q 'server started' && break; sleep 1; done
        sums; stop""",
    "backup": """start; pg_amcheck --install-missing -a 2>&1 | wc -l
        pg_basebackup -D backup -T $PWD/space=$PWD/space2 -c fast && pg_verifybackup backup
        stop""",
    "dump": """start
        dump() { pg_dump -t t -t u -t v $1 | grep -v -e restrict -e '^--' | sort; }
        dump > dump.sql; createdb d2; pg_dump -t t -t u -t v | psql -Xq -d d2 -o /dev/null
        dump d2 | cmp - dump.sql; pg_dump -Fd -j 2 -f dir; createdb d3; pg_restore -j 2 -d d3 dir
        dropdb d2; stop""",
    "checksums": """pg_checksums --check -D data | grep Bad; grep -cE 'PANIC|could not' log ||
        true""",
}


def _step(name: str, script: str, **more) -> Step:
    return Step(name, (*_USER, "bash", "-ec", _BEGIN + script), **more)


def _server(_place):
    for name, script in _SERVER.items():
        yield _step(name, script, compare_output=True, time_limit_s=240)


def regression_tests(ended: Ended) -> Tests:
    """pg_regress: `test NAME ... ok`, or indented in a group."""
    words = {"ok": "pass", "FAILED": "fail"}
    found = {test: words[word] for test, word in _RESULT.findall(ended.output)}
    return found or {"": "fail"}


# As PostgreSQL's `make check` has it, the server does not wait for its disk.
def _regression(place):
    tests = f"{place.tree}/src/test/regress"
    yield _step("regress", f"""initdb -D data -U p -A trust --no-locale -E UTF8 -N >/dev/null
        configure fsync=off; start
        {_PG_REGRESS} --host=$PWD --user=p --bindir= --inputdir={tests} --outputdir=$PWD \\
            --dlpath={tests} --max-connections=4 --schedule={tests}/parallel_schedule""",
        parse=regression_tests, time_limit_s=900)


SUITES = [
    Suite(
        name="postgresql",
        title="PostgreSQL: a server with pgbench, tables, recovery after kills, backup, dumps",
        steps=_server,
        version=lambda _: debian_version("postgresql-15"),
        packages=("postgresql-15",),
        needs=(f"{_PROGRAMS}/bin/initdb", "unshare"),
        outputs=("dump.sql", "t.copy"),
    ),
    Suite(
        name="postgresql-regress",
        title="PostgreSQL's own regression tests, by pg_regress against a server",
        steps=_regression,
        version=lambda _: debian_version("postgresql-15"),
        packages=("postgresql-15",),
        tree="postgresql",
        needs=("src/test/regress/parallel_schedule", "src/test/regress/regress.so", _PG_REGRESS),
    ),
]
