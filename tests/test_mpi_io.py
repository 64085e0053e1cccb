# SPDX-License-Identifier: Apache-2.0
"""MPI-IO in the trace: each routine from C and Fortran with its file, place and bytes, on each MPI;
the program reads what it wrote."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import decode
import pytest

from weir.report.mpi_io.compute import Access, MpiFile, mpi_files_of
from weir.report.mpi_io.table import mpi_io_tables

PROGRAM = Path(__file__).parent / "programs" / "mpi_io.c"
RANKS, BYTES = 3, 400
# Accesses of the program that have a block of their own, in its order; the others use the blocks
# between them.
PLACED = ("at", "at_all", "", "all", "i at", "i", "i at_all", "i all", "at_all_begin", "all_begin")
SHARED = ("ordered", "ordered_begin", "shared", "i shared")
ENDS = ("at_all_end", "all_end", "ordered_end")


def routine(verb: str, form: str) -> str:
    first, _, rest = form.partition(" ") if form.startswith("i") else ("", "", form)
    return f"MPI_File_{first}{verb}" + (f"_{rest}" if rest else "")


def of_mpi_io(trace, rank):
    (process,) = (p.number for p in trace.processes.values() if p.rank == rank
        and p.rank_source == 2)
    return [r for r in trace.records if r.process == process and r.layer == "mpi_io"]


def test_each_access_has_its_file_its_place_and_its_bytes(mpi, preload_env, tmp_path):
    # non-blocking collectives of Open MPI 4.1's ROMIO crash, without weir too
    env = preload_env(OMPI_MCA_io="ompio")
    done = mpi.run(RANKS, mpi.cc(PROGRAM), "data", env=env, cwd=tmp_path).ok()
    assert done.stdout == ""
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(RANKS):
        found = of_mpi_io(trace, rank)
        accesses = [r for r in found if "read" in r.op or "write" in r.op]
        for verb in ("write", "read"):
            for block, form in enumerate(PLACED):
                seen = [r for r in accesses if r.op == routine(verb, form)]
                assert [(r.size, r.offset) for r in seen][:1] == [(BYTES,
                    64 + (block * RANKS + rank) * BYTES)], (form, seen)
            for form in SHARED:
                assert [(r.size, r.offset) for r in accesses if r.op == routine(verb, form)] == [
                    (BYTES, None)], form
            for form in ENDS:
                assert [(r.size, r.offset) for r in accesses if r.op == routine(verb, form)] == [(0,
                    None)], form
        through_holes = [r for r in accesses if r.op == "MPI_File_read_at"][1:]
        assert [(r.size, r.offset) for r in through_holes] == [(BYTES, None)]
        assert len(accesses) == 2 * (len(PLACED) + len(SHARED) + len(ENDS)) + 1
        assert {r.file for r in accesses} == {str(tmp_path / "data")}
        others = [(r.op.removeprefix("MPI_File_"), r.size, r.offset, r.failed) for r in found
            if r not in accesses and r.op != "MPI_File_seek"]
        assert others == [
            ("open", RANKS, 9, False), ("preallocate", 4096, None, False),
            ("set_size", 0, None, False),
            ("set_view", 4, 64, False), ("sync", 0, None, False), ("set_info", 0, None, False),
            ("set_view", BYTES, 0, False),
            ("close", 0, None, False), *([("delete", 0, None, False)] if rank == 0 else []),
            ("open", 0, 2, True),
        ]  # fmt: skip


def test_the_program_of_this_file_calls_every_c_function_of_the_table(mpi, execute, root):
    reference = runpy.run_path(str(root / "tools" / "gen_docs.py"))
    table = (root / "native" / "hook" / "table.def").read_text()
    rows = {name for name, _ in reference["hooked"](table) if re.fullmatch(r"MPI_File_\w*[a-z]",
        name) and not name.endswith("_c")}
    listed = execute(["nm", "-D", "--undefined-only", "--format=just-symbols", mpi.cc(PROGRAM)]).ok(
        ).stdout.split()
    assert len(rows) == 44 and rows <= {name.split("@")[0] for name in listed}


FORTRAN = """
program p
#if defined F08
  use mpi_f08
#elif defined F90
  use mpi
#endif
  implicit none
#if defined MPIFH
  include 'mpif.h'
