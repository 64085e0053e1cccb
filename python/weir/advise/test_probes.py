# SPDX-License-Identifier: Apache-2.0
"""Rates that estimates take: of what was probed, by number of ranks, and what is assumed."""

from __future__ import annotations

import pytest
from advised import KIB, advised, stream, the

from weir.advise.advise import advise
from weir.advise.frame.facts import Facts
from weir.advise.frame.speeds import NOT_PROBED, Probed, Speeds, in_blocks, scaling, speeds_of
from weir.advise.probes import basis_json, basis_texts, probed
from weir.report import build


def rate(way: str, processes: int, per_s: float, request: int = 1 << 20, cached: bool = False):
    return {"way": way, "request_bytes": request, "processes": processes, "from_cache": cached,
        "bytes_per_s": per_s}  # fmt: skip


def parallel(ranks: int, nodes: int, message: float, write: float):
    return {"ranks": ranks, "nodes": nodes, "distant": nodes > 1, "rates": [rate("write", ranks,
        write)], "messages": [{"bytes_per_s": 1.0}, {"bytes_per_s": message}]}  # fmt: skip


JSON = {
    "measured_s": 1.7e9,
    "rates": [rate("write", 1, 200e6), rate("read", 1, 300e6), rate("read", 1, 9e9, cached=True),
        rate("read", 1, 1e6, request=4096), rate("write", 2, 300e6)],
    "memory": [{"cores": 1, "bytes_per_s": 10e9}, {"cores": 2, "bytes_per_s": 16e9}],
    "parallel": [parallel(8, 2, 1.5e9, 800e6), parallel(8, 1, 5e9, 500e6)],
}  # fmt: skip
PROBED = probed(JSON)


def test_figures_of_several_nodes_go_before_those_of_one():
    assert PROBED.storage == {("write", 1): 200e6, ("read", 1): 300e6, ("write", 2): 300e6,
        ("write", 8): 800e6}
    assert PROBED.network == {True: 1.5e9, False: 5e9}


@pytest.mark.parametrize(("way", "ranks", "each"), [
    ("write", 1, 200e6), ("write", 2, 150e6), ("write", 5, 550e6 / 5),  # between 2 and 8
    ("write", 16, 50e6),  # eight have all that there is
    ("read", 1, 300e6), ("read", 4, 150e6)])  # of one alone only half is left
def test_storage_is_that_of_the_number_of_ranks(way, ranks, each):
    assert speeds_of(PROBED, way, ranks, ranks).storage == pytest.approx(each)


@pytest.mark.parametrize(("ranks", "slow"), [(1, 5e9), (2, 4e9), (4, 2e9)])
def test_copies_share_the_memory_of_the_node(ranks, slow):
    """A copy reads and writes each byte; more ranks than cores take turns."""
    found = speeds_of(PROBED, "write", ranks, ranks)
    assert (found.copy, found.slow_copy) == (5e9, pytest.approx(slow))


def test_without_a_probe_all_is_assumed():
    assert speeds_of(NOT_PROBED, "read", 8, 8) == Speeds()


def test_more_ranks_bring_what_was_measured_of_them():
    assert scaling(PROBED, "write", 1, 2).high == pytest.approx(1.15 * (1 - 200 / 300))
    assert scaling(PROBED, "write", 1, 2).low == pytest.approx(0.85 * (1 - 200 / 300))
    assert scaling(PROBED, "write", 2, 16).high == 1 - 2 / 16  # 16 ranks were not measured
    flat = Probed(storage={("read", 1): 1e9, ("read", 4): 0.9e9})
    assert scaling(flat, "read", 1, 4).high == 0


def test_what_remains_is_never_slower_than_the_calls_are_now():
    slow = Speeds(storage=1e6, slow_copy=1e18)
    assert in_blocks(1000, 1_000_000, 1e-4, 1 << 20, slow).high == pytest.approx(1e-4 + 0.1)


def test_the_answer_says_what_was_measured(tmp_path):
    advised(tmp_path, stream(2000, 4 * KIB, 200), compute_s=0.1)
    facts = Facts(build(str(tmp_path / "run")))
    point = facts.mount("/scratch/an/out.0").point
    (text,) = basis_texts(facts, advise(facts).advices)
    assert f"assumed (weir probe {point} measures them): reads of each of 2 ranks" in text
    known = Facts(facts.report, {point: PROBED})
    found = advise(known)
    (text,) = basis_texts(known, found.advices)
    assert "measured by weir probe, 2023-11-14 22:13 UTC: reads of each of 2 ranks 150" in text
    assert "assumed" not in text
    assert the(found, "small-requests").saving.io != the(advise(facts), "small-requests").saving.io
    rates = {(one["what"], one["is_measured"]) for one in basis_json(known, found.advices)}
    assert ("writes of each of 2 ranks", True) in rates


def test_a_run_without_findings_has_no_rates(tmp_path):
    report = advised(tmp_path, stream(10, 4 * KIB, 200), compute_s=1)
    assert basis_json(report.facts, report.advices) == []
