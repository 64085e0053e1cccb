# SPDX-License-Identifier: Apache-2.0
"""The I/O of a rank at given timestamps, read with a few chunks in memory: against counting every
ns, and in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.analysis import lines
from weir.report.waits.busy import busy_at
from weir.trace import Step
from weir.trace._synthetic import TraceWriter, event, mpi, records
from weir.trace.ops import op_named

SETTINGS = settings(max_examples=60)
call = st.tuples(st.sampled_from(["read", "fwrite", "MPI_wait", "pipe"]), st.integers(0, 90),
    st.integers(0, 20), st.integers(1, 3))
EVENTS = 1_200_000
MEASURE = """
import json, resource, sys
from pathlib import Path
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.report.waits.summary import synchronisation
from weir.trace import Step

path, names = Path(sys.argv[1]), NameTable()
data = read_step(Step("main", path.parent, None, None, (path,)), names)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
waits = synchronisation(data, names).waits
print(json.dumps({"peak": peak() - before, "collectives": waits.collectives,
    "critical_ns": waits.critical_ns, "path_ns": waits.path_ns}))
"""


def step_of(path: Path, names: NameTable):
    return read_step(Step("main", path.parent, None, None, (path,)), names)


@given(st.lists(st.lists(call, max_size=14), min_size=1, max_size=2),
    st.lists(st.integers(-5, 130), max_size=8), st.integers(0, 3))
@SETTINGS
def test_lengths_and_last_ends_are_those_of_every_ns(of_processes, asked, room):
    """Three calls a chunk, on up to three threads, in no order."""
    covered, names = set(), NameTable()
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "ROOM_INTERVALS", room)
        path = Path(directory) / "n.weir"
        with TraceWriter(path) as writer:
            for number, calls in enumerate(of_processes):
                process = writer.process(5 + number, 0, 1)
                for thread in (1, 2, 3):
                    made = [
                        event("read" if op == "pipe" else op, writer.created_ticks + start, length,
                            file=process.name("pipe:[1]" if op == "pipe" else "/a"))
                        for op, start, length, of in calls
                        if of == thread
                    ]
                    process.events(made, thread=thread, chunk_bytes=64 + 3 * 32)
                covered |= {at for op, start, length, _ in calls if op in ("read", "fwrite")
                    for at in range(start, start + length)}
        data = step_of(path, names)
        origin = int(data.lines[0].timestamps(np.array([data.files[0].header.created_ticks],
            np.uint64))[0])
        timestamps = np.array(asked, np.int64) + origin
        found = busy_at(data, names, range(len(data.members)), timestamps)
        assert found.until(timestamps).tolist() == [len({at for at in covered if at < timestamp})
            for timestamp in asked]
        lasts = [max((at + 1 for at in covered if at < timestamp), default=None)
            for timestamp in asked]
        clipped = np.maximum(found.last_end(timestamps), origin - 10) - origin
        empty = {start for calls in of_processes for op, start, length, _ in calls
            if op in ("read", "fwrite") and not length}
        for last, seen, timestamp in zip(lasts, clipped.tolist(), asked):
            known = [last] if last is not None else []
            # a call of no length ends where it begins
            known += [start for start in empty if start < timestamp]
            assert seen == max(known, default=-10)
        with pytest.raises(KeyError):
            found.until(np.array([origin + 1000]))


@pytest.mark.timeout(120)
def test_memory_of_waits_does_not_grow_with_the_calls(tmp_path):
    """Calls that do not touch one another: the union has as many intervals as there are calls. The
    barriers are few."""
    path = tmp_path / "n.weir"
    with TraceWriter(path) as writer:
        for rank in (0, 1):
            process = writer.process(100 + rank, rank, 2)
            file, world = process.name(f"/scratch/{rank}"), process.name("mpi:world:2")
            starts = writer.created_ticks + np.arange(EVENTS) * 100
            length = 40 if rank == 0 else 10
            process.events(records(op_named("write").value, starts, length, file=file, size=1),
                thread=1)
            # A thread that does not call MPI has I/O of its own: these are of one thread.
            at = writer.created_ticks + np.arange(1, 13) * (EVENTS // 12) * 100 - 30 * (rank == 1)
            process.events(mpi("MPI_collective", at, 40 + 30 * (rank == 1), 1, file=world,
                offset=np.arange(12)), thread=1)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], stdout=subprocess.PIPE,
        text=True, check=True, timeout=300)
    seen = json.loads(done.stdout)
    assert seen["collectives"] == 12
    assert seen["critical_ns"] > 0
    assert seen["peak"] < path.stat().st_size
