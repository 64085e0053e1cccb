# SPDX-License-Identifier: Apache-2.0
"""Ticks to ns on a node, and nodes against each other, on traces whose true clocks are known."""

from __future__ import annotations

import numpy as np
import pytest

from weir.analysis.alignment import align
from weir.analysis.clock import node_line
from weir.analysis.worlds import worlds_of
from weir.report import build
from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter, event, sync

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND


class Node:
    """A node whose clocks are wrong in a known way: real time by offset_ns, and everything by
    drift."""

    def __init__(self, path, name, offset_ns=0, drift=0.0, ns_per_tick=0.4):
        self.offset_ns, self.drift, self.ns_per_tick, self.path = (
            offset_ns,
            drift,
            ns_per_tick,
            path,
        )
        self.writer = TraceWriter(path, name, ns_per_tick=ns_per_tick, created_realtime_ns=BEGIN
            + offset_ns)

    def ticks(self, true_ns: float) -> int:
        """What the trace clock shows true_ns after the beginning."""
        return self.writer.created_ticks + round(true_ns * (1 + self.drift) / self.ns_per_tick)


def trace_of_barriers(tmp_path, nodes, seed, init=8, finalize=8, until=600 * SECOND,
        jitter_ns=20_000):
    """Two ranks a node that leave barriers at the beginning and at the end, each late by some
    jitter and never before all are in."""
    print("seed", seed)
    random = np.random.default_rng(seed)
    made = [Node(tmp_path / f"n{i}.weir", f"n{i}", *node) for i, node in enumerate(nodes)]
    left = []
    for begin, count in ((SECOND, init), (until, finalize)):
        for _ in range(count):
            left.append(begin + random.exponential(jitter_ns, 2 * len(made)))
            begin = left[-1].max() + 2000
    for number, node in enumerate(made):
        for nth in range(2):
            rank = 2 * number + nth
            process = node.writer.process(100 + nth, rank, 2 * len(made),
                last_ticks=node.ticks(until + SECOND))
            process.events([sync(node.ticks(ns[rank]), i + 1, 2 * len(made))
                for i, ns in enumerate(left)])
        node.writer.close()
    return made, [TraceFile(node.path).scan() for node in made]


def aligned(files):
    return align(tuple(files), tuple(node_line(file)[0] for file in files), worlds_of(files))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("clocks", [[(0, 0.0), (5_000_000, 0.0)], [(0, 0.0), (-40_000_000, 3e-5)],
    [(7_000, 1e-6), (0, -2e-5), (3 * SECOND, 0.0)]])
def test_offset_and_drift_are_found(tmp_path, clocks, seed):
    nodes, files = trace_of_barriers(tmp_path, clocks, seed)
    lines, alignments = aligned(files)
    for true_ns in (SECOND, 300 * SECOND, 600 * SECOND):
        shown = [line.timestamp(node.ticks(true_ns)) for node, line in zip(nodes, lines)]
        # The earliest of two ranks leaves half the jitter late; the median of 8 barriers halves
        # that again, at least.
        assert max(shown) - min(shown) < 20_000
    assert [a.barriers for a in alignments] == [0] + [16] * (len(clocks) - 1)
    for (offset, drift), alignment in zip(clocks[1:], alignments[1:]):
        ahead = offset - clocks[0][0]
        assert abs(alignment.drift - (drift - clocks[0][1])) < 1e-7
        if drift == clocks[0][1]:
            assert abs(alignment.offset_ns - ahead) <= alignment.error_ns


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranks_that_wait_for_a_processor_widen_the_error_and_stay_in_it(tmp_path, seed):
    """More ranks than processors: each leaves when it is its turn, milliseconds late."""
    _, files = trace_of_barriers(tmp_path, [(0, 0.0), (700_000_000, 0.0)], seed,
        jitter_ns=8_000_000)
    alignment = aligned(files)[1][1]
    assert abs(alignment.offset_ns - 700_000_000) <= alignment.error_ns
    assert alignment.error_ns > 100_000


def test_without_barriers_the_real_time_clocks_are_trusted(tmp_path):
    nodes, files = trace_of_barriers(tmp_path, [(0, 0.0), (5_000_000, 0.0)], 1, init=0, finalize=0)
    lines, alignments = aligned(files)
    assert [a.barriers for a in alignments] == [0, 0]
    assert lines[1].timestamp(nodes[1].ticks(0)) - lines[0].timestamp(nodes[0]
        .ticks(0)) == 5_000_000


def test_a_killed_program_has_offset_but_no_drift(tmp_path):
    _, files = trace_of_barriers(tmp_path, [(0, 0.0), (9_000_000, 1e-5)], 5, finalize=0)
    alignment = aligned(files)[1][1]
    assert (alignment.drift, alignment.barriers) == (0.0, 8)
    assert abs(alignment.offset_ns - 9_000_000) < 20_000


