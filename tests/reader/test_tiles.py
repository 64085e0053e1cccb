# SPDX-License-Identifier: Apache-2.0
"""Tiles against an oracle that walks over the records one by one in Python integers, and against
the tables."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from own_time import is_own
from weir.analysis.clock import Line
from weir.analysis.tiles import HIDDEN_GROUP, NOWHERE, Grid, coarser, grid_over, tiles
from weir.report import build
from weir.report.timeline.compute import MOST_ROWS, timeline
from weir.report.timeline.page import span_of
from weir.trace import TraceFile
from weir.trace._abi import TILE
from weir.trace._synthetic import TraceWriter, event, records
from weir.trace.ops import BELOW, ERROR, NESTED, op_named, ops

OPS = ("read", "pwrite", "fread", "fwrite", "open", "fclose", "lseek", "fortran_write", "MPI_Init",
    "MPI_collective", "MPI_wait", "MPI_start_collective", "MPI_awaited")
WAITS = ("MPI_collective", "MPI_wait")
NAMES = ("/scratch/a", "/scratch/b", "pipe:[1]", "/dev/tty", "/dev/shm/c")
KIND = {"R": 0, "W": 1}
one_record = st.tuples(
    st.sampled_from(OPS),
    st.integers(0, 400),  # ticks since the step began
    st.integers(0, 90) | st.just(1000),
    st.integers(0, len(NAMES)),
    st.integers(0, 5000) | st.just(2**38),  # of MPI: a routine
    st.sampled_from([0, 0, 0, BELOW, NESTED, BELOW | NESTED, ERROR]),
    st.integers(0, 2),  # process
)


def nothing() -> dict[str, list[int]]:
    return {"busy_ns": [0, 0, 0], "calls": [0, 0, 0], "bytes": [0, 0], "waiting_ns": 0}


def expected(made, line: Line, grid: Grid, wanted, all_names: bool,
        has_waits: bool = False) -> list[dict]:
    """The tiles of one row; wanted(process, name) says which records belong to it."""
    out = [nothing() for _ in range(grid.bins)]
    for name, start, length, file, size, flags, process in made:
        op = op_named(name)
        is_file = file == 0 or NAMES[file - 1].startswith(("/scratch", "/dev/shm"))
        if name in WAITS and has_waits and not flags & NESTED and wanted(process, 0):
            begin, end = (line.timestamp((1 << 40) + t) - grid.origin_ns
                for t in (start, start + length))
            for slice_, tile in enumerate(out):
                tile["waiting_ns"] += max(0, min(end, slice_ + 1 << grid.shift)
                    - max(begin, slice_ << grid.shift))
        if op.op_class == "X" or not (is_file or all_names) or not wanted(process, file):
            continue
        kind = KIND.get(op.op_class, 2)
        begin, end = (line.timestamp((1 << 40) + t) - grid.origin_ns
            for t in (start, start + length))
        moved = size if kind < 2 and op.layer in (1, 2) and not flags & ERROR else 0
        if 0 <= begin >> grid.shift < grid.bins and not flags & BELOW:
            out[begin >> grid.shift]["calls"][kind] += 1
        for slice_, tile in enumerate(out):
            low, high = slice_ << grid.shift, slice_ + 1 << grid.shift
            a, b = max(begin, low), min(end, high)
            if b > a:
                if is_own(name, flags):
                    tile["busy_ns"][kind] += b - a
                if moved:
                    tile["bytes"][kind] += moved * (b - begin) // (end - begin) - moved * (a
                        - begin) // (end - begin)
            elif begin == end and low <= begin < high and moved:
                tile["bytes"][kind] += moved
    return out


def as_lists(row: np.ndarray) -> list[dict]:
    return [{name: tile[name].tolist() for name in TILE.names} for tile in row]


def write(path: Path, made) -> None:
    with TraceWriter(path) as writer:
        ranks = [writer.process(100 + i, i, 3) for i in range(3)]
        for process in ranks:
            for name in NAMES:
                process.name(name)
        for name, start, length, file, size, flags, process in made:
            error = 5 if flags & ERROR else 0
            made_one = event(name, writer.created_ticks + start, length, file=file, size=size,
                flags=flags, error=error)
            ranks[process].events(made_one, thread=1 + start % 2)


@settings(max_examples=60)
@given(
    st.lists(one_record, max_size=30),
    st.integers(-100, 300),
    st.integers(0, 7),
    st.integers(1, 20),
    st.integers(300, 3000).map(lambda n: Fraction(n, 1000)),
    st.booleans(),
    st.integers(1, 3),
)
def test_tiles_are_those_of_the_oracle(made, origin, shift, bins, slope, all_names, threads):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "n.weir"
        write(path, made)
        file = TraceFile(path)
        line = Line(1 << 40, 10**18, round(slope * 2**48))
        grid = Grid(10**18 + origin, shift, bins)
        group = {text: i % 2 for i, text in enumerate(NAMES)} | {NAMES[1]: HIDDEN_GROUP}
        chunks = TraceFile(path).scan().array("chunks").tobytes()
        by_row, by_group = tiles(
            (file,), (line,), [np.array([1, NOWHERE, 0], np.uint32)], grid, rows=2, groups=2,
            all_names=all_names, threads=threads,
            groups_of=[np.array([group[text] for text in file.texts], np.uint8)],
        )  # fmt: skip
        assert file.find_times().array("chunks").tobytes() == chunks

        def group_of(file: int) -> int:
            return group[NAMES[file - 1]] if file else 0

        for row, process in ((0, 2), (1, 0)):
            wanted = expected(made, line, grid, lambda p, f: p == process
                and group_of(f) != HIDDEN_GROUP, all_names, True)
            assert as_lists(by_row[row]) == wanted
        for number in range(2):
            wanted = expected(made, line, grid, lambda p, f: p != 1 and group_of(f) == number,
                all_names)
            assert as_lists(by_group[number]) == wanted


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 33), st.integers(0, 2**32))
def test_coarser_tiles_have_the_same_sums(rows, bins, seed):
    random = np.random.default_rng(seed)
    made = np.zeros((rows, bins), TILE)
    for name in TILE.names:
        made[name] = random.integers(0, 1000, made[name].shape)
    half = coarser(made)
    assert half.shape == (rows, -(-bins // 2))
    for name in TILE.names:
        by_slice = made[name].reshape(rows, bins, -1)
        pairs = np.pad(by_slice, ((0, 0), (0, bins % 2), (0, 0))).reshape(rows, -1, 2,
            by_slice.shape[2])
        assert np.array_equal(half[name].reshape(rows, -1, by_slice.shape[2]), pairs.sum(axis=2))


@given(st.integers(0, 10**17), st.integers(32, 1 << 16))
def test_a_grid_is_the_finest_that_holds_all(length, most):
    grid = grid_over(5, 5 + length, most)
    assert grid.bins <= most and grid.bins << grid.shift > length
    assert grid.shift == 0 or (length >> grid.shift - 1) + 1 > most


def test_more_slices_than_possible_are_refused():
    with pytest.raises(ValueError, match="slices"):
        grid_over(0, 1, 1 << 20)


@pytest.fixture
def two_steps(tmp_path) -> Path:
    """Two steps, two ranks and a process that is none; reads, writes, other calls, a pipe."""
    for number, step in enumerate(("traj0", "min0")):
        (tmp_path / step).mkdir()
        with TraceWriter(tmp_path / step / "n.weir", created_realtime_ns=10**18 + number
                * 10**12) as writer:
            for rank in (-1, 0, 1):
                process = writer.process(200 + rank, rank, 2)
                names = [process.name(text) for text in NAMES]
                count = 400
                starts = writer.created_ticks + np.arange(count) * 1_000_000 + rank * 333
                kinds = np.resize([op_named(one).value for one in OPS[:7]], count)
                process.events(records(kinds, starts, 250_000 + rank * 1000,
                    file=np.resize(names, count), size=1000))
    return tmp_path


def test_all_tiles_together_are_the_totals_of_the_tables(two_steps):
    report = build(two_steps)
    made = timeline([span_of(step) for step in report.steps])
    assert [lane.label for lane in made.lanes] == ["0", "1", "others"]
    assert [one.step for one in made.segments] == ["traj0", "min0"]
    for tile in (made.by_lane, made.by_group, made.coarser().by_lane):
        assert int(tile["calls"].sum()) == report.all.calls
        assert int(tile["bytes"].sum()) == report.all.bytes
        assert int(tile["busy_ns"].sum()) == report.all.ns
    of_rank1 = sum(step.by_rank[1].bytes for step in report.steps)
    assert int(made.by_lane["bytes"][1].sum()) == of_rank1


@pytest.mark.parametrize("all_names", [False, True])
def test_pipes_and_system_files_of_a_real_trace_are_in_no_tile(weir, tmp_path, all_names):
    """A recorder numbers names that are no files apart from files."""
    (tmp_path / "in").write_bytes(bytes(300_000))
    weir("trace", "-q", "-o", tmp_path / "run", "--", "sh", "-c",
        "cat in /etc/passwd | cat | cat > out", cwd=tmp_path).ok()
    report = build(tmp_path / "run", all=all_names)
    made = timeline([span_of(step) for step in report.steps], all_names=all_names)
    assert report.all.bytes == int(made.by_lane["bytes"].sum())
    assert (report.all.bytes > 700_000) == all_names
    assert int(made.by_lane["calls"].sum()) == int(made.by_group["calls"].sum()) == report.all.calls


def test_each_step_has_its_own_stretch_of_the_axis(two_steps):
    report = build(two_steps)
    made = timeline([span_of(step) for step in report.steps])
    seam = made.segments[1].from_ns >> made.shift
    assert int(made.by_lane["calls"][:, :seam].sum()) == report.steps[0].all.calls
    assert int(made.by_lane["calls"][:, seam:].sum()) == report.steps[1].all.calls


def test_one_rank_alone(two_steps):
    report = build(two_steps, rank=1)
    made = timeline([span_of(step) for step in report.steps])
    assert [lane.label for lane in made.lanes] == ["1"]
    assert int(made.by_lane["calls"].sum()) == report.all.calls


def test_many_ranks_share_lanes(tmp_path):
    ranks = 3 * MOST_ROWS
    with TraceWriter(tmp_path / "n.weir") as writer:
        for rank in range(ranks):
            writer.process(1000 + rank, rank,
                ranks).events(event("read", writer.created_ticks + rank, 10, size=rank))
    report = build(tmp_path)
    made = timeline([span_of(step) for step in report.steps], most_tiles=1 << 18)
    assert len(made.lanes) == MOST_ROWS and made.lanes[1].label == "3-5" and made.lanes[
        1].ranks == 3
    assert made.by_lane["bytes"][1].sum() == 3 + 4 + 5
    assert made.by_lane.size <= 1 << 18


def layout_of_ranks(directory, ranks: int, node_of, nodes: int, steps: int = 1):
    """The timeline's layout; node_of: of a step and a rank."""
    for step in range(steps):
        (directory / f"s{step}").mkdir()
        for node in range(nodes):
            with TraceWriter(directory / f"s{step}" / f"{node}.weir", f"n{node:04}") as writer:
                for rank in range(ranks):
                    if node_of(step, rank) == node:
                        writer.process(1000 + rank, rank, ranks).events(
                            event("read", writer.created_ticks, 10, size=1 + rank))
    made = timeline([span_of(step) for step in build(directory).steps], most_tiles=1 << 18)
    return made


