# SPDX-License-Identifier: Apache-2.0
"""What output costs as a whole, on programs whose answer is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from wait_trace import WaitTrace

from weir.report import build, report_json
from weir.report.frame.kind import Options
from weir.report.frame.table import text_lines
from weir.report.output_cost.compute import PARTS, output_cost_of
from weir.report.registry import report_tables
from weir.report.waits.ready_made import fitting_rules, rules_of
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import event
from weir.trace.ops import NETCDF

SECOND = 10**8  # of the program: records of longer calls than 2**32 ns are rounded
FILE = "/scratch/wrfout_d01_2026-01-01_00:00:00"


def call(program: WaitTrace, rank: int, op: str, name: str, library: int, system: int) -> None:
    """A call of netCDF on rank: `library` ns of its own, then `system` ns in a write."""
    begun = program.now[rank]
    length = library + system
    program.compute(rank, library)
    program.io(rank, system, FILE, "pwrite")
    program.now[rank] = begun
    program._keep(
        rank, name, lambda at, n: event(op, at, length, file=n, size=4, layer=NETCDF), length
    )


def gather(program: WaitTrace) -> None:
    program.barrier(name="MPI_Gatherv")


def frame(program: WaitTrace, opens: bool = True) -> None:
    """Two variables: gather, packing of 0.1 s, 0.2 s in the library, 0.3 s in the system."""
    tenth = SECOND // 10
    if opens:
        call(program, 0, "library_create", FILE, tenth, tenth)
    for variable in ("T", "U"):
        gather(program)
        program.compute(0, tenth)
        call(program, 0, "library_put", f"netcdf:{FILE}:{variable}", 2 * tenth, 3 * tenth)
    if opens:
        call(program, 0, "library_close", FILE, 2 * tenth, 2 * tenth)


def cost(program: WaitTrace, directory: Path):
    found = output_cost_of(build(program.write(directory / "run" / "s")).steps[0])
    for one in (*found.files, *found.variables, found.whole):
        assert sum(getattr(one, part) for part in PARTS) == one.elapsed_ns
    return found


def tenths(one, *names: str) -> tuple[float, ...]:
    return tuple(round(10 * getattr(one, f"{name}_ns") / SECOND, 4) for name in names)


def test_a_serial_gather_is_output_from_create_to_close(tmp_path):
    program = WaitTrace(3, cost=SECOND // 10)
    for _ in range(2):
        for rank in range(3):
            program.compute(rank, 10 * SECOND)
        frame(program)
        program.barrier()
    found = cost(program, tmp_path)
    [file] = found.files
    assert (file.file, file.rank, file.ranks, file.times) == (FILE, 0, 1, 2)
    whole = tenths(file, "elapsed", "communication", "library", "system", "packing")
    assert whole == (40, 4, 14, 18, 4)  # 2 + 2 x 7 + 4 tenths a frame
    # Two ranks wait for each create, for one put, and in the barrier for the other put and close.
    assert tenths(file, "waited") == (2 * 2 * (2 + 6 + 6 + 4),)
    names = {one.variable: one for one in found.variables}
    assert set(names) == {"T", "U", "(the file)"}
    assert tenths(names["T"], "elapsed", "communication", "packing") == (14, 2, 2)
    assert tenths(names["(the file)"], "elapsed", "library", "system") == (12, 6, 6)


def test_a_gather_before_a_file_that_stays_open_belongs_to_its_output(tmp_path):
    program = WaitTrace(2, cost=SECOND // 10)
    for _ in range(3):
        for rank in range(2):
            program.compute(rank, 10 * SECOND)
        frame(program, opens=False)
        program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.times == 3
    assert tenths(file, "elapsed", "communication") == (3 * 14, 3 * 2)


def test_computing_between_small_writes_is_not_output(tmp_path):
    program = WaitTrace(2)
    for _ in range(5):
        program.compute(0, SECOND)
        program.io(0, SECOND // 100, "/scratch/log")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.times == 5 and file.elapsed_ns == file.system_ns == SECOND // 20


def test_the_table_names_what_is_in_it_and_fits_a_screen(tmp_path):
    program = WaitTrace(3, cost=SECOND // 10)
    frame(program)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    lines = [line for t in report_tables(report, Options(("output-cost",)))
        for line in text_lines(t)]
    assert "Cost of output of s" in lines and "Cost of output of s by variable" in lines
    assert max(len(line.replace(FILE, "").replace(FILE[9:], "")) for line in lines) <= 80
    [row] = report_json(report)["output_cost"]
    assert row["file"] == FILE and row["elapsed_s"] == 0.2


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("wrf", "wrfout_d01_2026-01-01_00:00:00"),
        ("wrf", "wrfrst_d02_2026-01-01_00_00_00"),
        ("cm1", "cm1out_000003.nc"),
        ("mpas", "history.2026-01-01_00.00.00.nc"),
        ("icon", "NWP_LAM_DOM01_ML_0003.nc"),
        ("icon", "exp_atm_2d_ML_20260101T000000Z.nc"),
        ("nemo", "ORCA2_5d_20260101_20260131_grid_T.nc"),
        ("nemo", "ORCA2_00000120_restart_0003.nc"),
        (None, "output.dat"),
    ],
)
def test_rules_of_phases_are_chosen_by_the_names_of_files(tmp_path, model, path):
    program = WaitTrace(2)
    program.io(0, SECOND, f"/scratch/{path}", "open")
    program.io(0, SECOND, f"/scratch/{path}")
    program.io(0, SECOND, f"/scratch/{path}", "close")
    program.barrier()
    [step] = build(program.write(tmp_path / "run" / "s")).steps
    rules = fitting_rules(step.data, step.names)
    assert rules == (() if model is None else rules_of(model))
    found = synchronisation_of(step)
    assert found.spans.source == ("barriers" if model is None else "rules")
    if model is not None:
        assert [(one.name[:5], one.wall_ns) for one in found.phases] == [("write", 3 * SECOND)]


def test_marks_of_the_program_come_before_rules_that_come_with_weir(tmp_path):
    program = WaitTrace(2)
    program.phase(0, "output", True)
    program.io(0, SECOND, FILE, "open")
    program.io(0, SECOND, FILE)
    program.phase(0, "output", False)
    program.barrier()
    [step] = build(program.write(tmp_path / "run" / "s")).steps
    assert synchronisation_of(step).spans.source == "marks"
