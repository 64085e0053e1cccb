# SPDX-License-Identifier: Apache-2.0
"""What a traced guest left behind, and how tests count in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from decode import Trace, read_trace
from weir_process import Completed


@dataclass(frozen=True)
class Outcome:
    """One traced run."""

    done: Completed
    directory: Path  # of the step

    @property
    def trace(self) -> Trace:
        return read_trace(self.directory)

    def ok(self) -> Outcome:
        self.done.ok()
        assert self.done.stderr == "", self.done.stderr
        return self


def counts(trace: Trace, op: str, file: str) -> int:
    """Calls of an operation on a file, whether records or counters hold them."""
    return len(trace.of(op, file=file)) + sum(
        c.calls for c in trace.counters if c.op == op and c.file.endswith("/" + file)
    )


def lost(trace: Trace) -> int:
    return sum(p.lost_events for p in trace.processes.values())
