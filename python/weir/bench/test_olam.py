# SPDX-License-Identifier: Apache-2.0
"""The OLAM benchmark: what is computed from runs, and how it is shown. No programs."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from weir._errors import UsageError
from weir.bench import olam, olam_tables
from weir.bench.olam_contention import Order, Rate, best_cores
from weir.scaling.compute import scaling

OUTPUT = "".join(f"olam-{phase}: first_s={i}.5 mean_s=9 last_s=9 sync_s=0.{i}\n"
    for i, phase in enumerate(olam.PHASES, 1))
OUTPUT += "olam: ranks=4 requests=1 bytes=1 io_wait_s=0.1 elapsed_s=14.25 mpp_s=1 wrong=0\n"


def measured(name: str, seconds: dict[tuple[int, int], float]) -> olam.Measured:
    runs = [olam.run_times(name, ranks, nodes, {**olam.parsed(OUTPUT), "elapsed_s": wall})
        for (ranks, nodes), wall in seconds.items()]
    counted = {key: {"metadata_requests": 10.0 * key[0], "data_requests": 5.0, "moved": 3e6}
        for key in seconds}
    one = olam.BY_NAME[name]
    return olam.Measured(one, one.system, scaling(runs), counted)


def test_phases_and_their_synchronization_add_up_to_the_run():
    run = olam.run_times("lustre", 4, 1, olam.parsed(OUTPUT))
    assert run.parts_ns["9write"] == 4_500_000_000 and run.parts_ns["9write sync"] == 400_000_000
    assert sum(run.parts_ns.values()) == run.wall_ns == 14_250_000_000


def test_curves_stand_side_by_side_with_where_they_stop():
    found = [measured("lustre", {(1, 1): 60, (2, 1): 55, (2, 2): 31, (4, 4): 16, (4, 1): 54}),
        olam.Measured(olam.BY_NAME["disk"], olam.DISK, error="status 1: no space")]
    speedup, metadata, *_ = olam_tables.tables(found, (), ())
    assert speedup.columns == ("<Configuration", "1", "2", "4", "stops scaling at")
    assert speedup.rows == (
        ("lustre, one rank per node", "1.00", "1.94", "3.75", "does not stop"),
        ("lustre, several ranks per node", "1.00", "1.09", "1.11", "1 rank"))
    assert metadata.rows[0][1:] == ("10", "20", "40")
    assert "failed: status 1: no space" in olam_tables.text(found[1])
    data = olam_tables.as_data(olam.Options(), "mpich", found)
    assert json.loads(json.dumps(data))["configurations"][1]["error"] == "status 1: no space"


@pytest.mark.parametrize(("rates", "best", "sentence"), [
    ([Rate(1, 8.0, None), Rate(2, 14.0, 0.75), Rate(4, 15.0, 0.1)], 2, "stops scaling at 2 core"),
    ([Rate(1, 8.0, None), Rate(2, 8.1, 0.01)], 1, "stops scaling at 1 core:"),
    ([Rate(1, 8.0, None), Rate(2, 15.0, 0.9)], 2, "does not stop scaling on this machine's 2"),
])  # fmt: skip
def test_the_best_number_of_cores_is_where_memory_brings_no_more(rates, best, sentence):
    assert best_cores(rates) == best
    assert sentence in olam_tables.memory(rates).remarks[0]


def test_order_of_calls_is_shown_for_both_placements():
    table = olam_tables.interleaving([Order("plots", 8, 1, 400, 392, 40),
        Order("plots", 8, 8, 400, 392, 392)])
    assert [row[-2:] for row in table.rows] == [("98%", "10%"), ("98%", "98%")]


@pytest.mark.parametrize(("options", "message"), [
    ({"ranks": (4,)}, "at least two different"), ({"ranks": (0, 4)}, "from 1 to 128"),
    ({"only": ("tape",)}, "no configuration tape"), ({"scale": 0}, "--scale"),
    ({"exec_s": -1}, "--exec"), ({"nfs": "/not/there"}, "--nfs /not/there"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(options, message):
    assert olam.check(olam.Options()) == olam.Options()
    with pytest.raises(UsageError, match=message):
        olam.check(olam.Options(**options))


@pytest.mark.parametrize(("ranks", "expected"), [((1, 4), [(1, 1), (4, 1), (4, 4)]),
    ((16, 32), [(16, 1), (32, 1), (16, 16)]), ((32, 64), [(32, 1), (64, 1)])])  # fmt: skip
def test_a_rank_has_a_node_of_its_own_or_shares_the_one(tmp_path, monkeypatch, ranks, expected):
    """Points of curves never mix the two."""
    bench = object.__new__(olam.Bench)
    bench.options, bench.set_up = olam.Options(ranks=ranks), lambda nodes: None
    monkeypatch.setattr(olam, "open_place", lambda *_: nullcontext())
    bench._point = lambda one, nodes, count, per_node: {**olam.parsed(OUTPUT), "node": per_node}
    found = bench.measured(olam.BY_NAME["lustre"], tmp_path, tmp_path)
    assert list(found.counted) == expected
    assert all(one["node"] == ranks // nodes for (ranks, nodes), one in found.counted.items())
