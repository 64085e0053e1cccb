# SPDX-License-Identifier: Apache-2.0
"""What output costs as a whole, on programs whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from wait_trace import WaitTrace

from weir.report import build, report_json
from weir.report.files.groups import file_groups
from weir.report.frame.amounts import plain
from weir.report.frame.kind import Options
from weir.report.frame.table import text_lines
from weir.report.notes import notes
from weir.report.output_cost.compute import PARTS, output_costs_of
from weir.report.registry import report_tables
from weir.report.sentences import sentences
from weir.report.waits.ready_made import fitting_rules, rules_of
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import TraceWriter, event
from weir.trace.ops import NETCDF

SECOND = 10**8  # of the program: records of longer calls than 2**32 ns are rounded
TENTH = SECOND // 10
BYTES = 4 << 20  # of a variable
FILE = "/scratch/wrfout_d01_2026-01-01_00:00:00"


LINE = 60  # bytes


def call(program: WaitTrace, rank: int, op: str, name: str, library: int, system: int,
        size: int = 0) -> None:
    """A call of netCDF on rank: `library` ns of its own, then `system` ns in a write."""
    begun = program.now[rank]
    length = library + system
    program.compute(rank, library)
    if system:
        program.io(rank, system, FILE, "pwrite")
    program.now[rank] = begun
    program._keep(
        rank, name, lambda at, n: event(op, at, length, file=n, size=size, layer=NETCDF), length
    )


def put(program: WaitTrace, variable: str, rank: int = 0) -> None:
    call(program, rank, "library_put", f"netcdf:{FILE}:{variable}", 2 * TENTH, 3 * TENTH, BYTES)


def gather(program: WaitTrace, size: int = BYTES) -> None:
    program.gather(0, size=size // program.ranks)


def frame(program: WaitTrace, opens: bool = True) -> None:
    """Two variables: gather, packing of 0.1 s, 0.2 s in the library, 0.3 s in the system."""
    if opens:
        call(program, 0, "library_create", FILE, TENTH, TENTH)
    for variable in ("T", "U"):
        gather(program)
        program.compute(0, TENTH)
        put(program, variable)
    if opens:
        call(program, 0, "library_close", FILE, 2 * TENTH, 2 * TENTH)


def cost(program: WaitTrace, directory: Path):
    [found] = output_costs_of(build(program.write(directory / "run" / "s")))
    for one in (*found.files, *found.variables, found.whole):
        assert sum(getattr(one, part) for part in PARTS) == one.elapsed_ns
    assert found.whole.all_ns == sum(one.all_ns for one in found.files)
    return found


def tenths(one, *names: str) -> tuple[float, ...]:
    return tuple(round(10 * getattr(one, f"{name}_ns") / SECOND, 4) for name in names)


def test_a_serial_gather_is_output_from_create_to_close(tmp_path):
    program = WaitTrace(3, cost=TENTH)
    for _ in range(2):
        for rank in range(3):
            program.compute(rank, 10 * SECOND)
        frame(program)
        program.barrier()
    found = cost(program, tmp_path)
    [file] = found.files
    assert (file.file, file.rank.label, file.ranks, file.calls) == (FILE, "0", 1, 8)
    whole = tenths(file, "elapsed", "gather", "library", "system", "packing", "mpi")
    assert whole == (40, 4, 14, 18, 4, 0)  # 2 + 2 x 7 + 4 tenths a frame
    # Two ranks wait for each create, for one put, and in the barrier for the other put and close.
    assert tenths(file, "waited") == (2 * 2 * (2 + 6 + 6 + 4),)
    names = {one.variable: one for one in found.variables}
    assert set(names) == {"T", "U", "(the file)"}
    assert tenths(names["T"], "elapsed", "gather", "packing") == (14, 2, 2)
    assert tenths(names["(the file)"], "elapsed", "library", "system") == (12, 6, 6)


def test_a_gather_before_a_file_that_stays_open_belongs_to_its_output(tmp_path):
    program = WaitTrace(2, cost=TENTH)
    for _ in range(3):
        for rank in range(2):
            program.compute(rank, 10 * SECOND)
        frame(program, opens=False)
        program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "gather", "packing") == (3 * 14, 3 * 2, 3 * 2)


@pytest.mark.parametrize("between_ns", [20_000, 3_000_000, 50_000_000])
def test_a_log_costs_its_calls_alone(tmp_path, between_ns):
    program = WaitTrace(2)
    for _ in range(50):
        program.compute(0, between_ns)
        program.io(0, LINE, "/scratch/log")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.calls == 50 and file.elapsed_ns == file.system_ns == 50 * LINE


@pytest.mark.parametrize("size", [LINE, 8192])
def test_answers_of_workers_are_not_gathered_for_the_line_that_tells_of_them(tmp_path, size):
    program = WaitTrace(3, cost=1000)
    for turn in range(6):
        worker = 1 + turn % 2
        program.compute(worker, TENTH)
        program.message(worker, 0, size=size)
        program.io(0, LINE, "/scratch/log")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.elapsed_ns == file.system_ns == 6 * LINE


def test_until_all_have_come_to_a_gather_it_is_not_output(tmp_path):
    program = WaitTrace(2, cost=TENTH)
    program.compute(1, 7 * SECOND)
    gather(program)
    put(program, "T")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "gather") == (6, 1)


def test_data_by_messages_count_from_when_their_sender_comes(tmp_path):
    program = WaitTrace(3, cost=TENTH)
    program.compute(2, 4 * TENTH)
    for worker in (1, 2):
        program.message(worker, 0, synchronous=True, size=BYTES // 2)
    put(program, "T")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "gather") == (7, 2)


def test_a_small_gather_before_a_large_put_is_not_what_it_writes(tmp_path):
    program = WaitTrace(2, cost=TENTH)
    gather(program, 64)
    put(program, "T")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "gather") == (5, 0)


@pytest.mark.parametrize(("factor", "packing"), [(18, 18), (22, 0)])
def test_computing_between_a_gather_and_the_write_is_packing_up_to_a_limit(tmp_path, factor,
        packing):
    program = WaitTrace(2, cost=TENTH)
    gather(program)
    program.compute(0, factor * BYTES)
    program.io(0, BYTES)
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.packing_ns == packing * BYTES and file.system_ns == BYTES
    assert tenths(file, "gather") == (1 if packing else 0,)


def test_computing_between_two_variables_is_packing_and_between_two_steps_is_not(tmp_path):
    program = WaitTrace(2)
    for _ in range(3):
        program.compute(0, TENTH)  # the model
        for variable in ("T", "U"):
            program.compute(0, TENTH // 2)
            put(program, variable)
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "packing", "library") == (3 * (5 + 0.5 + 5), 3 * 0.5, 3 * 4)


def test_what_lies_around_another_file_or_another_call_of_mpi_is_not_packing(tmp_path):
    program = WaitTrace(2)
    put(program, "T")
    program.io(0, 100, "/scratch/log")
    program.compute(0, TENTH // 2)
    put(program, "U")
    program.compute(0, TENTH // 2)
    program.barrier()
    put(program, "V")
    program.barrier()
    [file] = [one for one in cost(program, tmp_path).files if one.file == FILE]
    assert tenths(file, "elapsed", "packing") == (15, 0)


def test_definitions_between_create_and_enddef_are_packing(tmp_path):
    program = WaitTrace(2)
    call(program, 0, "library_create", FILE, TENTH, 0)
    program.compute(0, TENTH // 5)
    call(program, 0, "library_define", FILE, TENTH, TENTH)
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert tenths(file, "elapsed", "packing", "library") == (3.2, 0.2, 2)


def test_reading_what_was_written_is_no_output(tmp_path):
    program = WaitTrace(2)
    for op in ("open", "write", "fsync", "close", "open", "fstat", "read", "close"):
        program.io(0, TENTH, op=op)
    program.barrier()
    program.io(1, TENTH, op="open")
    program.io(1, TENTH, op="read")
    program.io(1, TENTH, op="close")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert (file.calls, file.ranks) == (4, 1) and tenths(file, "all") == (4,)


def test_reading_a_variable_back_is_no_output(tmp_path):
    program = WaitTrace(2)
    call(program, 0, "library_create", FILE, TENTH, TENTH)
    put(program, "T")
    call(program, 0, "library_close", FILE, TENTH, TENTH)
    call(program, 0, "library_open", FILE, TENTH, 0)
    call(program, 0, "library_get", f"netcdf:{FILE}:T", TENTH, 0, BYTES)
    call(program, 0, "library_close", FILE, TENTH, 0)
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.calls == 3 and tenths(file, "elapsed", "library", "system") == (9, 4, 5)


def test_the_removal_of_a_file_is_no_output(tmp_path):
    program = WaitTrace(2)
    program.io(0, TENTH)
    program.io(0, TENTH, op="unlink")
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.calls == 1 and tenths(file, "elapsed") == (1,)


def test_calls_of_children_at_once_count_once(tmp_path):
    (tmp_path / "run" / "s").mkdir(parents=True)
    with TraceWriter(tmp_path / "run" / "s" / "n0.weir") as writer:
        begin = writer.created_ticks + 1000
        end = begin + SECOND
        parent = writer.process(100, start_ticks=begin, last_ticks=end, end_ticks=end, end_kind=1)
        parent.events(np.empty(0, event("write", 0, 0).dtype))
        for child, (at, file) in enumerate([(0, "a"), (2, "a"), (1, "b"), (6, "b")]):
            one = writer.process(200 + child, ppid=100, start_ticks=begin, last_ticks=end,
                end_ticks=end, end_kind=1)
            number = one.name(f"/scratch/{file}")
            one.events([event("write", begin + at * TENTH, 3 * TENTH, file=number, size=1)])
    [found] = output_costs_of(build(tmp_path / "run"))
    # [0, 3) and [2, 5) of a, [1, 4) and [6, 9) of b: the union of each, and that of all
    assert {one.file: tenths(one, "elapsed")[0] for one in found.files} == {
        "/scratch/a": 5, "/scratch/b": 6}
    assert tenths(found.whole, "elapsed", "all") == (8, 8)


def two_threads(directory: Path, *calls: tuple[int, str, int, int]) -> Path:
    """A program without MPI; calls: thread, file, begin and length in tenths of a second."""
    (directory / "run" / "s").mkdir(parents=True)
    with TraceWriter(directory / "run" / "s" / "n0.weir") as writer:
        begin = writer.created_ticks + 1000
        one = writer.process(100, start_ticks=begin, last_ticks=begin + SECOND,
            end_ticks=begin + SECOND, end_kind=1)
        for thread in (1, 2):
            one.events([event("write", begin + at * TENTH, length * TENTH,
                file=one.name(f"/scratch/{file}"), size=1)
                for of, file, at, length in calls if of == thread], thread=thread)
    return directory / "run"


def test_files_that_threads_write_side_by_side_each_have_their_whole_time(tmp_path):
    run = two_threads(tmp_path, (1, "a", 0, 4), (1, "a", 5, 3), (2, "b", 1, 2), (2, "b", 3, 6))
    [found] = output_costs_of(build(run))
    assert {one.file[-1]: tenths(one, "elapsed")[0] for one in found.files} == {"a": 7, "b": 8}
    assert tenths(found.whole, "elapsed", "system") == (9, 9)


def test_two_threads_on_one_file_count_a_moment_once(tmp_path):
    run = two_threads(tmp_path, (1, "a", 0, 4), (2, "a", 1, 2), (2, "a", 3, 3), (1, "a", 8, 1))
    [found] = output_costs_of(build(run))
    assert found.files[0].calls == 4
    assert tenths(found.files[0], "elapsed") == tenths(found.whole, "elapsed") == (7,)


def test_two_variables_put_side_by_side_each_have_their_whole_time(tmp_path):
    (tmp_path / "run" / "s").mkdir(parents=True)
    with TraceWriter(tmp_path / "run" / "s" / "n0.weir") as writer:
        begin = writer.created_ticks + 1000
        one = writer.process(100, start_ticks=begin, last_ticks=begin + SECOND,
            end_ticks=begin + SECOND, end_kind=1)
        for thread, variable in ((1, "T"), (2, "U")):
            at = begin + thread * TENTH
            name = one.name(f"netcdf:{FILE}:{variable}")
            one.events([
                event("pwrite", at, 2 * TENTH, file=one.name(FILE), size=1),
                event("library_put", at, 4 * TENTH, file=name, size=1, layer=NETCDF),
            ], thread=thread)  # fmt: skip
    [found] = output_costs_of(build(tmp_path / "run"))
    assert {one.variable: tenths(one, "elapsed", "system") for one in found.variables} == {
        "T": (4, 2), "U": (4, 2)}
    # [1, 3) and [2, 4) in the system, [1, 5) and [2, 6) in puts
    assert tenths(found.files[0], "elapsed", "system") == (5, 3)


def test_two_groups_of_ranks_each_have_their_file_and_the_total_is_of_one_rank(tmp_path):
    program = WaitTrace(4)
    for rank, (file, length) in enumerate((("a", 3), ("a", 1), ("b", 4), ("b", 5))):
        program.io(rank, length * TENTH, f"/scratch/{file}")
    program.io(0, 3 * TENTH, "/scratch/c")
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [found] = output_costs_of(report)
    assert [(one.file[-1], one.rank.rank, *tenths(one, "elapsed", "all"))
        for one in found.files] == [
        ("b", 3, 5, 9), ("a", 0, 3, 4), ("c", 0, 3, 3)]
    assert (found.whole.rank.rank, *tenths(found.whole, "elapsed", "all")) == (0, 6, 16)
    [table, *_] = report_tables(report, Options(("output-cost",)))
    assert table.footer[0][table.columns.index("rank")] == "0"
    assert any(one.startswith("TOTAL: of rank 0, which has most work") for one in table.remarks)
    assert any("overlap" in one for one in table.remarks)


def test_a_rank_that_waits_for_the_writer_is_not_the_one_that_is_busy(tmp_path):
    program = WaitTrace(3)
    program.compute(0, 2 * TENTH)
    program.write_all({0: 5 * TENTH})  # ranks 1 and 2 come first and wait for rank 0
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert (file.rank.rank, file.ranks) == (0, 3)
    assert tenths(file, "elapsed", "system", "waiting") == (5, 5, 0)


def test_the_wait_of_a_writer_for_ranks_that_come_late_is_apart(tmp_path):
    program = WaitTrace(3)
    program.compute(2, 4 * TENTH)
    program.write_all({0: 5 * TENTH})
    program.barrier()
    [file] = cost(program, tmp_path).files
    assert file.rank.rank == 0 and tenths(file, "elapsed", "waiting") == (5, 4)


def rename(program: WaitTrace, old: str, new: str, rank: int = 0) -> None:
    program._keep(rank, f"rename\n{old}\n{new}", lambda at, name: event("naming", at, 0, file=name,
        below=True, nested=True), 0)


def test_files_have_the_names_that_they_had_last(tmp_path):
    program = WaitTrace(2)
    for step, length in ((1, TENTH), (2, 3 * TENTH)):
        program.io(0, TENTH, "/scratch/out.tmp", "open")
        program.io(0, length, "/scratch/out.tmp")
        program.io(0, TENTH, "/scratch/out.tmp", "close")
        program.compute(0, 10)
        rename(program, "/scratch/out.tmp", f"/scratch/out_{step}.nc")
        program.compute(0, 10)
    program.io(1, TENTH, "/scratch/log.tmp")
    program.compute(1, 10)
    rename(program, "/scratch/log.tmp", "/scratch/log", rank=1)
    program.compute(1, 10)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [found] = output_costs_of(report)
    assert {one.file: (one.calls, *tenths(one, "elapsed")) for one in found.files} == {
        "/scratch/out_1.nc": (3, 3), "/scratch/out_2.nc": (3, 5), "/scratch/log": (1, 1)}
    listed = {row["file"] for row in report_json(report, options=Options(top=0))["files"]}
    assert listed == {one.file for one in found.files}


def test_all_tables_have_the_names_that_files_had_last(tmp_path):
    program = WaitTrace(2)
    for step, length in ((1, TENTH), (2, 3 * TENTH)):
        program.io(0, 1, "/scratch/out.tmp", "open")
        program.io(0, length, "/scratch/out.tmp")
        program.compute(0, 10)
        rename(program, "/scratch/out.tmp", f"/scratch/out_{step}.nc")
        program.compute(0, 10)
        program.barrier()
    program.io(1, 2 * TENTH, "/scratch/log.tmp")
    program.compute(1, 10)
    rename(program, "/scratch/log.tmp", "/scratch/log", rank=1)
    program.compute(1, 10)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [step] = report_json(report)["waits"]
    files = {one["file"]: one for one in step["files"]}
    assert set(files) == {"/scratch/out_1.nc", "/scratch/out_2.nc", "/scratch/log"}
    # What is due to a name of several files is shared out by their I/O time.
    critical = {name: round(one["critical_s"] * 100, 3) for name, one in files.items()}
    assert critical == {"/scratch/out_1.nc": 1, "/scratch/out_2.nc": 3, "/scratch/log": 2}
    assert sum(one["critical_s"] for one in files.values()) == pytest.approx(step["critical_s"])
    assert files["/scratch/log"]["alone_s"] == pytest.approx(0.02, rel=1e-3)
    found = file_groups(report)
    text = " ".join(plain(one) for one in sentences(report, found))
    assert "40.0 ms, is I/O on the 2 files named like /scratch/out_<N>.nc" in text
    assert "tmp" not in text and not any("tmp" in one for one in notes(report))


def test_variables_have_the_name_that_their_file_had_last(tmp_path):
    program = WaitTrace(2)
    for step in (1, 2):
        program.io(0, 1, FILE, "open")
        frame(program)
        program.compute(0, 10)
        rename(program, FILE, f"/scratch/{step}.nc")
        program.compute(0, 10)
    program.barrier()
    found = cost(program, tmp_path)
    assert [one.file for one in found.files] == ["/scratch/1.nc", "/scratch/2.nc"]
    assert sorted((one.file, one.variable) for one in found.variables) == [
        (f"/scratch/{step}.nc", variable) for step in (1, 2)
        for variable in ("(the file)", "T", "U")]


def test_json_has_it_unasked(tmp_path):
    program = WaitTrace(3, cost=TENTH)
    frame(program)
    program.barrier()
    found = report_json(build(program.write(tmp_path / "run" / "s")))
    assert [row["file"] for row in found["output_cost"]] == [FILE]
    assert {row["variable"] for row in found["output_cost_by_variable"]} == {
        "T", "U", "(the file)"}


def test_the_table_names_what_is_in_it_and_fits_a_screen(tmp_path):
    program = WaitTrace(3, cost=TENTH)
    frame(program)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    lines = [line for t in report_tables(report, Options(("output-cost",)))
        for line in text_lines(t, 80)]
    assert "Cost of output of s" in lines and "Cost of output of s by variable" in lines
    assert max(map(len, lines)) <= 80
    [row] = report_json(report)["output_cost"]
    assert row["file"] == FILE and row["elapsed_s"] == 0.2


@pytest.mark.parametrize("pattern, listed", [(None, 70), ("*T_0*", 30)])
def test_many_files_of_one_pattern_are_one_line(tmp_path, pattern, listed):
    """Of the rank with most work on all of them, which is not the sum of each file's rank."""
    program = WaitTrace(2)
    for rank in (0, 1):
        for number in range(30 + 10 * rank):
            program.io(rank, TENTH, f"/scratch/T_{rank}{number:02}", "pwrite")
    program.io(0, TENTH, "/scratch/log", "pwrite")
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [cost] = output_costs_of(report)
    text = cost.by_pattern(cost.files)
    assert [(one.file, one.files, one.calls, one.elapsed_ns, one.all_ns) for one in text] == [
        ("/scratch/T_<N>", 70, 40, 40 * TENTH, 70 * TENTH),
        ("/scratch/log", 1, 1, TENTH, TENTH),
    ]
    assert len(cost.files) == 71 == len(report_json(report)["output_cost"])
    [table] = report_tables(report, Options(("output-cost",), pattern=pattern))
    [line] = [line for line in text_lines(table, 200) if "T_" in line]
    assert str(listed) in line.split()


