# SPDX-License-Identifier: Apache-2.0
"""Asking and watching take the memory of some batches, however long the trace is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")

PER_CHUNK = (2**20 - 64) // 32
MEASURE = """
import json, resource, sys
import weir
from weir.watch import Watch

kind, path = sys.argv[1:]
if kind == "batches":
    count = sum(len(batch) for batch in weir.open(path).events.batches())
elif kind == "sql":
    with weir.open(path) as run:
        count = run.sql("SELECT sum(calls) n FROM io").to_pylist()[0]["n"]
else:
    count = Watch(path).look().calls
print(json.dumps([count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def write(directory: Path, chunks: int) -> Path:
    (directory / "s").mkdir(parents=True)
    with TraceWriter(directory / "s" / "n.weir") as writer:
        process = writer.process(100, 0, 1)
        file, read = process.name("/scratch/file"), op_named("read").value
        for chunk in range(chunks):
            first = writer.created_ticks + chunk * PER_CHUNK * 100
            process.events(records(read, np.arange(first, first + PER_CHUNK * 100, 100), 40,
                file=file, size=4096))
    return directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    """One of 4 chunks, one of 100 MB."""
    directory = tmp_path_factory.mktemp("memory")
    return write(directory / "small", 4), write(directory / "large", 96)


@pytest.mark.parametrize("kind", ["batches", "sql", "watch"])
def test_memory_does_not_grow_with_the_trace(runs, execute, kind):
    peaks = []
    for run, chunks in zip(runs, (4, 96)):
        count, peak = json.loads(execute([sys.executable, "-c", MEASURE, kind, run]).ok().stdout)
        assert count == chunks * PER_CHUNK
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 92 * 2**20 / 2
