# SPDX-License-Identifier: Apache-2.0
"""Finding io-servers: servers that are late, that stand still, and that are well; ranks that write
for others and are no servers; several programs in a step."""

from __future__ import annotations

from pathlib import Path

import pytest
from advised import MS, advise_run, advised, names, the
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
    assert "the model waits 1.55 s for it. It packs and writes for 2 s" in one.sentence.replace(
        "\u00a0", " ")
    # 9 frames wait 0.15 s, and the end for the last one; 2.0 s of work fit into the 0.65 s or so of
    # the model, with a reserve
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


def gathering(read_ms: int, write_ms: int, compute_ms: int = 60, root_ms: int = 60):
    """Each rank computes, and rank 0 writes for all; but each frame it may read for longer."""

    def program(trace: WaitTrace) -> None:
        for frame in range(8):
            for rank in range(4):
                trace.compute(rank, root_ms * MS if rank == 0 else compute_ms * MS)
            if read_ms:
                trace.io(0, read_ms * MS, "/scratch/an/boundaries", "pread", 64 << 20,
                    frame * (64 << 20))
            trace.gather(0)
            trace.io(0, write_ms * MS, "/scratch/an/out", "pwrite", 4 << 20, frame * (4 << 20))
            trace.barrier()

    return program


@pytest.mark.parametrize(("program", "is_server"), [
    (gathering(0, 500), False), (gathering(600, 100, root_ms=1), False),
    (gathering(0, 500, root_ms=1), True)], ids=["computes", "reads", "serves"])
def test_a_rank_that_computes_or_reads_as_well_is_no_server(tmp_path, program, is_server):
    """Waits make what it computes a small part of its time."""
    found = names(advised(tmp_path, program, ranks=4, compute_s=0))
    assert ("io-servers" in found) == is_server


def write_step(directory: Path, servers: int, ranks: int, program: str = "n", write_ms: int = 5,
        init_ms: int = 0) -> Path:
    """One more program of the only step: servers that stand still, as a rule."""
    trace = WaitTrace(ranks)
    trace.init_ns = init_ms * MS
    for rank in range(ranks):
        trace.compute(rank, trace.init_ns)
    trace.barrier()
    quilt(servers, ranks, 16, 50, write_ms)(trace)
    trace.barrier()
    return trace.write(directory / "s0", program, exe=f"/bin/{program}")


def test_what_a_rank_does_before_mpi_init_is_not_compared(tmp_path):
    """Programs take long to start, those in Python above all: each rank as long."""
    run = write_step(tmp_path, 1, 4, write_ms=200, init_ms=800)
    assert the(advise_run(run), "io-servers").what == "1 server in step s0"


def test_each_program_of_a_step_has_servers_of_its_own(tmp_path):
    """Two programs with a server each, which stand still: neither can do with fewer, though one
    server would do for both."""
    for program in ("ocean", "waves"):
        run = write_step(tmp_path / "one", 1, 4, program)
    assert "io-servers" not in names(advise_run(run))
    write_step(tmp_path / "two", 2, 8, "ocean")
    run = write_step(tmp_path / "two", 1, 4, "waves")
    assert the(advise_run(run), "io-servers").what == "2 servers of ocean in step s0"
