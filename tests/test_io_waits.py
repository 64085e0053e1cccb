# SPDX-License-Identifier: Apache-2.0
"""The critical path of real MPI programs, on both MPIs: which rank and file it blames.

bench/free_io.py compares the seconds with runs whose I/O costs nothing.
"""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.mpi, pytest.mark.any_mpi]

SLOW_MS = 120


@pytest.fixture
def waits(mpi, weir, tmp_path, root):
    """``waits(kind, ranks, frames, compute_ms)``: of tests/programs/io_waits.c with slow files."""
    program = mpi.cc(root / "tests/programs/io_waits.c", "-pthread", name="io_waits")
    rules = tmp_path / "rules.toml"
    stack = f"delay:op=write:us={SLOW_MS * 1000} | system"
    rules.write_text(f'[[rule]]\nname = "slow.*"\nstack = "{stack}"\n')

    def run(kind: str, ranks: int, frames: int, compute_ms: int) -> dict:
        command = mpi.launch(ranks, program, kind, frames, compute_ms)
        weir("trace", "--quiet", "--rules", rules, "-o", "run", "--", *command, cwd=tmp_path,
            env=dict(mpi.env), timeout=90).ok()  # fmt: skip
        [found] = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)["waits"]
        assert found["incomplete"] == 0
        assert 0 <= found["critical_s"] <= found["path_s"] <= found["wall_s"]
        path = sum(one["path_s"] for one in found["critical_path"])
        assert path == pytest.approx(found["wall_s"], abs=1e-6)
        return found

    return run


@pytest.mark.parametrize("kind, rank, file", [
    ("quilt", 3, "slow.out0"), ("chain", 0, "slow.log0"), ("halo", 0, "slow.log0"),
    ("shift", 0, "slow.log0"), ("push", 0, "slow.log0"), ("server", 3, "slow.out0"),
])  # fmt: skip
def test_the_rank_and_file_that_all_wait_for_are_named(waits, kind, rank, file):
    found = waits(kind, 4, 4, 5)
    worst = found["files"][0]
    assert (worst["file"].rpartition("/")[2], worst["ranks"][0]) == (file, rank)
    assert worst["critical_s"] > 0.5 * SLOW_MS / 1000
    assert max(found["critical_path"], key=lambda one: one["io_s"])["rank"] == rank


def test_io_of_a_thread_is_reported_beside_the_critical_time(waits):
    found = waits("threads", 2, 3, 5)
    assert found["background_s"] >= 3 * SLOW_MS / 1000
    assert found["critical_most_s"] >= found["critical_s"]
    assert found["critical_most_s"] > SLOW_MS / 1000