#endif
#if defined F08
  type(MPI_File) :: f
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Info) :: info
#else
  integer :: f, status(MPI_STATUS_SIZE), request, info
#endif
  integer :: rank, e, values(50), i
  integer(kind=MPI_OFFSET_KIND) :: at
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Info_create(info, e)
  call MPI_Info_set(info, 'cb_buffer_size', '2097152', e)
  call MPI_File_open(MPI_COMM_WORLD, 'of_fortran  ', MPI_MODE_CREATE + MPI_MODE_RDWR, info, f, e)
  at = 16
  call MPI_File_set_view(f, at, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, e)
  values = [(1000 * rank + i, i = 1, 50)]
  at = 50 * rank
  call MPI_File_write_at_all(f, at, values, 50, MPI_INTEGER, status, e)
  call MPI_File_write_at(f, at, values, 50, MPI_INTEGER, MPI_STATUS_IGNORE, e)
  call MPI_File_iwrite_at(f, at, values, 50, MPI_INTEGER, request, e)
  call MPI_Wait(request, status, e)
  call MPI_File_sync(f, e)
  call MPI_File_seek(f, at, MPI_SEEK_SET, e)
  values = 0
#if defined F08
  call MPI_File_read_all(f, values, 50, MPI_INTEGER, status)
  call MPI_File_read_at_all_begin(f, at, values, 50, MPI_INTEGER)
  call MPI_File_read_at_all_end(f, values, status)
  call MPI_File_close(f)
#else
  call MPI_File_read_all(f, values, 50, MPI_INTEGER, status, e)
  call MPI_File_read_at_all_begin(f, at, values, 50, MPI_INTEGER, e)
  call MPI_File_read_at_all_end(f, values, status, e)
  call MPI_File_close(f, e)
#endif
  if (any(values /= [(1000 * rank + i, i = 1, 50)])) print *, 'wrong'
  if (rank == 0) call MPI_File_delete('of_fortran', MPI_INFO_NULL, e)
  call MPI_Finalize(e)
