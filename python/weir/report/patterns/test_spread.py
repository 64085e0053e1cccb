# SPDX-License-Identifier: Apache-2.0
"""What differs between ranks, accumulated part by part (the parts of trace files:
native/reader/spread_test.cc)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from weir.report.patterns.spread import OfRanks, Sums
from weir.trace._abi import SPREAD_ROW

NODES, RANKS, FILES = 5, 8, 6


def rows_of(seed: int) -> list[np.ndarray]:
    """By node: some ranks (8 a node) use some files in both directions."""
    random = np.random.default_rng(seed)
    made, count = [], 60
    for node in range(NODES):
        one = np.zeros(count, SPREAD_ROW)
        one["name"], one["way"] = random.integers(0, FILES, count), random.integers(0, 2, count)
        one["rank"] = node * RANKS + random.integers(0, RANKS, count)
        one["node"], one["counts"] = node, 3
        one["ns"], one["bytes"] = random.integers(1, 50, count), random.integers(0, 10**12, count)
        one["begin"] = random.integers(0, 1000, count)
        one["end"] = one["begin"] + random.integers(0, 30, count)
        made.append(one)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_nodes_give_what_all_rows_give(seed):
    print("seed", seed)
    parts, found, joined, wanted = rows_of(seed), Sums(), Sums(), Sums()
    for part in parts:
        found.add(part)
        of_node = Sums()
        of_node.add(part)
        joined.join(of_node.files())
    rows = np.concatenate(parts)
    wanted.add(rows)
    made = wanted.files()
    for got in (found.files(), joined.files()):
        for key in got.dtype.names:
            if key.startswith(("mean", "squares")):
                assert np.allclose(got[key], made[key], rtol=1e-12)
            else:
                assert got[key].tolist() == made[key].tolist(), key
    for one in made:
        its = rows[(rows["name"] == one["name"]) & (rows["way"] == one["way"])]
        sums = Counter()
        for rank, ns in zip(its["rank"].tolist(), its["ns"].tolist()):
            sums[rank] += ns
        assert one["ranks"] == len(sums)
        assert one["slowest_ns"] == max(sums.values())
        assert np.isclose(one["squares_ns"], np.var(list(sums.values())) * len(sums))


def test_files_whose_name_changes_and_ranks_of_several_nodes_are_counted_once():
    """Name 0 became name 1; rank 7 has processes on all nodes."""
    summed, ranks, both = Sums(), 1, 3
    kept = np.zeros(3 * NODES, SPREAD_ROW)
    kept["name"], kept["rank"] = np.tile([0, 1, 2], NODES), np.tile([3, 3, 7], NODES)
    kept["ns"] = np.tile([1, 2, 3], NODES)
    kept["counts"] = np.tile([both, both, ranks], NODES)
    others = np.zeros(NODES, SPREAD_ROW)
    others["name"], others["rank"], others["ns"] = 2, 100 + np.arange(NODES), 4
    others["node"], others["counts"] = np.arange(NODES), both
    summed.add(others)
    files = OfRanks(summed.files(), kept).files(np.array([1, 1, 2]))
    assert files["name"].tolist() == [1, 2]
    assert files["ranks"].tolist() == [1, 1 + NODES]
    assert files["slowest_ns"].tolist() == [3 * NODES, 3 * NODES]


def test_rows_that_are_kept_do_not_grow_with_ranks():
    found = Sums()
    for part in rows_of(0) * 40:
        found.add(part)
    assert OfRanks(found.files()).kept_rows == 2 * FILES
