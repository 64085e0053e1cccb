# SPDX-License-Identifier: Apache-2.0
"""Layer stage on several nodes, each with its own tier: what one writes the others see at its
place, whole, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

RANKS, BYTES = 4, 300_000


@pytest.fixture
def nodes(mpi, rule, tmp_path):
    """``nodes(version)``: what each of 4 ranks on two nodes saw of the next rank's file."""
    program = mpi.cc(Path(__file__).with_name("nodes.c"), name="nodes")

    def run(version: int, drain: str = "async") -> list[str]:
        done = mpi.run(RANKS, program, version, BYTES, cwd=tmp_path,
            env=rule(drain, WEIR_NODE_RANKS="2")).ok()
        return sorted(done.stdout.splitlines())

    return run


def test_a_file_of_another_node_is_seen_at_its_place_whole(nodes, tmp_path, tier):
    first = nodes(1)
    # Ranks 0 and 1 are one node, 2 and 3 the other.
    assert first[0] == "rank 0: there 1 none 0 older 0 half 0"  # on their own tier at once
    assert first[2] == "rank 2: there 1 none 0 older 0 half 0"
    for line in first:
        assert "there 1" in line and "half 0" in line
    second = nodes(2)
    assert second[0] == "rank 0: there 1 none 0 older 0 half 0"
    for line in second:
        assert "there 1" in line and "half 0" in line and "none 0" in line
    assert sorted(path.name for path in tmp_path.glob("*.dat")) == [
        f"rank{i}.dat" for i in range(RANKS)]


def test_each_node_has_a_tier_of_its_own(nodes, tmp_path, tier):
    nodes(1)

    def on(directory):
        return sorted(p.name for p in Path(f"{directory}/tree{tmp_path}").glob("*.dat"))

    assert on(tier) == ["rank0.dat", "rank1.dat"]
    assert on(f"{tier}.node1") == ["rank2.dat", "rank3.dat"]
