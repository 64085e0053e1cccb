# SPDX-License-Identifier: Apache-2.0
"""Findings of runs with known calls: each is found from its limits on, and a healthy program has
none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from wait_trace import WaitTrace

from weir.report import build
from weir.report.findings.registry import FINDINGS, findings_of

WRITES = "import os, sys; f = open(sys.argv[1], 'wb', 0)\nfor _ in range({0}): f.write(bytes({1}))"
DOCS = Path(__file__).parents[4] / "docs"


@pytest.fixture
def findings(weir, tmp_path, tmp_run):
    """Names and sentences of a run whose steps make (writes, bytes of each)."""

    def found(*steps: tuple[int, int]) -> dict[str, str]:
        for number, (count, size) in enumerate(steps):
            program = WRITES.format(count, size)
            command = [sys.executable, "-c", program, tmp_path / f"{number}.dat"]
            weir("trace", "-o", tmp_run, "--step", f"s{number}", "--", *command).ok()
        report = json.loads(weir("report", tmp_run, "--json").ok().stdout)
        return {one["name"]: one["sentence"] for one in report["findings"]}

    return found


def test_a_healthy_program_has_none(findings):
    assert findings((20, 1 << 20)) == {}


def test_requests_are_small_from_a_number_on(findings):
    assert findings((900, 100)) == {}


def test_many_small_requests_are_found(findings, weir, tmp_run):
    assert list(found := findings((2000, 100))) == ["small-requests"]
    assert found["small-requests"].endswith("reads and writes ask for less than 4 KiB.")
    screen = " ".join(weir("report", tmp_run).ok().stdout.split())
    assert found["small-requests"] in screen, "the overview says it in other words"


BLOCKS = """import os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for at in range(0, {0} << 16, 1 << 16):
    for half in (0, 1 << 15):
        os.pread(f, 1 << 16, at)
        os.pwrite(f, bytes(1 << 16), at)
"""


@pytest.mark.parametrize("blocks", [4, 40])
def test_a_file_that_is_read_back_block_by_block_is_found(weir, tmp_path, tmp_run, blocks):
    command = [sys.executable, "-c", BLOCKS.format(blocks), tmp_path / "out.nc"]
    weir("trace", "-o", tmp_run, "--", *command).ok()
    found = json.loads(weir("report", tmp_run, "--json").ok().stdout)["findings"]
    names = {one["name"]: one["sentence"] for one in found}
    assert ("read-modify-write" in names) == (blocks == 40)
    if blocks == 40:
        sentence = names["read-modify-write"]
        assert "out.nc: 5.24 MB are written and 2.62 MB read back for 2.62 MB of files" in sentence
        assert "159 changes" in sentence


def test_a_step_with_most_of_the_time_is_found(findings):
    found = findings((5, 10), (800, 1 << 16), (5, 10))
    assert found.keys() == {"uneven-steps"}
    assert found["uneven-steps"].startswith("Step s1 has ")


def test_a_rank_with_most_of_the_time_is_found(weir, mpi, tmp_path, tmp_run):
    program = mpi.cc(
        r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static char bytes[1 << 20];
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  char name[4096];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "%s.%d", argv[1], rank);
  const int fd = open(name, O_WRONLY | O_CREAT, 0644);
  for (int i = 0; i < (rank == 1 ? 64 : 1); ++i)
    if (write(fd, bytes, sizeof bytes) < 0) return 1;
  close(fd);
  return MPI_Finalize();
}
""",
        name="uneven",
    )
    weir("trace", "-o", tmp_run, "--", *mpi.launch(3, program, tmp_path / "out"), env=mpi.env).ok()
    found = json.loads(weir("report", tmp_run, "--json").ok().stdout)["findings"]
    assert [one["name"] for one in found] == ["uneven-ranks"]
    assert found[0]["sentence"].startswith("Rank 1 spends ")


def test_a_rank_with_most_of_next_to_nothing_is_not(tmp_path):
    program = WaitTrace(2)
    program.io(1, 1000)
    for rank in (0, 1):
        program.compute(rank, 10**9)
    report = build(program.write(tmp_path / "run" / "s"))
    assert "uneven-ranks" not in dict(findings_of(report))


def test_each_is_declared_whole():
    assert len({one.name for one in FINDINGS}) == len(FINDINGS)
    for one in FINDINGS:
        assert one.asks.endswith("?") and (DOCS / one.page).exists() and one.limits
