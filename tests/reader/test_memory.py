# SPDX-License-Identifier: Apache-2.0
"""A trace larger than what may be resident: reading it leaves little of it in memory, however long
it is."""

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
import json, sys
from pathlib import Path
from weir.analysis.active import active_time
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.trace import Step

def peak():  # of this program: ru_maxrss begins with that of the process that started it
    [line] = [one for one in open("/proc/self/status") if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

path = Path(sys.argv[1])
files = tuple(sorted(path.parent.glob("*.weir")))
before = peak()
data = read_step(Step("main", path.parent, None, None, files), NameTable())
active = active_time(data.files, data.lines)
print(json.dumps({"peak": peak() - before, "calls": int(data.columns.calls.sum()),
    "records": active.records}))
"""

FLOW = """
import json, resource, sys
from pathlib import Path
import numpy as np
from weir.analysis.names import NameTable
from weir.report.flow.rereads import extents, uses_between
from weir.analysis.step import read_step
from weir.trace import Step

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

path, names = Path(sys.argv[1]), NameTable()
data = read_step(Step("main", path.parent, None, None, (path,)), names)
before, members = peak(), np.ones(1, bool)
middle = int(data.columns.first_ns.min() + data.columns.last_ns.max()) // 2
((known, distinct),) = extents(data, members, names, room=1 << 17).by_rank.values()
((*parts,),) = uses_between(data, members, names, {0: [middle]}).values()
parts = [part.bytes for part in parts]
print(json.dumps({"peak": peak() - before, "known": known, "distinct": distinct, "parts": parts}))
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
            process.events(records(read, starts, 40, file=1, size=4096,
                offset=(chunk * PER_CHUNK + np.arange(PER_CHUNK)) * 5000), thread=chunk % THREADS
                + 1)
    return path


def test_memory_does_not_grow_with_the_trace(trace: Path) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(trace)], stdout=subprocess.PIPE,
        text=True, check=True, timeout=300)
    seen = json.loads(done.stdout)
    assert seen["calls"] == seen["records"] == CHUNKS * PER_CHUNK
    assert seen["peak"] < trace.stat().st_size / 3


def test_memory_of_the_data_flow_does_not_grow_with_the_trace_nor_with_the_places_read(
        trace: Path) -> None:
    """No two reads touch: there are as many stretches as records, twenty times what may be in
    memory."""
    done = subprocess.run([sys.executable, "-c", FLOW, str(trace)], stdout=subprocess.PIPE,
        text=True, check=True, timeout=300)
    seen = json.loads(done.stdout)
    assert seen["known"] == seen["distinct"] == sum(seen["parts"]) == CHUNKS * PER_CHUNK * 4096
    assert min(seen["parts"]) > 0
    assert seen["peak"] < trace.stat().st_size / 3


def test_active_time_of_many_chunks_of_long_files_keeps_no_union_of_a_file(tmp_path: Path) -> None:
    nodes, chunks, per_chunk = 2, 2100, 700
    for node in range(nodes):
        with TraceWriter(tmp_path / f"node{node}.weir", f"node{node}", ns_per_tick=1.0) as writer:
            process = writer.process(100, node, nodes)
            file = process.name("/scratch/file")
            starts = writer.created_ticks + 100 * np.arange(chunks * per_chunk)
            process.events(records(op_named("read").value, starts, 40, file=file, size=8),
                chunk_bytes=64 + 32 * per_chunk)  # fmt: skip
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path / "node0.weir")],
        stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    seen = json.loads(done.stdout)
    assert seen["records"] == nodes * chunks * per_chunk
    assert seen["peak"] < 48 << 20
