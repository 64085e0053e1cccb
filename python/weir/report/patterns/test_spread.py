# SPDX-License-Identifier: Apache-2.0
"""What differs between ranks, and common values, accumulated part by part."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from weir.report.patterns import commons
from weir.report.patterns.commons import CommonValues, OfWay
from weir.report.patterns.spread import SpreadOfRanks
from weir.trace._abi import LAYOUTS

NODES, RANKS, FILES = 5, 8, 6
KEYS = ("name", "way", "rank", "node", "ns", "bytes", "begin", "end")


def rows_of(seed: int) -> list[dict[str, np.ndarray]]:
    """By node: some ranks (8 a node) use some files in both directions."""
    random = np.random.default_rng(seed)
    made = []
    for node in range(NODES):
        count = 60
        begin = random.integers(0, 1000, count)
        made.append({
            "name": random.integers(0, FILES, count), "way": random.integers(0, 2, count),
            "rank": node * RANKS + random.integers(0, RANKS, count),
            "node": np.full(count, node), "ns": random.integers(1, 50, count),
            "bytes": random.integers(0, 10**12, count), "begin": begin,
            "end": begin + random.integers(0, 30, count),
        })  # fmt: skip
    return made


def whole(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.concatenate([part[key] for part in parts]) for key in KEYS}


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_nodes_give_what_all_rows_give(seed):
    print("seed", seed)
    parts, found, wanted = rows_of(seed), SpreadOfRanks(), SpreadOfRanks()
    for part in parts:
        found.add(part)
    wanted.add(whole(parts))
    got, made = found.found().files(), wanted.found().files()
    for key in got.dtype.names:
        if key.startswith(("mean", "squares")):
            assert np.allclose(got[key], made[key], rtol=1e-12)
        else:
            assert got[key].tolist() == made[key].tolist(), key
    for at, one in enumerate(made):
        rows = whole(parts)
        its = (rows["name"] == one["name"]) & (rows["way"] == one["way"])
        sums = Counter()
        for rank, ns in zip(rows["rank"][its].tolist(), rows["ns"][its].tolist()):
            sums[rank] += ns
        assert got["ranks"][at] == len(sums)
        assert got["slowest_ns"][at] == max(sums.values())
        assert np.isclose(got["squares_ns"][at], np.var(list(sums.values())) * len(sums))


def test_files_whose_name_changes_and_ranks_of_several_nodes_are_counted_once():
    """Name 0 becomes name 1; rank 7 has processes on all nodes."""
    found = SpreadOfRanks(np.array([0, 1]), np.array([7]))
    for node in range(NODES):
        one = {key: np.zeros(4, np.int64) for key in KEYS}
        one |= {"name": np.array([0, 1, 2, 2]), "rank": np.array([3, 3, 7, 100 + node]),
            "node": np.full(4, node), "ns": np.array([1, 2, 3, 4])}  # fmt: skip
        found.add(one)
    files = found.found().files(np.array([1, 1, 2]))
    assert files["name"].tolist() == [1, 2]
    assert files["ranks"].tolist() == [1, 1 + NODES]
    assert files["slowest_ns"].tolist() == [3 * NODES, 3 * NODES]


def test_rows_that_are_kept_do_not_grow_with_ranks():
    found = SpreadOfRanks()
    for part in rows_of(0) * 40:
        found.add(part)
    assert found.found().kept_rows == 2 * FILES


def of_way(rows) -> OfWay:
    """From rows of (name, kind, value, count), all of one direction."""
    name, kind, value, count = np.array(rows, np.int64).T
    table = np.zeros(len(name), LAYOUTS["commons"])
    table["file"] = np.arange(len(name))
    table["kind"], table["value"], table["count"] = kind, value, count
    return OfWay(table, int(kind[0] % 2), name, np.arange(len(name)))


def test_counts_of_few_values_are_exact():
    random, found, wanted = np.random.default_rng(1), CommonValues(), Counter()
    for way in (0, 1) * 10:
        name, kind, value, count = random.integers(0, 9, (4, 500))
        kind = kind % 3 * 2 + way
        found.add(of_way(np.stack([name, kind, value, count], axis=1)))
        signed = np.where(kind >= 4, -value, value)
        for *key, n in zip(name * 2 + way, kind >= 2, signed.tolist(), count.tolist()):
            wanted[tuple(map(int, key))] += n
    rows = found.values().tolist()
    assert {tuple(row[:3]): row[3] for row in rows} == dict(wanted) and len(rows) == len(wanted)
    assert not found.is_full


def test_values_of_the_other_direction_and_of_none_are_left_out():
    far = 2**62 + 1  # no floating-point number
    found, rows = CommonValues(), of_way([(3, 0, 8, 2), (3, 1, 9, 2), (4, 5, far, 1)])
    assert found.values().shape == (0, 4)
    found.add(replace(rows, way=1))
    assert sorted(found.values().tolist()) == [[7, 0, 9, 2], [9, 1, -far, 1]]
    assert replace(rows, way=1).by_row().tolist() == [[1, 0, 9, 2], [2, 1, -far, 1]]


def test_of_too_many_values_the_most_common_are_kept(monkeypatch):
    monkeypatch.setattr(commons, "MOST_VALUES", 1000)
    monkeypatch.setattr(commons, "_FOLDED_AT_ONCE", 500)
    found, keys = CommonValues(), 10
    for part in range(50):
        found.add(of_way([(at % keys, 0, at + 1000 * (part + 1), 1) for at in range(400)]))
        found.add(of_way([(one, 0, 8, 5) for one in range(keys)]))
    assert found.is_full
    rows = found.values()
    assert len(rows) <= 1000
    often = rows[rows[:, 2] == 8]
    assert sorted(often[:, 0].tolist()) == list(range(0, 2 * keys, 2))
    assert set(often[:, 3].tolist()) == {250}


def test_of_equally_common_values_the_larger_are_kept(monkeypatch):
    monkeypatch.setattr(commons, "MOST_VALUES", 3)
    monkeypatch.setattr(commons, "_FOLDED_AT_ONCE", 0)
    monkeypatch.setattr(commons, "KEPT", (3, 2))
    found = CommonValues()
    found.add(of_way([(name, 2, value, 1) for name in (0, 1) for value in range(9)]))
    found.add(of_way([(0, 2, 3, 3), (1, 4, 3, 1)]))
    assert sorted(found.values().tolist()) == [[0, 1, 3, 3], [0, 1, 8, 1], [2, 1, 7, 1],
        [2, 1, 8, 1]]  # fmt: skip
