# SPDX-License-Identifier: Apache-2.0
"""Orders of rows, and different keys, are those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from weir.analysis.columns import distinct, grouped, order_of

SEED = 20261128
EDGES = (-(2**63), 2**63 - 1)


def keys_of(widths: tuple[int, ...], count: int) -> list[np.ndarray]:
    random = np.random.default_rng([SEED, *widths, count])
    return [random.integers(-(1 << width - 1), 1 << width - 1, count) for width in widths]


# sums of widths with and without room for the rows' places in 63 bits, and beyond 63
@pytest.mark.parametrize("widths", [(3,), (2, 3, 4), (30, 20), (2, 58), (61,), (40, 40), (1, 63)])
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_order_is_that_of_a_stable_sort(widths, count):
    keys = keys_of(widths, count)
    keys = [np.r_[key, key] for key in keys]  # each combination at least twice
    expected = np.lexsort(keys[::-1])
    assert order_of(*keys).tolist() == expected.tolist()
    order, begins = grouped(*keys)
    assert order.tolist() == expected.tolist()
    rows = list(zip(*(key[order].tolist() for key in keys)))
    assert begins.tolist() == [at for at, row in enumerate(rows) if not at or row != rows[at - 1]]


def test_order_of_keys_of_other_kinds():
    keys = (np.array([True, False, True, False]), np.array([3, 3, 1, 2], np.uint8))
    assert order_of(*keys).tolist() == [3, 1, 2, 0]
    assert order_of(np.array(EDGES[::-1])).tolist() == [1, 0]
    assert order_of(np.empty(0, np.int32), np.empty(0, np.int64)).tolist() == []


@pytest.mark.parametrize("keys", [[], [5], [3, 1, 3, 2], [-1, 7, -1], [*EDGES, 0, EDGES[0]],
    [2**40, 0, 2**40]])  # fmt: skip
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_different_keys_are_those_of_unique(keys, kind):
    some = np.array(keys, np.int64).astype(kind)
    found = distinct(some)
    assert found.tolist() == np.unique(some).tolist() and found.dtype == some.dtype
