# SPDX-License-Identifier: Apache-2.0
"""File views of MPI-IO: what the trace has of each way to make a type is what the file shows; the
program and its types do not notice."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import decode
import numpy as np
import pytest
from weir_mpi import IMPLEMENTATIONS, Mpi

from weir.report.mpi_io.views import FileView, Run

PROGRAM = Path(__file__).parent / "programs" / "mpi_views.c"
RANKS, PERIODS = 4, 3
_BLOCKS = "0+4 64+8 144+4"
# Of rank 3, by hand: displacement, bytes of the elementary type, data, extent, blocks.
BY_HAND = {
    "contiguous": (3000, 4, 24, 24, "0+24"),
    "vector": (24, 1, 24, 192, "0+8*3/64"),
    "hvector": (24, 1, 12, 192, "0+4*3/64"),
    "indexed": (24, 1, 16, 192, _BLOCKS),
    "hindexed": (24, 1, 16, 192, _BLOCKS),
    "indexed_block": (24, 1, 24, 192, "0+8*2/64 144+8"),
    "hindexed_block": (24, 1, 24, 192, "0+8*2/64 144+8"),
    "struct": (24, 1, 15, 192, "0+4 64+8 144+3"),
    "subarray": (0, 4, 64, 256, "144+16*4/32"),
    "subarray_fortran": (0, 4, 64, 256, "144+16*4/32"),
    "subarray_3d": (16, 8, 384, 1536, "960+192*2/384"),
    "levels": (0, 4, 96, 384, "60+12*2/24*4/96"),
    "darray": (0, 2, 40, 176, "92+4*2/8 108+2 114+4*2/8 130+2 136+4*2/8 152+2 158+4*2/8 174+2"),
    "darray_fortran": (0, 2, 24, 126, "72+2*3/4*4/14"),
    "darray_none": (0, 2, 32, 176, "18+4*8/22"),
    "nested": (40, 1, 12, 192, "0+2 4+1 16+2 20+1 96+2 100+1 112+2 116+1"),
}


def views_of(report: dict) -> dict[str, dict[int, FileView]]:
    """The views of a report by the end of the file's name and by rank."""
    made: dict[str, dict[int, FileView]] = {}
    for one in report["views"]:
        runs = Run.all_of(" ".join(one.pop("runs")))
        del one["blocks"], one["rank_label"]
        name = Path(one["file"]).name.removeprefix("case_")
        made.setdefault(name, {})[one["rank"]] = FileView(**one, runs=runs)
    return made


@pytest.fixture(scope="module")
def cases(weir, tmp_path_factory):
    """``cases(mpi)``: the directory of the files, and the views by the report; run once with each.
    """

    @cache
    def of(name: str) -> tuple[Path, dict[str, dict[int, FileView]]]:
        return run_case(IMPLEMENTATIONS[name], weir, tmp_path_factory.mktemp(name))

    return lambda mpi: of(mpi.name)


def run_case(mpi: Mpi, weir, tmp_path: Path) -> tuple[Path, dict[str, dict[int, FileView]]]:
    program = mpi.cc(PROGRAM)
    run = tmp_path / "run"
    done = weir("trace", "-o", run, "--", *mpi.launch(RANKS, program), env=mpi.env, cwd=tmp_path,
        timeout=90).ok()
    assert done.stdout == "" and "leaked" not in done.stderr  # MPICH counts types at its end
    report = json.loads(weir("report", run, "--json").ok().stdout)
    return tmp_path, views_of(report)


def test_the_blocks_of_each_way_to_make_a_type_are_those_of_the_file(mpi, cases):
    directory, views = cases(mpi)
    assert set(views) == {*BY_HAND, "irregular"}
    for name, expected in BY_HAND.items():
        one = views[name][3]
        assert (one.displacement, one.etype_bytes, one.data_bytes, one.extent_bytes,
            " ".join(map(str, one.runs))) == expected, name
        assert (one.recorded, one.view) == ("all", 1)
        assert one.data_bytes == sum(run.length * run.blocks for run in one.runs)
    for name, by_rank in views.items():
        owner = np.frombuffer((directory / f"case_{name}").read_bytes(), np.uint8)
        edges = np.arange(len(owner) + 1)
        assert sorted(by_rank) == list(range(RANKS))
        for rank, one in by_rank.items():
            ends = one.displacement + PERIODS * one.extent_bytes
            seen, unknown = one.seen(edges) > 0, one.unrecorded(edges) > 0
            expected = owner == rank + 1
            known = ~unknown & (edges[:-1] < ends)
            assert (seen[known] == expected[known]).all(), (name, rank)
            assert known.any() and not seen[unknown].any()
            if one.recorded == "all":
                assert known[:ends].all() and expected.sum() == PERIODS * one.data_bytes
                spans = one.spans(0, ends, 10**6)
                assert sum(length for _, length in spans) == PERIODS * one.data_bytes
                assert all(expected[at : at + length].all() for at, length in spans)


