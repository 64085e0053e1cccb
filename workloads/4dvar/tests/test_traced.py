# SPDX-License-Identifier: Apache-2.0
"""Traced, the workload shows the transfer matrix of the reference, all layers, and one-byte
requests of the GRIB reader."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest
from decode import read_trace

pytestmark = pytest.mark.mpi
RANKS = 4
READS = {"read", "fread", "fgets", "fgetc", "fortran_read"}
WRITES = {"write", "fwrite", "fprintf", "fortran_write"}

# Row of the matrix: pattern of the file, then for each step who reads and who writes: 0, several
# (s), all (a) or none (-).
MATRIX = {
    "ICMSHweirINIT": ("ICMSHweirINIT", "0- 0- 0- 0- 0-"),
    "ICMGGweirINIUA": ("ICMGGweirINIUA", "0- -- 0- -- 0-"),
    "BGHR": ("ICMSHweirBGHR", "-- -- 0- -- 0-"),
    "BGHRUA": ("ICMGGweirBGHRUA", "-- -- 0- -- 0-"),
    "specwavein": ("specwavein", "0- -- 0- -- 0-"),
    "wam_subgrid": (r"wam_subgrid_\d", "0- -- 0- -- 0-"),
    "wavelet.cv": ("wavelet.cv", "-- 0- -- 0- --"),
    "traj00": ("traj00", "-- -0 -- 0- --"),
    "traj01": ("traj01", "-- -- -- -0 0-"),
    "ME<N>": (r"ME\d+", "-- -s -- ss --"),
    "trajspecL<N>": (r"trajspecL\d+", "-a a- -a a- --"),
    "trajgridL<N>": (r"trajgridL\d+", "-a a- -a a- --"),
    "ECMA": (r"ECMA\.\w+/\d+/\w+", "ss -- -- -- aa"),
    "CCMA": (r"CCMA/\d+/\w+", "-s ss ss ss ss"),
}
STEPS = ("traj0", "min0", "traj1", "min1", "traj2")


@pytest.fixture(scope="module")
def traced(traced_run):
    """Records of the ranks, by step: (rank, record)."""
    run = traced_run(RANKS)
    steps = {}
    for step in STEPS:
        trace = read_trace(run / step)
        ranked = ((trace.processes[r.process].rank, r) for r in trace.records)
        steps[step] = [(rank, r) for rank, r in ranked if rank >= 0]
    return steps


def who(ranks: set[int]) -> str:
    if not ranks:
        return "-"
    if ranks == {0}:
        return "0"
    return "a" if len(ranks) == RANKS else "s"


@pytest.mark.parametrize("name", MATRIX)
def test_the_transfer_matrix_is_that_of_the_reference(traced, name):
    pattern, expected = MATRIX[name]
    found = []
    for step in STEPS:
        done = defaultdict(set)
        for rank, record in traced[step]:
            if record.op in READS | WRITES and re.search(rf"/({pattern})$", record.file):
                done["r" if record.op in READS else "w"].add(rank)
        found.append(who(done["r"]) + who(done["w"]))
    assert " ".join(found) == expected


def test_all_layers_appear_in_each_step(traced):
    for step in STEPS:
        calls = Counter(r.op for rank, r in traced[step] if not r.below)
        for op in ("open", "close", "read", "write", "fopen", "fclose", "fread", "fwrite",
                "fortran_read", "fortran_write"):
            assert calls[op] > 0, f"{op} in {step}"


def test_the_grib_reader_asks_for_single_bytes(traced):
    sizes = [r.size for rank, r in traced["traj0"] if r.op == "fread"
        and r.file.endswith("/ICMGGweirINIUA")]
    assert sizes.count(1) > len(sizes) / 2 and max(sizes) > 10000


def test_definition_files_of_the_grib_library_appear_for_rank_0_alone(traced):
    assert {rank for rank, r in traced["traj0"] if r.file.endswith("/boot.def")} == {0}


def test_rank_0_makes_most_calls_in_each_step(traced):
    for step in STEPS:
        calls = Counter(rank for rank, r in traced[step] if not r.below)
        assert calls.most_common(1)[0][0] == 0, step


def test_the_log_is_unit_61(traced):
    units = {r.offset for _, r in traced["traj0"] if r.op == "fortran_write"
        and "NODE.001_01" in r.file}
    assert units == {61}
