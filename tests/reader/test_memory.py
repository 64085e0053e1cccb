# SPDX-License-Identifier: Apache-2.0
"""A trace larger than what may be resident: reading it leaves little of it in memory, however long it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

CHUNKS, PER_CHUNK, THREADS = 96, (2**20 - 64) // 32, 4
MEASURE = """
import json, resource, sys
from pathlib import Path
from weir.analysis.active import active_time
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.trace import Step

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = peak()
path = Path(sys.argv[1])
data = read_step(Step("main", path.parent, None, None, (path,)), NameTable())
active = active_time(data.files, data.lines)
print(json.dumps({"peak": peak() - before, "calls": int(data.columns.calls.sum()), "records": active.records}))
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """100 MB of records, threads side by side."""
    path = tmp_path / "node0.weir"
    read = op_named("read").value
    with TraceWriter(path, ns_per_tick=1.0) as writer:
        process = writer.process(100, 0, 1)
        process.name("/scratch/file")
        for chunk in range(CHUNKS):
            first = writer.created_ticks + chunk // THREADS * PER_CHUNK * 100
            starts = np.arange(first, first + PER_CHUNK * 100, 100)
            process.events(records(read, starts, 40, file=1, size=4096), thread=chunk % THREADS + 1)
    return path


def test_memory_does_not_grow_with_the_trace(trace: Path) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(trace)], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    seen = json.loads(done.stdout)
    assert seen["calls"] == seen["records"] == CHUNKS * PER_CHUNK
    assert seen["peak"] < trace.stat().st_size / 3