end program
"""


@pytest.mark.parametrize("way", ["MPIFH", "F90", "F08"])
def test_fortran(mpi, preload_env, tmp_path, way):
    env = preload_env()
    done = mpi.run(2, mpi.fc(FORTRAN, f"-D{way}"), env=env, cwd=tmp_path).ok()
    assert done.stdout == ""
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    for rank in range(2):
        found = [(r.op.removeprefix("MPI_File_"), r.size, r.offset) for r in of_mpi_io(trace, rank)]
        at = 16 + 200 * rank
        assert found == [
            ("open", 2, 9), ("set_view", 4, 16), ("write_at_all", 200, at), ("write_at", 200, at),
            ("iwrite_at", 200, at), ("sync", 0, None),
            ("seek", 0, at), ("read_all", 200, at), ("read_at_all_begin", 200, at),
            ("read_at_all_end", 0, None), ("close", 0, None),
            *([("delete", 0, None)] if rank == 0 else []),
        ]  # fmt: skip
        assert {r.file for r in of_mpi_io(trace, rank)} == {str(tmp_path / "of_fortran")}
    assert f"hint given\n{tmp_path}/of_fortran\ncb_buffer_size\n2097152" in trace.names.values()


AGGREGATED = r"""
#include <mpi.h>
#include <stdlib.h>
enum { BLOCK = 1 << 16, BLOCKS = 8 };
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_cb_read", "enable");
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "striping_unit", "65536");
  MPI_File file;
  char *data = calloc(BLOCK, 1);
  MPI_File_open(MPI_COMM_WORLD, "aggregated", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
  for (int i = 0; i < BLOCKS; ++i) MPI_File_write_at_all(file, (MPI_Offset)(i * ranks + rank) * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  if (rank == 2) MPI_File_read_at(file, 0, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rank == 2) MPI_File_read_at(file, 3 * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rank == 2) MPI_File_read_at(file, 5 * BLOCK, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rank == 2) MPI_File_read_at(file, 0, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
}
"""


def check_displays(text: str, implementation: str):
    placement, hints, box = (text.split(title, 1)[1] for title in ("Aggregator placement for",
        "MPI-IO hints for", "MPI-IO access patterns for"))
    assert "ranks touch the file" in placement and "cb_nodes" in hints
    lines = {line[0]: line[1:] for line in (re.split(r"\s{2,}", line.strip())
        for line in box.splitlines())}
    assert lines["collective calls"] == ["0", "32"] and lines["independent calls"] == ["4", "0"]
    assert lines["bytes asked for"] == [str(2 * (1 << 16) + 200), str(32 << 16)]
    if implementation == "romio":
        assert "2 of 4 ranks touch the file, on 1 node; cb_nodes = 1" in placement


def check_totals(report: dict, box: dict):
    """Records of MPI-IO are no I/O of their own: the calls and bytes of the tables are those of the
    file's POSIX requests."""
    (file,) = [one for one in report["files"] if one["file"].endswith("/aggregated")]
    assert not [op for op in file["ops"] if op.startswith("MPI_")]
    assert (file["bytes_read"], file["bytes_written"]) == (box["reads"]["system_bytes"],
        box["writes"]["system_bytes"])
    (mount,) = [one for one in report["filesystems"] if one["mount"] == file["mount"]]
    assert mount["kind"] == file["file_system"] != "?"
    assert mount["bytes_written"] == sum(one["bytes_written"] for one in report["files"]
        if one["mount"] == file["mount"])


@pytest.mark.parametrize("implementation", ["romio", "ompio"])
def test_the_box_counts_calls_system_requests_stripes_and_gaps(mpi, weir, tmp_path, implementation):
    """ROMIO on each MPI, and OMPIO."""
    env = dict(mpi.env)
    if implementation == "ompio":
        if mpi.name != "openmpi":
            pytest.skip("OMPIO is Open MPI's alone")
        env["OMPI_MCA_io"] = "ompio"
    run = tmp_path / "run"
    weir("trace", "-o", run, "--", *mpi.launch(4, mpi.cc(AGGREGATED)), env=env, cwd=tmp_path,
        timeout=90).ok()
    report = json.loads(weir("report", run, "--json").ok().stdout)
    (file,) = [one for one in report["mpi_io"] if one["file"].endswith("/aggregated")]
    writes, reads = file["writes"], file["reads"]
    assert (file["ranks"], file["opens"]) == (4, 1)
    assert (writes["independent"], writes["collective"], writes["bytes"]) == (0, 32, 32 << 16)
    assert (reads["independent"], reads["collective"], reads["bytes"]) == (4, 0,
        2 * (1 << 16) + 200)
    assert reads["independent_ranks"] == 1
    assert writes["system_bytes"] == 32 << 16
    assert (reads["system"], reads["system_ranks"], reads["system_bytes"]) == (4, 1,
        2 * (1 << 16) + 200)
    assert (reads["gaps"]["gaps"], reads["gaps"]["skipped_bytes"], reads["gaps"]["back"]) == (2,
        3 << 16, 1)
    assert file["given"]["cb_nodes"] == "1"
    if implementation == "romio":
        assert [one["rank"] for one in file["aggregators"]] == [0, 2]
        assert (file["aggregators"][0]["writes"], file["aggregators"][0]["reads"],
            file["aggregators"][1]["reads"]) == (writes["system"], 0, 4)
        assert file["hints"]["cb_nodes"] == "1"
        assert writes["gaps"]["gaps"] == writes["gaps"]["back"] == 0
        assert (file["stripe_bytes"], file["stripe_source"],
            reads["gaps"]["stripe_sized"]) == (65536, "hint", 2)
    check_displays(weir("report", run, "--tables", "mpi-io").ok().stdout, implementation)
    check_totals(report, file)


OPENINGS = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
enum { BYTES = 1000 };
static MPI_File file;
static int opened(const char *name, const char *nodes, const char *enable) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (nodes) MPI_Info_set(info, "cb_nodes", nodes);
  if (enable) MPI_Info_set(info, "romio_cb_write", enable);
  const int error = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | (enable ? MPI_MODE_CREATE : 0), info, &file);
  MPI_Info_free(&info);
  return error == MPI_SUCCESS;
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static char data[BYTES];
  for (int i = 1; i < argc; ++i) {
    if (!opened(argv[i], "1", "enable")) return printf("%s cannot be opened\n", argv[i]);
    MPI_File_write_at(file, (MPI_Offset)rank * BYTES, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }
  if (opened("missing", 0, 0) || !opened(argv[1], 0, 0)) return printf("the second round went wrong\n");
  MPI_File_close(&file);
  MPI_Finalize();
}
"""


def test_names_with_colons_and_files_that_are_opened_twice_or_in_vain(mpi, weir, preload_env,
        tmp_path):
    """OMPIO takes any name as it is, ROMIO the prefixes that it knows."""
    prefixed = mpi.name != "openmpi"
    names = ["ufs:field.nc"] if prefixed else ["wrfout_d01_2026-01-01_00:00:00", "a:b/c:d",
        "ufs:field.nc"]
    (tmp_path / "a:b").mkdir()
    env = preload_env(**({} if prefixed else {"OMPI_MCA_io": "ompio"}))
    assert mpi.run(2, mpi.cc(OPENINGS), *names, env=env, cwd=tmp_path).ok().stdout == ""
    report = json.loads(weir("report", env["WEIR_TRACE_DIR"], "--json").ok().stdout)
    files = {one["file"]: one for one in report["mpi_io"]}
    expected = ["field.nc"] if prefixed else names
    assert set(files) == {str(tmp_path / name) for name in (*expected, "missing")}
    for name in expected:
        one = files[str(tmp_path / name)]
        assert (tmp_path / name).stat().st_size == one["writes"]["system_bytes"] == one["writes"][
            "bytes"] == 2000
        assert (one["ranks"], one["opens"], one["failed_opens"]) == (2, 2 if name == expected[0]
            else 1, 0)
        assert one["ignored_hints"] == {}
        if mpi.name == "mpich" and name == expected[0]:
            assert one["hints"]["romio_cb_write"] == "enable | automatic"
    missing = files[str(tmp_path / "missing")]
    assert (missing["ranks"], missing["opens"], missing["failed_opens"]) == (0, 0, 1)
    assert "opened by no rank; could not be opened once" in weir("report", env["WEIR_TRACE_DIR"],
        "--tables", "mpi-io").ok().stdout


@pytest.mark.parametrize(("nonblocking", "ns", "expected"),
    [(0, 2_000_000_000, "100"), (0, 2 * 10**12, "0.1"), (3, 2_000_000, "-"), (0, 0, "-")])
def test_the_box_tells_no_speed_of_calls_that_return_at_once(nonblocking, ns, expected):
    writes = Access(independent=3, nonblocking=nonblocking, bytes=200_000_000, busiest_ns=ns)
    one = MpiFile("main", "/scratch/f", 1, 1, 0, Access(), writes, ())
    step = SimpleNamespace(figures={mpi_files_of.__wrapped__: [one]})
    report = SimpleNamespace(steps=[step], cwd=None, choice=SimpleNamespace(rank=None))
    *_, box = mpi_io_tables(report)
    assert box.rows[-1] == ("MB/s", "-", expected)
    assert any("MPI_Wait" in remark for remark in box.remarks) == bool(nonblocking)


SEQUENTIAL = r"""
#include <mpi.h>
#include <stdio.h>
static int calls;
static void heard(MPI_File *file, int *error, ...) { ++calls; }
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  static char data[100];
  MPI_File file;
  MPI_Errhandler handler;
  MPI_File_create_errhandler(heard, &handler);
  MPI_File_open(MPI_COMM_WORLD, "sequential", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file);
  MPI_File_set_errhandler(file, handler);
  MPI_File_write_shared(file, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  printf("%d ", calls);
  MPI_File_write(file, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  printf("%d\n", calls);
  MPI_File_close(&file);
  MPI_Finalize();
}
"""


def test_error_handlers_hear_of_the_programs_own_errors_alone(mpi, preload_env, tmp_path):
    """A sequential file has no position of its own: a write there is an error, and to ask for the
    position another one."""
    program, env = mpi.cc(SEQUENTIAL), preload_env(OMPI_MCA_io="romio321")
    plain = mpi.run(1, program, cwd=tmp_path, env={"OMPI_MCA_io": "romio321"}).ok().stdout
    assert mpi.run(1, program, env=env, cwd=tmp_path).ok().stdout == plain == "0 1\n"
    found = [(r.op, r.size, r.offset, r.failed)
        for r in decode.read_trace(env["WEIR_TRACE_DIR"]).records if r.layer == "mpi_io"][1:3]
    assert found == [("MPI_File_write_shared", 100, None, False), ("MPI_File_write", 0, None, True)]
