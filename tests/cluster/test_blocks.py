# SPDX-License-Identifier: Apache-2.0
"""The exact union of I/O intervals from parts: against a set of timestamps, and against the reader
that has all files at once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.analysis.active import active_time
from weir.analysis.clock import node_line
from weir.cluster import cluster as module
from weir.cluster.files import identity_of, opened
from weir.cluster.passes import Stretch, blocks_of, length_of
from weir.report import build
from weir.trace._synthetic import TraceWriter, event

SETTINGS = settings(max_examples=60)
FILES = ("/scratch/a", "pipe:[7]")
call = st.tuples(st.sampled_from(["read", "open", "fwrite", "MPI_wait"]), st.integers(0, 60),
    st.integers(0, 12), st.sampled_from([*FILES, "", "lost"]))


def write(path: Path, calls: list[tuple]) -> None:
    """Two calls a chunk, of one process; a lost name is an id of which the trace tells nothing."""
    with TraceWriter(path) as writer:
        process = writer.process(5, 0, 1)
        for name in FILES:
            process.name(name)
        process.ids["/later"] = 100
        for at in range(0, len(calls), 2):
            process.events(
                [
                    event(op, writer.created_ticks + start, length, file={"": 0, "lost": 99}
                        .get(name) if name not in FILES else process.name(name))
                    for op, start, length, name in calls[at : at + 2]
                ],
                thread=at + 1,
            )


@given(st.lists(st.lists(call, max_size=12), min_size=1, max_size=3),
    st.lists(st.integers(-5, 80), max_size=4), st.booleans())
@SETTINGS
def test_parts_add_up_to_the_timestamps_that_any_call_covers(of_files, cuts, all_names):
    covered, parts = set(), []
    with tempfile.TemporaryDirectory() as directory:
        for number, calls in enumerate(of_files):
            path = Path(directory) / f"{number}.weir"
            write(path, calls)
            file = opened(identity_of(path))
            line, _ = node_line(file)
            origin = int(line.timestamps(np.array([file.header.created_ticks], np.uint64))[0])
            chunks = np.flatnonzero(file.array("chunks")["kind"] == 3)
            stretches = [Stretch(identity_of(path), line, some, 2 * len(some))
                for some in (chunks[:2], chunks[2:])]
            parts += [blocks_of(one, all_names, origin + np.unique(np.array(cuts, np.int64)))
                for one in stretches]
            counted = [one for one in calls if one[0] != "MPI_wait"
                and (all_names or one[3] != FILES[1])]
            covered |= {at for _, start, length, _ in counted
                for at in range(start, start + length)}
        lengths = [length_of(list(window)) for window in zip(*(part[1:] for part in parts))]
    assert len(lengths) == len(set(cuts)) + 1
    assert sum(lengths) == len(covered)
    limits = [-1000, *sorted(set(cuts)), 1000]
    assert lengths == [len(covered & set(range(low, high)))
        for low, high in zip(limits, limits[1:])]


def test_many_stretches_and_windows_are_as_one(cluster, nodes_run, monkeypatch):
    monkeypatch.setattr(module, "SPLIT_FROM", 0)
    monkeypatch.setattr(module, "STRETCH_RECORDS", 100)
    monkeypatch.setattr(module, "WINDOW_RECORDS", 300)
    seen = 0
    for here, there in zip(build(nodes_run).steps, build(nodes_run, reader=cluster).steps):
        for all_names in (False, True):
            found = active_time(there.data.files, there.data.lines, None, all_names=all_names)
            assert found == active_time(here.data.files, here.data.lines, None, all_names=all_names)
            seen = max(seen, found.records)
    assert seen > 1000


@pytest.mark.parametrize("split_from", [0, module.SPLIT_FROM])
def test_masks_leave_processes_out(cluster, nodes_run, monkeypatch, split_from):
    monkeypatch.setattr(module, "SPLIT_FROM", split_from)
    here, there = (build(nodes_run, step="waits", reader=reader).steps[0].data
        for reader in (None, cluster))
    for chosen in (0, 1):
        masks = [np.arange(len(file.processes)) % 2 == chosen for file in here.files]
        found = active_time(there.files, there.lines, masks)
        assert found == active_time(here.files, here.lines, masks) and found.records
    nobody = [np.zeros(len(file.processes), bool) for file in here.files]
    assert active_time(there.files, there.lines, nobody) == active_time(here.files, here.lines,
        nobody)