def test_the_first_screen_states_what_output_takes_and_what_is_inferred(tmp_path):
    program = WaitTrace(3, cost=TENTH)
    frame(program)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    [text] = [one for one in sentences(report, file_groups(report)) if "Output" in one]
    assert plain(text) == (
        "Output takes at least 200 ms of rank 0 (95 % of the run), of which 90.0 ms is I/O. Faster "
        "I/O leaves the rest as it is: 70.0 ms in libraries that convert, compress and copy and "
        "40.0 ms of gathers and packing before these calls (inferred); other ranks wait for it, "
        "360 ms added up."
    )


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("wrf", "wrfout_d01_2026-01-01_00:00:00"),
        ("wrf", "wrfrst_d02_2026-01-01_00_00_00"),
        ("cm1", "cm1out_000003.nc"),
        ("cm1", "cm1out_000003_000001_s.dat"),
        ("cm1", "cm1out_pdata.nc"),
        ("cm1", "cm1rst_000001_x.dat"),
        ("mpas", "history.2026-01-01_00.00.00.nc"),
        ("mpas", "mpasout.2026-01-01_00.00.00.nc"),
        ("icon", "NWP_LAM_DOM01_ML_0003.nc"),
        ("icon", "exp_atm_2d_ML_20260101T000000Z.nc"),
        ("icon", "NWP_DOM01_PL_0012.grb"),
        ("icon", "iconR2B04_DOM01_restart_atm_20260101T000000Z.nc"),
        ("icon", "exp_restart_oce_20260101T000000Z.mfr/patch1_0.nc"),
        ("nemo", "ORCA2_5d_20260101_20260131_grid_T.nc"),
        ("nemo", "ORCA2_1ts_20260101_20260131_SBC_0007.nc"),
        ("nemo", "1_ORCA2_1m_20260101_20261231_ptrc_T.nc"),
        ("nemo", "ORCA2_00000120_restart_0003.nc"),
        (None, "output.dat"),
        (None, "wrfinput_d01"),  # of real.exe
        (None, "lbc.2026-01-01_00.00.00.nc"),
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
