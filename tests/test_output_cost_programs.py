# SPDX-License-Identifier: Apache-2.0
"""What output costs in real programs, beside the timers that they have of their own: the writers of
`weir bench wrf`. A delay in each write makes output long beside what the machine does besides."""

from __future__ import annotations

import pytest
from wall_sums import split_exactly
from weir_fixtures import NATIVE_BUILD

from weir.report import build
from weir.report.output_cost.compute import PARTS, output_costs_of

pytestmark = [pytest.mark.mpi, pytest.mark.any_mpi]

RANKS, FRAMES, DOMAINS = 3, 2, 2
# Ranks that make calls on a file, and whether each of them does.
WRITERS = {"gather": 1, "pnetcdf": RANKS, "netcdf4": RANKS}


@pytest.mark.parametrize("writer", WRITERS)
def test_the_cost_of_output_is_what_the_program_measured(mpi, weir, tmp_path, writer):
    program = NATIVE_BUILD / "bench" / "wrf" / mpi.name / f"wrf-{writer}"
    if not program.exists():
        pytest.skip(f"{program} is not built: its library is packaged for Open MPI alone")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*.nc"\nstack = "delay:op=write:us=3000 | system"\n')
    options = f"scale=0.0005 steps={2 * FRAMES} every=2 directory={tmp_path}".split()
    done = weir(
        "trace", "--quiet", "--rules", rules, "-o", tmp_path / "run", "--",
        *mpi.launch(RANKS, program, *options), env=dict(mpi.env), cwd=tmp_path, timeout=90,
    ).ok()  # fmt: skip
    line = next(one for one in done.stdout.splitlines() if one.startswith("wrf: "))
    timers = {key: float(value) for key, value in (word.split("=") for word in line.split()[1:])}
    report = build(tmp_path / "run")
    split_exactly(report.steps[0])
    [found] = output_costs_of(report)
    for one in (*found.files, *found.variables, found.whole):
        assert sum(getattr(one, part) for part in PARTS) == one.elapsed_ns
    files = [one for one in found.files if f"/{writer}_d" in one.file]
    assert len(files) == FRAMES * DOMAINS and {one.ranks for one in files} == {WRITERS[writer]}
    # The timer is of the slowest rank of each frame, and ends where the last rank's output ends: it
    # has waits for other ranks in it.
    measured = timers["effective_s"]
    table = (found.whole.elapsed_ns + found.whole.waiting_ns) / 1e9
    assert 0.8 * measured <= table <= 1.2 * measured
    if writer == "gather":
        assert found.whole.gather_ns > 0 and found.whole.waited_ns > found.whole.elapsed_ns
