# SPDX-License-Identifier: Apache-2.0
"""A scan on several threads gives the tables that a scan on one gives, problems and their places
included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter, records, sync
from weir.trace.ops import op_named

TABLES = ("chunks", "processes", "rows", "histograms", "units", "syncs", "problems")


@pytest.mark.parametrize("seed", [1, 2])
def test_tables_do_not_depend_on_threads(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    random = np.random.default_rng(seed)
    path = tmp_path / "n.weir"
    kinds = np.array([op_named(name).value for name in ("read", "write", "fread", "fortran_write",
        "open")] + [254, 255])
    with TraceWriter(path) as writer:
        ranks = [writer.process(100 + rank, rank, 6) for rank in range(6)]
        for rank, process in enumerate(ranks):
            for name in range(rank * 3):
                process.name(f"/scratch/file.{name}")
        for chunk in range(60):
            process = ranks[int(random.integers(0, len(ranks)))]
            lengths = random.integers(0, 1000, 100)
            starts = writer.created_ticks + chunk * 10**6 + np.cumsum(lengths + random.integers(-3,
                50, 100))
            starts[random.integers(0, 100)] = 7  # impossible
            files = random.integers(0, 9, 100)
            made = records(kinds[random.integers(0, len(kinds), 100)], starts, lengths, file=files,
                size=random.integers(0, 1 << 20, 100))
            process.events(made, thread=int(random.integers(1, 4)), chunk_bytes=4096)
            process.events(sync(int(starts[-1]), chunk, 6), thread=9, chunk_bytes=4096)
    alone = TraceFile(path).scan()
    assert len(alone.array("problems")) > 50
    assert len(alone.array("syncs")) == 60
    for threads in (2, 4, 40):
        together = TraceFile(path).scan(threads)
        for table in TABLES:
            assert together.array(table).tobytes() == alone.array(table).tobytes(
                ), f"{table} on {threads} threads"
        chunks = TraceFile(path).find_times(threads).array("chunks")
        assert chunks.tobytes() == alone.array("chunks").tobytes(), f"times on {threads} threads"
