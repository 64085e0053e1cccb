# SPDX-License-Identifier: Apache-2.0
"""Two worker processes for all tests here, and runs of several nodes to read with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from query_runs import TWO_STEPS, write_run
from wait_trace import WaitTrace
from weir_pages import write_step

from weir.cluster import Cluster, connect

MS = 10**6
READ_AGAIN = """
step again wall=1
node n1
process pid=50 rank=0 ranks=2
pread /data/c at=1000 for=10 bytes=100 offset=0
pread /data/c at=3000 for=10 bytes=100 offset=50
node n2
process pid=51 rank=1 ranks=2
pwrite /data/c at=2000 for=10 bytes=500 offset=0
pread /data/c at=4000 for=10 bytes=100 offset=60
"""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The client of a scheduler with two worker processes."""
    distributed = pytest.importorskip("distributed",
        reason="dask.distributed needs Python 3.11 or newer, and its extra")
    options = {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=50,
            **options) as local, connect(local.scheduler_address) as made:
        yield made


def write_nodes(run: Path) -> Path:
    """Steps of one node and of three, whose clocks differ; names that only some nodes have,
    collectives, phases, MPI-IO, a file read again."""
    write_run(run, TWO_STEPS + READ_AGAIN)
    write_step(run / "picture", 7, [f"/scratch/an/traj{i:03d}" for i in range(5)], calls=400)
    program = WaitTrace(6, nodes=3, ahead=(0, 40, 15))
    program.barrier()
    for rank in range(6):
        program.phase(rank, "read", True)
        program.io(rank, (rank + 1) * MS, "/scratch/all", "pread")
        program.io(rank, MS, f"/scratch/own{rank}", "pread")
        program.phase(rank, "read", False)
    program.barrier()
    program.io(0, 50 * MS, "/scratch/restart")
    program.write_all({1: 5 * MS, 4: 9 * MS})
    program.barrier()
    program.write(run / "waits")
    return run


@pytest.fixture(scope="session")
def nodes_run(tmp_path_factory) -> Path:
    return write_nodes(tmp_path_factory.mktemp("nodes") / "run")
