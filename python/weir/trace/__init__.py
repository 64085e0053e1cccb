# SPDX-License-Identifier: Apache-2.0
"""Run directories and trace files as they lie on disk: what is there, mapped and checked. What it
means is left to analysis."""

from weir.trace.errors import DamagedFile, RunNotFound
from weir.trace.file import Problem, TraceFile
from weir.trace.job import Job, read_job
from weir.trace.ops import OPS, Op
from weir.trace.process import Process
from weir.trace.run import Run, Step, find_run

__all__ = [
    "OPS",
    "DamagedFile",
    "Job",
    "Op",
    "Problem",
    "Process",
    "Run",
    "RunNotFound",
    "Step",
    "TraceFile",
    "find_run",
    "read_job",
]
