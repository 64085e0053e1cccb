# SPDX-License-Identifier: Apache-2.0
"""MPI-IO, variables and file systems of made-up runs on two nodes, with answers known in advance
and against a plain model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.report import build, report_json
from weir.report.file_systems.compute import UNKNOWN, Mount, Mounts, file_systems_of, mount_in
from weir.report.files.compute import files_of
from weir.report.mpi_io.compute import Gaps, _gaps_of, all_mpi_files, routine
from weir.report.mpi_io.table import mpi_io_tables
from weir.report.mpi_io.variables import all_variables
from weir.report.notes import notes
from weir.trace._synthetic import TraceWriter, event
from weir.trace.ops import ops

FILE, MIB = "/scratch/an/wrfout_d01", 1 << 20
LUSTRE = {"file_system": "198183888", "block_bytes": "4096", "stripe_bytes": str(MIB),
    "stripes": "16"}


def write_node(directory, number: int, ranks: range):
    """Each rank makes 2 collective writes of a stripe; the first rank of the node writes for all,
    and jumps once over a stripe."""
    with TraceWriter(directory / f"nid{number}.weir", f"nid{number}") as writer:
        for rank in ranks:
            process = writer.process(100 + rank, rank, 4)
            file, start = process.name(FILE), process.fields["start_ticks"]
            records = [event("MPI_File_open", start, 10, file=file, size=4)]
            if rank == ranks[0]:
                for key, value in LUSTRE.items():
                    process.name(f"layout\n{FILE}\n{key}\n{value}")
                process.name(f"hint given\n{FILE}\ncb_nodes\n8")
                process.name(f"hint\n{FILE}\ncb_nodes\n2")
                process.name("mount\n30 1 0:30 / / rw - ext4 /dev/vda rw")
                process.name("mount\n31 30 0:31 / /scratch\\040of\\040all rw shared:1 - tmpfs none "
                             "rw")
                process.name("mount\n32 30 0:32 / /scratch rw - lustre mds@o2ib:/scratch rw,flock")
                for i, at in enumerate((0, 1, 3, 4)):
                    records.append(event("pwrite", start + 20 + 10 * i, 5, file=file, size=MIB,
                        offset=(at + 8 * number) * MIB))
            records += [event("MPI_File_write_at_all", start + 15 + 50 * i, 50, file=file,
                size=MIB) for i in range(2)]
            variable = process.name(f"pnetcdf:{FILE}:T")
            records.append(event("library_put", start + 10, 200, file=variable, size=2 * MIB,
                layer=8))
            process.events(records)


@pytest.fixture
def report(tmp_path):
    step = tmp_path / "run" / "wrf"
    step.mkdir(parents=True)
    write_node(step, 0, range(2))
    write_node(step, 1, range(2, 4))
    return build(tmp_path / "run")


def test_aggregators_have_their_nodes_and_layout_comes_before_hints(report):
    (file,) = all_mpi_files(report)
    assert [(one.rank.rank, one.node, one.writes, one.written_bytes)
        for one in file.aggregators] == [(0, "nid0", 4, 4 * MIB), (2, "nid1", 4, 4 * MIB)]
    assert (file.ranks, file.stripes, file.stripe_bytes, file.stripe_source) == (4, 16, MIB,
        "lustre")
    assert file.hints == {"cb_nodes": "2"} and file.ignored == {"cb_nodes": "8"}
    writes = file.writes
    assert (writes.collective, writes.independent, writes.bytes, writes.ns,
        writes.busiest_ns) == (8, 0, 8 * MIB, 400, 100)
    assert writes.gaps == Gaps(gaps=2, skipped_bytes=2 * MIB, back=0, stripe_sized=8)
    assert (writes.system, writes.system_ranks) == (8, 2)


@pytest.mark.parametrize(("rank", "does"), [(2, "makes"), (3, "makes no")])
def test_of_one_rank_it_is_not_said_how_many_touch_the_file(report, tmp_path, rank, does):
    placement, _, access = mpi_io_tables(build(tmp_path / "run", rank=rank))
    assert list(placement.remarks) == [f"rank {rank} {does} requests to the system on the file; "
        "what other ranks do is not looked at; cb_nodes = 2"]
    assert access.remarks[0] == f"opened once by rank {rank}; file views set: 0"
    placement, _, access = mpi_io_tables(report)
    assert list(placement.remarks) == ["2 of 4 ranks touch the file, on 2 nodes; cb_nodes = 2"]
    assert access.remarks[0] == "opened once by 4 ranks; file views set: 0"


def test_what_was_asked_for_in_vain_and_many_small_calls_are_said(report, tmp_path):
    assert [one for one in notes(report) if "MPI-IO" in one] == [
        "step wrf: MPI-IO, wrfout_d01: the hint cb_nodes = 8 is not in force (cb_nodes = 2)"
    ]
    step = tmp_path / "small" / "s"
    step.mkdir(parents=True)
    with TraceWriter(step / "n.weir") as writer:
        for rank in range(2):
            process = writer.process(100 + rank, rank, 2)
            file, start = process.name(FILE), process.fields["start_ticks"]
            process.events([event("MPI_File_open", start, 1, file=file, size=2)])
            process.events([event("MPI_File_write_at", start + 2 + i, 1, file=file, size=8)
                for i in range(500)])
    assert [one for one in notes(build(tmp_path / "small")) if "MPI-IO" in one] == [
        "step s: MPI-IO, wrfout_d01: 1000 independent writes of 8 bytes on average, by 2 ranks: "
        "collective calls would make few large requests of them"
    ]


def test_variables_and_file_systems(report):
    (variable,) = all_variables(report)
    assert (variable.library, variable.file, variable.variable, variable.ranks) == ("pnetcdf", FILE,
        "T", 4)
    assert (variable.puts, variable.put_bytes, variable.put_ns, variable.busiest_ns) == (4, 8 * MIB,
        800, 200)
    (system,) = file_systems_of(report)
    assert system.mount == Mount("/scratch", "lustre", "mds@o2ib:/scratch")
    assert (system.nodes, system.files, system.calls, system.bytes_written) == (2, 1, 8, 8 * MIB)
    assert mount_in(report, "/scratch of all/x") == Mount("/scratch of all", "tmpfs", "none")


def test_no_total_has_calls_of_mpi_io_or_of_a_library(report):
    assert (report.all.calls, report.all.bytes, report.all.files) == (8, 8 * MIB, 1)
    assert report.active_ns == json.loads(json
        .dumps(report_json(report)))["total"]["active_s"] * 1e9
    assert [one.file for one in files_of(report)] == [FILE]


def test_every_data_access_is_of_one_direction_and_kind():
    kinds = {op.name: routine(op.name) for op in ops().values() if op.name.startswith("MPI_File_")}
    accesses = {name: kind for name, kind in kinds.items() if kind is not None}
    assert len(kinds) == 43 and len(accesses) == 28
    assert {name for name, kind in accesses.items() if kind.direction == "R"} == {n
        for n in accesses if "read" in n}
    assert sum(kind.is_collective for kind in accesses.values()) == 2 * 8
    assert sum(kind.is_shared for kind in accesses.values()) == 2 * 4
    assert sum(kind.is_nonblocking for kind in accesses.values()) == 2 * 5
    assert sum(kind.is_split for kind in accesses.values()) == 2 * 3


requests = st.lists(st.tuples(st.one_of(st.integers(0, 40), st.just(2**48 - 1)), st.integers(0, 8)),
    max_size=30)


@given(requests, st.integers(1, 8))
def test_gaps_are_those_of_a_plain_count(some, stripe):
    gaps = skipped = back = 0
    for (at, size), (following, _) in zip(some, some[1:]):
        if at == 2**48 - 1 or following == 2**48 - 1:
            continue
        gaps += following > at + size
        skipped += max(0, following - at - size)
        back += following < at + size
    offset, size = (np.array([one[i] for one in some], np.int64) for i in (0, 1))
    assert _gaps_of(offset, size, stripe) == Gaps(gaps, skipped, back,
        sum(one[1] == stripe for one in some))


words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)


@given(st.lists(words, max_size=6), words)
def test_a_file_lies_on_the_longest_mount_point_above_it(points, path):
    printed = ["/" + "/".join(point) for point in points]
    mounts = Mounts(f"mount\n{i} 1 0:{i} / {point} rw - kind{i} source rw"
        for i, point in enumerate(printed))
    name = "/" + "/".join([*path, "file"])
    above = [(len(point), i) for i, point in enumerate(printed) if point == "/"
        or name.startswith(point + "/")]
    found = mounts.of(name)
    assert found == (UNKNOWN if not above else Mount(printed[max(above)[1]], f"kind{max(above)[1]}",
        "source"))
    assert mounts.of("pipe:[3]") == UNKNOWN