@pytest.mark.parametrize("node_of", [lambda _, rank: rank // 8, lambda _, rank: rank % 80])
def test_lanes_of_many_ranks_are_of_one_node(tmp_path, node_of):
    made = layout_of_ranks(tmp_path, 640, node_of, 80)
    layout = made.layout
    assert len(layout.lanes) <= MOST_ROWS and len(layout.cells) == len(layout.lanes)
    for lane, place in layout.cells.tolist():
        assert {f"n{node_of(0, rank):04}" for rank in layout.lanes[lane].of} == set(
            layout.places[place].nodes)
    assert sorted(rank for lane in layout.lanes for rank in lane.of) == list(range(640))
    assert [place.ranks for place in layout.places] == [8] * 80
    moved = made.by_place()["bytes"].sum(axis=(1, 2)).tolist()
    assert moved == [sum(1 + rank for rank in range(640) if node_of(0, rank) == node)
        for node in range(80)]


def test_ranks_on_other_nodes_in_each_step_have_one_lane(tmp_path):
    made = layout_of_ranks(tmp_path, 6, lambda step, rank: (rank + step) % 3, 3, steps=2)
    assert [lane.label for lane in made.lanes] == list("012345")
    assert len(made.layout.cells) == 12
    assert made.by_lane["bytes"].sum(axis=(1, 2)).tolist() == [2 * (1 + rank) for rank in range(6)]
    assert made.by_place()["bytes"].sum(axis=(1, 2)).tolist() == [(1 + 4) + (3 + 6),
        (2 + 5) + (1 + 4), (3 + 6) + (2 + 5)]


def test_nodes_beyond_the_picture_share_a_row(tmp_path):
    made = layout_of_ranks(tmp_path, MOST_ROWS + 88, lambda _, rank: rank, MOST_ROWS + 88)
    assert len(made.layout.places) == (MOST_ROWS + 88) // 2
    assert made.layout.places[1].label == "n0002 - n0003" and made.lanes[1].label == "2-3"


def test_every_operation_has_its_kind_by_its_class(tmp_path):
    used = [op for op in ops().values() if op.op_class in "RWOCM" and op.layer in (1, 2, 3, 4)]
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(100, 0, 1)
        kinds = np.array([op.value for op in used])
        process.events(records(kinds, writer.created_ticks + 10 * np.arange(len(used)), 5, size=3))
    report = build(tmp_path)
    made = timeline([span_of(step) for step in report.steps])
    wanted = [sum(op.op_class == code for op in used) for code in "RW"]
    calls = made.by_lane["calls"].sum(axis=(0, 1)).tolist()
    assert calls == [*wanted, len(used) - sum(wanted)]


@pytest.mark.parametrize(("bins", "shift"), [(1000, 20), (1 << 18, 12)],
    ids=["copies of all tiles", "rows of its own for each thread"])
def test_tiles_do_not_depend_on_threads(tmp_path, bins, shift):
    random = np.random.default_rng(3)
    with TraceWriter(tmp_path / "n.weir") as writer:
        for rank in range(4):
            process = writer.process(100 + rank, rank, 4)
            for _ in range(rank + 2):
                names = [process.name(text) for text in NAMES]
                kinds = np.array([op_named(one).value for one in OPS])[random.integers(0, len(OPS),
                    100)]
                starts = writer.created_ticks + np.sort(random.integers(0, 10**9, 100))
                made = records(kinds, starts, random.integers(0, 10**7, 100),
                    file=np.resize(names, 100), size=random.integers(0, 1 << 30, 100))
                process.events(made, thread=rank, chunk_bytes=4096)
    files = [TraceFile(tmp_path / "n.weir") for _ in range(4)]
    made = [
        tiles((file,), (Line(1 << 40, 10**18, 1 << 48),), [np.arange(4)], Grid(10**18, shift, bins),
            rows=4, threads=threads)
        for file, threads in zip(files, (1, 2, 5))
    ]
    assert made[0][0]["busy_ns"].any(axis=(1, 2)).all() and made[0][1]["bytes"].any()
    for by_row, by_group in made[1:]:
        assert by_row.tobytes() == made[0][0].tobytes() and by_group.tobytes(
            ) == made[0][1].tobytes()
    chunks = files[3].scan().array("chunks").tobytes()
    # the pass has found their times, too
    assert all(file.array("chunks").tobytes() == chunks for file in files[:3])
