# SPDX-License-Identifier: Apache-2.0
"""Times of SQL, JSON and the report are one figure; the events, each rounded, add up to it but for
less than 1 ns each."""

from __future__ import annotations

import pytest

import weir as weir_package
from weir.report import build, report_json


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_sums_of_sql_and_json_are_the_same(weir, tmp_path, tmp_run, level):
    pytest.importorskip("pyarrow", reason="needs the test extra")
    weir("trace", "--level", level, "-o", tmp_run, "--", "sh", "-c",
        "for i in 1 2 3; do echo $i > f$i; cat f$i >> all; done; sort all > sorted",
        cwd=tmp_path).ok()
    made = report_json(build(tmp_run))
    with weir_package.open(tmp_run) as asked:
        def one(query: str) -> list:
            return list(asked.sql(query).to_pylist()[0].values())

        calls, ns = one("SELECT sum(calls), sum(ns) FROM files")
        every = one("SELECT sum(calls), sum(ns) FROM totals WHERE is_file AND NOT excluded "
            "AND NOT launcher AND NOT nested AND NOT below")
        events = one("SELECT count(*), sum(duration_ns) FROM events WHERE NOT nested")
        rows = one("SELECT sum(calls), sum(ns) FROM totals WHERE NOT nested AND calls > 0")
    whole = made["steps"][0]["all"]
    assert calls == whole["calls"] == sum(one["calls"] for one in made["files"]) == every[0]
    assert ns == round(whole["seconds"] * 1e9) == every[1]
    assert ns == sum(round(one["seconds"] * 1e9) for one in made["files"])
    if level == "trace":
        assert events[0] == rows[0] and abs(events[1] - rows[1]) < events[0]
