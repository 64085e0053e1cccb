# SPDX-License-Identifier: Apache-2.0
"""Finding io-servers: servers that are late, that stand still, and that are well."""

from __future__ import annotations

import pytest
from advised import MS, advised, names, the
from wait_trace import WaitTrace


def quilt(servers: int, ranks: int, frames: int, compute_ms: int, write_ms: int):
    """The last ranks are servers, of which each gets every so many frames, and writes them."""

    def program(trace: WaitTrace) -> None:
        model = list(range(ranks - servers))
        for frame in range(frames):
            for rank in model:
                trace.compute(rank, compute_ms * MS)
            server = ranks - servers + frame % servers
            trace.gather(server, ranks=[*model, server], comm=f"world/{server}")
            trace.io(server, write_ms * MS, f"/scratch/an/wrfout.{server}", "pwrite", 4 << 20,
                frame * (4 << 20))

    return program


def test_a_server_that_is_late_is_found_with_the_number_that_would_do(tmp_path):
    """The model has 0.05 s a frame, and its server writes for 0.2 s."""
    report = advised(tmp_path, quilt(1, 4, 10, 50, 200), ranks=4, compute_s=0)
    one = the(report, "io-servers")
    assert one.what == "1 server in step s0" and one.rule is None
    # 9 frames wait 0.15 s; 2.0 s of work fit into the 0.65 s or so of the model, with a reserve
    assert one.saving.critical.high == pytest.approx(9 * 0.15, rel=0.15)
    assert one.change.startswith("Use 4 servers") or one.change.startswith("Use 5 servers")


def test_servers_that_stand_still_are_found_with_the_number_that_would_do(tmp_path):
    report = advised(tmp_path, quilt(4, 12, 16, 50, 20), ranks=12, compute_s=0)
    one = the(report, "io-servers")
    assert one.what == "4 servers in step s0" and one.change.startswith("Use 1 of 4 servers")
    # 8 ranks of the model compute 0.8 s; 11 would take 8/11 of it
    assert one.saving.critical.high == pytest.approx(0.8 * 3 / 11, rel=0.05)


@pytest.mark.parametrize("program", [quilt(1, 4, 20, 200, 150), quilt(1, 4, 10, 50, 10)])
def test_a_server_that_is_hidden_is_not(tmp_path, program):
    assert "io-servers" not in names(advised(tmp_path, program, ranks=4, compute_s=0))
