# SPDX-License-Identifier: Apache-2.0
"""Records of MPI and marks that no program made: the report is made all the same, and no figure is
impossible."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.report import build, render_text, report_json
from weir.report.frame.kind import ALL, Options
from weir.report.waits.phase_rules import PhaseRule
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

OPS = (
    "MPI_collective", "MPI_start_collective", "MPI_wait", "MPI_receive", "MPI_probe", "MPI_send",
    "MPI_awaited", "MPI_Init",
    "phase_begin", "phase_end", "write", "open", "close",
)  # fmt: skip
NAMES = (
    "", "mpi:world:2", "mpi:world:3", "mpi:world/0.1:2", "mpi:self:1", "mpi:?12:2", "mpi::",
    "mpi:x:99999999999999999999", "mpi", "phase:a",
    "phase:", "/scratch/a", "/scratch/b", "pipe:[1]",
)  # fmt: skip
numbers = st.one_of(st.integers(0, 4),
    st.sampled_from([2**31, 2**40 - 1, 2**47, 2**48 - 2, 2**48 - 1]))
record = st.tuples(
    st.sampled_from(OPS), st.sampled_from(NAMES), st.integers(0, 60),
    st.one_of(st.integers(0, 40), st.just(2**40)),
    numbers, st.one_of(st.integers(0, 4), st.integers(0, 2**16 - 1))
    .map(lambda routine: routine << 32), st.sampled_from([0, 0, 16, 17, 24]),
)  # fmt: skip
processes = st.lists(
    st.tuples(st.integers(-1, 3), st.sampled_from([0, 2, 3]), st.booleans(),
        st.lists(record, max_size=25)), min_size=1, max_size=4
)
RULES = (PhaseRule("s", start=True), PhaseRule("f", path="/scratch/*", until="close"),
    PhaseRule("b", barriers=(1,), every=1))


# Two processes of one number: the second one's rank is the first one's by exec.
EXECED = [(0, 0, True, [("MPI_Init", "mpi:world:2", 48, 1 << 40, 1, 0, 0)]),
    (-1, 0, False, [("MPI_Init", "mpi:world:3", 42, 1 << 40, 1 << 47, 2 << 32, 17)])]


@settings(max_examples=60)
@given(processes, st.booleans(), st.randoms(use_true_random=False))
@example(EXECED, True, random.Random(0))
def test_any_records_give_a_report(made, with_rules, random):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "s"
        path.mkdir(parents=True)
        with TraceWriter(path / "n0.weir", "n0") as writer:
            for number, (rank, ranks, has_end, rows) in enumerate(made):
                process = writer.process(100 + number // 2, rank, ranks,
                    end_ticks=writer.created_ticks + 100 if has_end else 0)
                parts = [
                    records(op_named(op).value, writer.created_ticks + at, length,
                        file=process.name(name) if name else 0, offset=offset, size=size,
                        flags=flags)
                    for op, name, at, length, offset, size, flags in rows
                ]
                random.shuffle(parts)
                process.events(parts)
        report = build(path.parent, phase_rules=RULES if with_rules else ())
        [step] = report.steps
        waits = synchronisation_of(step).waits
        if waits is not None:
            assert min(waits.waiting_ns, waits.waited_ns, waits.path_ns, waits.critical_ns) >= 0
            assert waits.critical_ns <= waits.path_ns + len(waits.files) + 1
        for phase in synchronisation_of(step).phases:
            assert (
                0 <= phase.least_ns <= phase.mean_ns <= phase.most_ns
                and phase.ranks >= 1
                and phase.io_ns >= 0
            )
        report_json(report)
        with open(Path(directory) / "text", "w") as stream:
            render_text(report, stream)
            render_text(report, stream, Options((ALL,)))


def test_no_rank_is_awaited_by_a_rank_beyond_the_program(tmp_path):
    (tmp_path / "s").mkdir()
    with TraceWriter(tmp_path / "s" / "n0.weir", "n0") as writer:
        process = writer.process(1, 0, 2)
        t = writer.created_ticks
        process.events(
            np.concatenate([records(op_named("MPI_receive").value, t, 100,
                file=process.name("mpi:world:2"), offset=rank, size=141 << 32)
                for rank in (1, 7, 2**40)])
        )
    waits = synchronisation_of(build(tmp_path).steps[0]).waits
    assert (waits.waiting_ns, waits.waited_ns, waits.routines) == (300, 0, ())
