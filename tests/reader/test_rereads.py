# SPDX-License-Identifier: Apache-2.0
"""What was read when, and how many different bytes: the pass over the records against a model that
goes read by read over sets of bytes."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from own_time import is_own
from weir.analysis.names import NameTable
from weir.analysis.step import read_step
from weir.report.flow.compute import NEVER
from weir.report.flow.rereads import Extent, extents, uses_between
from weir.trace import Step
from weir.trace._synthetic import UNKNOWN_OFFSET, TraceWriter, event
from weir.trace.ops import BELOW, ERROR, NESTED, ops

NAMES = ("/scratch/a", "/scratch/b", "pipe:[1]", "/dev/tty")
OPS = ("read", "pread", "fread", "pwrite", "fwrite", "open", "lseek", "fortran_read",
    "MPI_collective", "hdf5_read")
NODES, RANKS, LOST = 2, 3, len(NAMES) + 1
READS = {"read", "pread", "fread"}
one_record = st.fixed_dictionaries(
    {
        "op": st.sampled_from([name for name in OPS if name in {op.name for op in ops().values()}]),
        "node": st.integers(0, NODES - 1),
        "rank": st.integers(0, RANKS - 1),
        "thread": st.integers(1, 2),
        "file": st.integers(0, LOST),  # 0: of no file; the last one has no name
        "start": st.integers(0, 60),
        "size": st.integers(0, 9),
        "offset": st.integers(0, 40) | st.just(UNKNOWN_OFFSET),
        "flags": st.sampled_from([0, 0, 0, ERROR, BELOW, NESTED]),
    }
)


def read_back(directory: str, made: list[dict]):
    paths = []
    for node in range(NODES):
        paths.append(Path(directory) / f"node{node}.weir")
        with TraceWriter(paths[-1], f"node{node}", ns_per_tick=0.5) as writer:
            processes = [writer.process(100 + rank, rank, RANKS) for rank in range(RANKS)]
            for process in processes:
                for name in NAMES:
                    process.name(name)
                process.ids["/later"] = LOST + 1
            for one in made:
                if one["node"] == node:
                    at = writer.created_ticks + one["start"]
                    fields = {key: one[key] for key in ("file", "size", "offset", "flags")}
                    processes[one["rank"]].events(event(one["op"], at, 3, **fields),
                        thread=one["thread"])
    names = NameTable()
    return read_step(Step("main", Path(directory), None, None, tuple(paths)), names), names


def reads_of(made: list[dict], chosen: set[tuple[int, int]]) -> list[tuple[str, int, dict]]:
    """Name, rank and record of what counts; chosen: nodes and ranks."""
    found = []
    for one in made:
        if one["op"] in READS and one["size"] and one["file"] and not one["flags"] & ERROR and (
                one["node"], one["rank"]) in chosen:
            lost = f"(lost name {LOST} of process {100 + one['rank']} on node{one['node']})"
            found.append((lost if one["file"] == LOST else NAMES[one["file"] - 1], one["rank"],
                one))
    return found


ALL = {(node, rank) for node in range(NODES) for rank in range(RANKS)}
one_choice = st.sets(st.sampled_from(sorted(ALL))) | st.just(ALL)
SETTINGS = settings(max_examples=150)


def mask_of(data, chosen: set[tuple[int, int]]) -> np.ndarray:
    return data.member_mask(lambda member: (member.file, member.rank) in chosen)


def numbers_of(data) -> dict[tuple[int, int], int]:
    """By node and rank: what has the same rank on two nodes is of two programs."""
    return {(one.file, one.rank): one.number for one in data.members}


@SETTINGS
@given(st.lists(one_record, max_size=40), one_choice, st.sampled_from([1, 2, 5, 1 << 22]))
def test_different_bytes_are_those_of_sets_however_little_fits_into_memory(made, chosen, room):
    with tempfile.TemporaryDirectory() as directory:
        data, names = read_back(directory, made)
        found = extents(data, mask_of(data, chosen), names, room=room)
    total, places, of_name = defaultdict(int), defaultdict(set), defaultdict(set)
    numbers = numbers_of(data)
    for name, rank, one in reads_of(made, chosen):
        rank = numbers[one["node"], rank]
        if one["offset"] != UNKNOWN_OFFSET:
            total[name, rank] += one["size"]
            places[name, rank].update(range(one["offset"], one["offset"] + one["size"]))
            of_name[name] |= places[name, rank]
    assert {(names[name], rank): one for (name, rank), one in found.by_rank.items()} == {
        key: Extent(total[key], len(places[key])) for key in total}
    known = {name: sum(count for (of, _), count in total.items() if of == name) for name in of_name}
    assert {names[name]: one for name, one in found.by_name.items()} == {name: Extent(known[name],
        len(of_name[name])) for name in of_name}


CLASSES = {"R": ("read", "pread", "fread", "fortran_read"), "W": ("pwrite", "fwrite"),
    "OCM": ("open", "lseek")}


@SETTINGS
@given(
    st.lists(one_record, max_size=40), one_choice, st.dictionaries(st.sampled_from(NAMES),
        st.lists(st.integers(-2, 62), max_size=4), max_size=3),
    st.sampled_from(sorted(CLASSES)),
)  # fmt: skip
def test_uses_between_timestamps_are_those_of_a_walk_over_the_records(made, chosen, cuts, classes):
    with tempfile.TemporaryDirectory() as directory:
        data, names = read_back(directory, made)
        timestamps = {name: sorted(data.lines[0].timestamp((1 << 40) + at) for at in found)
            for name, found in cuts.items()}
        found = uses_between(data, mask_of(data, chosen), names,
            {names.number(name): at for name, at in timestamps.items()}, classes)
        sums: dict = {}
        for one in made:
            name = NAMES[one["file"] - 1] if 0 < one["file"] < LOST else ""
            if name not in timestamps or one["op"] not in CLASSES[classes] or (one["node"],
                    one["rank"]) not in chosen:
                continue
            line = data.lines[one["node"]]
            begun, ended = (line.timestamp((1 << 40) + one["start"] + at) for at in (0, 3))
            parts = sums.setdefault((name, numbers_of(data)[one["node"], one["rank"]]),
                [[0, 0, NEVER, -NEVER] for _ in range(len(timestamps[name]) + 1)])
            part = parts[sum(at < begun for at in timestamps[name])]
            part[1] += line.length(3) if is_own(one["op"], one["flags"]) else 0
            if classes != "OCM" and one["size"] and not one["flags"] & ERROR and one[
                    "op"] != "fortran_read":
                part[0] += one["size"]
                part[2:] = min(part[2], begun), max(part[3], ended)
    anything = {key: [tuple(part) for part in parts] for key, parts in sums.items()
        if any(part[0] or part[1] for part in parts)}
    assert {(names[name], rank): [tuple(part) for part in parts] for (name, rank), parts in found
        .items()} == anything


def test_more_ids_than_a_small_table_holds_and_lost_ones_far_out(tmp_path):
    """Ids of a file whose names were lost may be any number: they are looked up all the same."""
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(100, 0, 1)
        for number, file in enumerate((1, 4_000_000_000, 70_000)):
            process.events(event("pread", writer.created_ticks + 10 * number, 5, file=file,
                size=number + 1, offset=0))
    names = NameTable()
    data = read_step(Step("main", tmp_path, None, None, (tmp_path / "n.weir",)), names)
    found = extents(data, np.ones(1, bool), names)
    assert sorted((one.known, one.distinct) for one in found.by_rank.values()) == [(1, 1), (2, 2),
        (3, 3)]
