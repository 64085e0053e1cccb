# SPDX-License-Identifier: Apache-2.0
"""The tables of the DataWarp benchmark. No programs."""

from __future__ import annotations

import json

from weir.bench import datawarp_tables
from weir.bench.datawarp import Options, Row, Step


def rows() -> list[Row]:
    moved = {"ost0": (0, 4_000_000), "ost1": (0, 6_000_000), "mds": (10, 20)}
    return [
        Row("lustre-3", "Lustre, 3 stripes",
            {"output": Step(4, 40e6, moved), "input": Step(2, 40e6)}),
        Row("striped", "DataWarp, 3 nodes, striped", {"output": Step(1, 40e6), "stage_out": Step(9),
            "stage_in": Step(8), "input": Step(0.5, 40e6)}),
        Row("private", "DataWarp, 3 nodes, private", error="status 3: no space"),
        Row("node-b", "read on another node", {"striped": Step(1.5, 40e6, {}, 70),
            "container": Step(0.25, 0, {}, 12)}),
    ]


def test_rows_are_compared_with_three_stripes():
    seconds, servers, node_b = datawarp_tables.tables(rows())
    assert seconds.rows == (
        ("Lustre, 3 stripes", "4.00", "10", "1.0", "", "", "2.00", "20", "1.0"),
        ("DataWarp, 3 nodes, striped", "1.00", "40", "4.0", "9.00", "8.00", "0.50", "80", "4.0"),
        ("DataWarp, 3 nodes, private", *("",) * 8))
    assert seconds.remarks == ("DataWarp, 3 nodes, private: failed: status 3: no space",)
    assert servers.rows == (("Lustre, 3 stripes", "output", "2 ost", "0.0", "10.0", "4.0", "6.0"),)
    assert node_b.rows == (("striped files", "1.50", "70"),
        ("container of 200 files", "0.25", "12"))


def test_figures_can_be_read_by_programs():
    data = datawarp_tables.as_data(Options(), "mpich", rows())
    again = json.loads(json.dumps(data))
    assert again["rows"][2]["error"] == "status 3: no space"
    assert again["rows"][0]["steps"]["output"]["moved"]["ost1"] == [0, 6_000_000]