def test_the_first_64_runs_of_an_irregular_type_are_recorded(mpi, cases):
    one = cases(mpi)[1]["irregular"][2]
    assert (one.recorded, len(one.runs), one.blocks) == ("first", 64, None)
    assert (one.data_bytes, one.extent_bytes) == (399, 4096)


MANY = r"""
#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype type;
  MPI_File file;
  for (int opening = 0; opening < 2; ++opening) {
    MPI_File_open(MPI_COMM_WORLD, "many", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 1; i <= 6; ++i) {
      MPI_Type_vector(3, 1, 1 + i, MPI_INT, &type);
      MPI_Type_commit(&type);
      MPI_File_set_view(file, rank * 1024, MPI_INT, type, "native", MPI_INFO_NULL);
      MPI_Type_free(&type);
    }
    MPI_File_close(&file);
  }
  MPI_Finalize();
}
"""


@pytest.mark.parametrize(("level", "expected"), [("trace", 8), ("detail", 8), ("summary", 0)])
def test_the_first_eight_views_of_a_file_are_recorded(mpi, preload_env, tmp_path, level, expected):
    env = preload_env(level=level)
    mpi.run(2, mpi.cc(MANY), env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    ranks = {one.number: one.rank for one in trace.processes.values()}
    found = [(ranks[process], *text.split("\n")[2:]) for (process, _), text in trace.names.items()
        if text.startswith("view\n")]
    strides = [4 * (2 + i % 6) for i in range(expected)]
    assert sorted(found) == [
        (rank, f"{i + 1}", f"{1024 * rank} 4 12 {2 * stride + 4} all 0+4*3/{stride}")
        for rank in range(2) for i, stride in enumerate(strides)
    ]


LARGE = r"""
#include <mpi.h>
#include <stdio.h>
static void viewed(const char *name, MPI_Datatype type) {
  MPI_File file;
  MPI_Type_commit(&type);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 24, MPI_BYTE, type, "native", MPI_INFO_NULL);
  MPI_File_close(&file);
  MPI_Type_free(&type);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Datatype type, parts[] = {MPI_INT, MPI_DOUBLE};
  MPI_Count lengths[] = {1, 2, 1}, at[] = {0, 16, 36}, bytes[] = {0, 64, 144}, ones[] = {1, 1};
  MPI_Count sizes[] = {8, 8}, part[] = {4, 4}, from[] = {4, 4}, global[] = {8, 11};
  int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, blocks[] = {4, 2}, grid[] = {2, 2};
  MPI_Type_contiguous_c(6, MPI_INT, &type), viewed("contiguous", type);
  MPI_Type_vector_c(3, 2, 16, MPI_INT, &type), viewed("vector", type);
  MPI_Type_create_hvector_c(3, 1, 64, MPI_INT, &type), viewed("hvector", type);
  MPI_Type_indexed_c(3, lengths, at, MPI_INT, &type), viewed("indexed", type);
  MPI_Type_create_hindexed_c(3, lengths, bytes, MPI_INT, &type), viewed("hindexed", type);
  MPI_Type_create_indexed_block_c(3, 2, at, MPI_INT, &type), viewed("indexed_block", type);
  MPI_Type_create_hindexed_block_c(3, 2, bytes, MPI_INT, &type), viewed("hindexed_block", type);
  MPI_Type_create_struct_c(2, ones, bytes, parts, &type), viewed("struct", type);
  MPI_Type_create_subarray_c(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &type);
  viewed("subarray", type);
  MPI_Type_create_darray_c(4, 3, 2, global, kinds, blocks, grid, MPI_ORDER_C, MPI_SHORT, &type);
  viewed("darray", type);
  MPI_Finalize();
}
"""
# ROMIO of MPICH 4.0 ends a program that gives it such a type.
NO_VIEW = """
int MPI_File_set_view(void *file, long long at, int etype, int type, const char *form, int info) {
  return 0;
}
"""


def test_types_with_counts_of_64_bits_are_decoded(mpi, weir, tmp_path):
    if mpi.name != "mpich":
        pytest.skip("Open MPI 4.1 has no types with counts of 64 bits")
    program = mpi.cc(LARGE, str(mpi.cc(NO_VIEW, "-shared", "-fPIC", name="libview.so")))
    run = tmp_path / "run"
    done = weir("trace", "-o", run, "--", *mpi.launch(1, program), cwd=tmp_path).ok()
    assert "leaked" not in done.stderr
    views = views_of(json.loads(weir("report", run, "--json").ok().stdout))
    blocks = {name: " ".join(map(str, views[name][0].runs)) for name in views}
    same = ("contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block",
        "hindexed_block", "subarray", "darray")
    assert blocks == {name: BY_HAND[name][-1] for name in same} | {"struct": "0+4 64+8"}