def test_programs_one_after_another_are_not_mixed_up(tmp_path):
    """Two programs of the same size in one step: the second's barriers have the same numbers as the
    first's."""
    nodes = [Node(tmp_path / f"n{i}.weir", f"n{i}", i * 1_000_000) for i in range(2)]
    for rank, node in enumerate(nodes):
        for program in range(2):
            process = node.writer.process(100 + program, rank, 2,
                last_ticks=node.ticks(90 * SECOND))
            process.events([sync(node.ticks((1 + 30 * program) * SECOND + i), i, 2)
                for i in range(4)])
        node.writer.close()
    _, alignments = aligned([TraceFile(node.path).scan() for node in nodes])
    assert alignments[1].barriers == 8
    assert abs(alignments[1].offset_ns - 1_000_000) <= 1


def test_nodes_reach_each_other_over_a_third(tmp_path):
    """n0 and n2 never met in a program; n1 met both."""
    nodes = [Node(tmp_path / f"n{i}.weir", f"n{i}", i * 1_000_000) for i in range(3)]
    for pid, (pair, size) in enumerate([((0, 1), 2), ((1, 2), 3)]):
        for rank, i in enumerate(pair):
            process = nodes[i].writer.process(pid, rank if pid == 0 else rank + 1, size)
            process.events([sync(nodes[i].ticks(SECOND * (1 + pid) + k * 1000), k, size)
                for k in range(3)])
    for node in nodes:
        node.writer.close()
    lines, alignments = aligned([TraceFile(node.path).scan() for node in nodes])
    assert [a.barriers for a in alignments] == [0, 3, 3]
    shown = [line.timestamp(node.ticks(5 * SECOND)) for node, line in zip(nodes, lines)]
    assert max(shown) - min(shown) <= 2


def test_active_time_of_two_nodes_needs_alignment(tmp_path):
    """Both write at the same true time; unaligned, the union would be twice as long."""
    step = tmp_path / "run" / "main"
    step.mkdir(parents=True)
    for i in range(2):
        node = Node(step / f"n{i}.weir", f"n{i}", i * 700_000_000)
        process = node.writer.process(1, i, 2, last_ticks=node.ticks(9 * SECOND))
        left = [sync(node.ticks(SECOND + k * 1000), k, 2) for k in range(8)]
        process.events([*left, event("write", node.ticks(2 * SECOND), node.ticks(SECOND // 2)
            - node.writer.created_ticks)])
        node.writer.close()
    report = build(tmp_path / "run")
    assert abs(report.steps[0].active_ns - SECOND // 2) < 10
    assert report.all.ns == pytest.approx(SECOND, abs=10)


@pytest.mark.parametrize(("ns_per_tick", "said"), [(0.4, None), (float("nan"), None), (1e-9, None),
    (0.9, "the header's is used")])
def test_a_line_comes_from_the_pairs_that_lie_furthest_apart(tmp_path, ns_per_tick, said):
    """The header's estimate is only asked where the pairs are too near, and where both contradict
    each other."""
    node = Node(tmp_path / "n.weir", "n")
    node.writer.process(1, 0, last_ticks=node.ticks(100 * SECOND))
    node.writer.ns_per_tick = ns_per_tick
    node.writer.close()
    line, problem = node_line(TraceFile(node.path))
    if said is None:
        assert problem is None
        assert abs(line.timestamp(node.ticks(50 * SECOND)) - BEGIN - 50 * SECOND) < 2
    else:
        assert said in str(problem)


def test_a_monotonic_trace_clock_is_in_ns_already(tmp_path):
    with TraceWriter(tmp_path / "n.weir", clock=2, created_ticks=10**12) as writer:
        writer.process(1, 0)
    line, problem = node_line(TraceFile(tmp_path / "n.weir"))
    assert (line.timestamp(10**12 + 5), problem) == (BEGIN + 5, None)


def test_a_trace_shorter_than_a_millisecond_uses_the_headers_estimate(tmp_path):
    with TraceWriter(tmp_path / "n.weir", ns_per_tick=0.5) as writer:
        writer.process(1, 0, last_ticks=writer.created_ticks + 1000,
            last_mono_ns=writer.created_mono_ns + 400)
    line, _ = node_line(TraceFile(tmp_path / "n.weir"))
    assert line.length(1000) == 500


def test_useless_calibration_is_said(tmp_path):
    with TraceWriter(tmp_path / "n.weir") as writer:
        writer.process(1, 0, last_ticks=writer.created_ticks + 10)
        writer.ns_per_tick = float("inf")
    line, problem = node_line(TraceFile(tmp_path / "n.weir"))
    assert "ticks are shown as ns" in str(problem)
    assert line.length(1000) == 1000


def test_nodes_that_meet_in_one_barrier_are_compared_with_one_node(tmp_path, monkeypatch):
    """As many comparisons of barriers as there are other nodes, not one for each pair."""
    from weir.analysis import alignment

    nodes, found = trace_of_barriers(tmp_path, [(at * 1000,) for at in range(12)], 7)
    asked = []

    class Counted(dict):
        def keys(self):
            asked.append(self)
            return super().keys()

    real = alignment._barriers
    monkeypatch.setattr(alignment, "_barriers", lambda *of: Counted(real(*of)))
    lines = tuple(node_line(file)[0] for file in found)
    _, alignments = align(tuple(found), lines, worlds_of(found))
    assert len(asked) == 2 * (len(nodes) - 1)
    assert all(one.barriers for one in alignments[1:])
