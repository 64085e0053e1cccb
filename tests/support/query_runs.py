# SPDX-License-Identifier: Apache-2.0
"""Runs with known records for the tests of tables, exports and views: written as golden files are.
"""

from __future__ import annotations

from pathlib import Path

from golden_trace import GoldenTrace

from weir.trace._synthetic import TraceWriter, event

TWO_STEPS = """
step traj0 wall=2
node n1
process pid=10 rank=0 ranks=2
open /data/a at=1000 for=10
write /data/a at=2000 for=100 bytes=4096 offset=0
write /data/a at=3000 for=200 bytes=100 offset=4096
write /data/a at=4000 for=50 bytes=77 error=28
close /data/a at=5000 for=5
fortran_write /data/f at=6000 for=1000 bytes=800 unit=-10
write /data/f at=6100 for=300 bytes=816 offset=0 below nested
write pipe:[7] at=8000 for=7 bytes=9
process pid=11 rank=1 ranks=2
read /data//a at=1500 for=400 bytes=4096 offset=0
node n2
process pid=10 command=mpirun rank=-1 exe=/usr/bin/mpirun
read /etc/hosts at=100 for=10 bytes=50
process pid=12 command=cp rank=-1 exe=/bin/cp
read /data/b at=9000 for=60 bytes=1000 x=5
step min0 wall=1 status=3
node n1 level=2
process pid=20
counter read /data/a calls=7 bytes=10 for=3 at=10
"""


def write_run(directory: Path, text: str) -> Path:
    """The run that a golden file's lines describe."""
    trace = GoldenTrace(directory)
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            trace.line(line)
    trace.close()
    return directory


def one_read(run: Path, name: str) -> None:
    """A run of one read of a file of that name, which may be one that no golden file can spell."""
    directory = run / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        process = writer.process(5)
        process.events([event("read", writer.created_ticks, 5, file=process.name(name), size=1,
            offset=0)])
