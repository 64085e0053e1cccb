# SPDX-License-Identifier: Apache-2.0
"""Tables have the documented columns, and their figures are those of weir report."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
from query_runs import write_run
from wait_trace import WaitTrace

import weir
from weir.query._arrow import arrow_schema
from weir.query.schema import TABLES
from weir.report import build, report_json
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import TraceWriter, event
from weir.trace.ops import HDF5, MPI_IO, NETCDF, PNETCDF, POSIX, library_functions

pa = pytest.importorskip("pyarrow", reason="needs the test extra, on Python 3.11 or newer")

NEVER_EMPTY = (
    "events io totals files names operations steps processes routines request_sizes units".split()
)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_the_columns_that_its_page_tells(table, two_steps, root):
    page = (root / "docs" / "reference" / "query.md").read_text().split(
        f"\n## {table.name}\n")[1].split("\n## ")[0]
    with weir.open(two_steps) as run:
        made = run.table(table.name).to_arrow()
        asked = run.sql(f"SELECT * FROM {table.name}")
    assert made.schema.names == asked.schema.names == [column.name for column in table.columns]
    assert made.schema.types == arrow_schema(table).types
    assert len(made) == len(asked) and (len(made) or table.name not in NEVER_EMPTY)
    for column in table.columns:
        assert f"| `{column.name}` | {column.kind} | {column.unit} | " in page
        if not column.may_be_null:
            assert made.column(column.name).null_count == 0, column.name


def test_events_are_the_records_with_names_units_and_nulls(two_steps):
    with weir.open(two_steps, step="traj0") as run:
        rows = run.events.to_arrow().to_pylist()
    begin = min(row["start_ns"] for row in rows) - 100
    printed = [
        (r["node"], r["pid"], r["rank"], r["start_ns"] - begin, r["duration_ns"], r["op"],
            r["class"], r["file"], r["offset_bytes"], r["bytes"], r["unit"],
         r["error"])
        for r in rows
    ]  # fmt: skip
    assert printed[:8] == [
        ("n1", 10, 0, 1000, 10, "open", "open", "/data/a", None, 0, None, None),
        ("n1", 10, 0, 2000, 100, "write", "write", "/data/a", 0, 4096, None, None),
        ("n1", 10, 0, 3000, 200, "write", "write", "/data/a", 4096, 100, None, None),
        ("n1", 10, 0, 4000, 50, "write", "write", "/data/a", None, 0, None, 28),
        ("n1", 10, 0, 5000, 5, "close", "close", "/data/a", None, 0, None, None),
        ("n1", 10, 0, 6000, 1000, "fortran_write", "write", "/data/f", None, 800, -10, None),
        ("n1", 10, 0, 6100, 300, "write", "write", "/data/f", 0, 816, None, None),
        ("n1", 10, 0, 8000, 7, "write", "write", "pipe:[7]", None, 9, None, None),
    ]
    assert [(r["below"], r["nested"], r["layer"]) for r in rows[5:7]] == [(False, False, "fortran"),
        (True, True, "posix")]
    assert [r["is_file"] for r in rows[6:9]] == [True, False, True]
    assert rows[8]["file"] == "/data/a"  # // is folded
    assert [r["launcher"] for r in rows if r["node"] == "n2"] == [True] + 5 * [False]
    assert {r["step"] for r in rows} == {"traj0"}


def test_sums_over_io_are_the_report(golden_run, report):
    """At level trace, where every call has a record; each golden file has a tick of 1 ns, so
    nothing is rounded."""
    printed = report(golden_run)
    with weir.open(golden_run) as run:
        sums = {r["step"]: r
            for r in run.sql(
                "SELECT step, sum(calls) calls, sum(bytes) bytes, sum(ns) ns FROM io GROUP BY step")
                .to_pylist()}
        levels = {step["name"]: step for step in printed["steps"]}
    checked = 0
    for name, step in levels.items():
        if step["level"] == "trace" and not step["lost_events"]:
            found = sums.get(name, {"calls": 0, "bytes": 0, "ns": 0})
            assert (found["calls"], found["bytes"]) == (step["all"]["calls"],
                step["all"]["bytes"]), name
            assert found["ns"] == round(step["all"]["seconds"] * 1e9), name
            checked += 1
    assert checked or all(step["level"] != "trace" or step["lost_events"]
        for step in levels.values())


def test_files_and_steps_are_the_report_at_every_level(golden_run, report):
    printed = report(golden_run)
    with weir.open(golden_run) as run:
        files = run.sql(
            "SELECT file, sum(calls) calls, sum(bytes_read) r, sum(bytes_written) w, sum(ns) ns "
            "FROM files WHERE file IS NOT NULL "
            "GROUP BY file ORDER BY file"
        ).to_pylist()
        steps = run.steps.to_arrow().to_pylist()
    assert [(f["file"], f["calls"], f["r"], f["w"], f["ns"]) for f in files] == [
        (f["file"], f["calls"], f["bytes_read"], f["bytes_written"], round(f["seconds"] * 1e9))
        for f in sorted(printed["files"], key=lambda one: one["file"])
    ]
    for made, step in zip(steps, printed["steps"], strict=True):
        assert (made["step"], made["level"], made["calls"], made["bytes"]) == (
            step["name"], step["level"], step["all"]["calls"], step["all"]["bytes"],
        )  # fmt: skip
        assert made["complete"] == step["complete"] and made["lost_events"] == step["lost_events"]
        assert made["active_ns"] == (None if step["active_s"] is None
            else round(step["active_s"] * 1e9))


def test_processes_are_the_report_s(golden_run, report):
    printed = report(golden_run, everything=True)["processes"]
    with weir.open(golden_run) as run:
        made = run.processes.to_arrow().to_pylist()
    keys = {"kernel_read": "kernel_bytes_read", "kernel_written": "kernel_bytes_written",
        "seen_read": "seen_bytes_read", "calls": "calls"}
    assert [(m["step"], m["node"], m["pid"], m["rank"], m["end_kind"], *(m[k] for k in keys))
        for m in made] == [
        (t["step"], t["node"], t["pid"], t["rank"], t["end"], *(t[k] for k in keys.values()))
        for t in printed
    ]


def test_a_lost_name_is_distinguished(tmp_path):
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        process = writer.process(5)
        start = writer.created_ticks
        process.ids["/later"] = 78  # 77 was given, too
        process.events([event("read", start, 5, file=process.name("/a"), size=1),
            event("read", start + 9, 5, file=77, size=2)])
    with weir.open(tmp_path / "run") as run:
        assert run.sql("SELECT file, bytes, is_file FROM events ORDER BY bytes").to_pylist() == [
            {"file": "/a", "bytes": 1, "is_file": True},
            {"file": "(lost name 77 of process 5 on n)", "bytes": 2, "is_file": True},
        ]
        assert run.sql("SELECT count(*) n FROM events JOIN files USING (file)").to_pylist() == [
            {"n": 2}]


def test_every_table_is_an_attribute_and_a_data_frame(two_steps):
    run = weir.open(two_steps)
    for schema in TABLES:
        made = getattr(run, schema.name)
        frame = (made() if callable(made) else made).to_pandas()
        assert list(frame.columns) == [column.name for column in schema.columns]
    assert "/data/a" in set(run.names.to_pandas()["name"])
    assert {schema.name for schema in TABLES} <= set(dir(run))
    with pytest.raises(AttributeError, match="'Run' object has no attribute 'nothing'"):
        run.nothing


def test_a_declared_table_is_the_json_of_the_report(execute, tmp_run):
    execute([sys.executable, "-m", "weir", "trace", "-o", tmp_run, "--", "cat", __file__]).ok()
    kept = report_json(build(tmp_run))["filesystems"]
    with weir.open(tmp_run) as run:
        rows = run.filesystems.to_arrow().to_pylist()
    assert kept and [{**row, "seconds": row["ns"] / 1e9} for row in rows] == [{**one,
        "ns": row["ns"]} for one, row in zip(kept, rows)]


def test_names_that_are_folded_to_one_are_one_category(tmp_path):
    run = weir.open(write_run(tmp_path / "run", """
step s wall=1
node n
process pid=1
read /data/a at=1 for=1 bytes=1
read /data//a at=2 for=1 bytes=1
read /data/./a at=3 for=1 bytes=1
"""))
    assert list(run.names.to_pandas()["name"].cat.categories) == ["/data/a"]
    assert set(run.events.to_pandas()["file"]) == {"/data/a"} and len(run.events.to_pandas()) == 3


def test_duckdb_draws_no_progress_bar(two_steps, execute):
    script = (
        f"import weir; print(weir.open({str(two_steps)!r}).sql(\"SELECT "
        f"current_setting('enable_progress_bar') AS shown\").to_pylist())"
    )
    assert execute([sys.executable, "-c", script]).ok().stdout == "[{'shown': False}]\n"


def test_what_takes_arrow_takes_a_table(two_steps):
    with weir.open(two_steps) as run:
        frame = run.files.to_pandas()
        table = pa.table(run.events)
        assert pa.RecordBatchReader.from_stream(run.steps).read_all() == run.steps.to_arrow()
        assert len(table) == len(run.events.to_arrow()) == sum(len(batch)
            for batch in run.events.batches())
    assert frame.groupby("file").bytes_written.sum()["/data/a"] == 4196
    assert table.schema.field("duration_ns").metadata[b"unit"] == b"ns"


def test_exposed_waits_and_phases_are_the_known_answer(tmp_path):
    """Rank 0 writes 1 s while three others wait at a barrier, then all compute for 1 s."""
    program = WaitTrace(4)
    program.barrier()
    program.io(0, 10**9, "/scratch/restart")
    program.barrier()
    for rank in range(4):
        program.compute(rank, 10**9)
    program.barrier()
    with weir.open(program.write(tmp_path / "run" / "s")) as run:
        assert run.critical().to_arrow().to_pylist() == [
            {"step": "s", "file": "/scratch/restart", "op": "write", "waited_ns": 3 * 10**9,
                "path_ns": 10**9, "critical_ns": 10**9}
        ]
        [routine] = run.table("waits").to_arrow().to_pylist()
        assert (routine["routine"], routine["communicator"], routine["calls"],
            routine["waited_ns"]) == ("MPI_Barrier", "world", 3, 3 * 10**9)
        assert run.sql("SELECT sum(critical_ns) n, sum(io_ns) io FROM phases").to_pylist() == [
            {"n": 10**9, "io": 10**9}]
        joined = run.sql(
            "SELECT op, critical_ns * 100 // wall_ns AS share FROM critical JOIN steps USING "
            "(step)").to_pylist()
        assert joined == [{"op": "write",
            "share": synchronisation_of(run.report.steps[0]).waits.critical_ns * 100
            // run.report.steps[0].wall_ns}]


def test_variables_are_those_of_the_libraries(tmp_path):
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        for rank in (0, 1):
            process = writer.process(5 + rank, rank, 2)
            name, start = process.name("netcdf:/data/x.nc:t2m"), writer.created_ticks
            process.events([event("library_put", start + i, 10, file=name, size=100, layer=NETCDF)
                for i in (0, 100, 200)])
    with weir.open(tmp_path / "run") as run:
        [row] = run.table("variables").to_arrow().to_pylist()
    assert (row["library"], row["file"], row["variable"], row["ranks"]) == ("netcdf", "/data/x.nc",
        "t2m", 2)
    assert (row["puts"], row["put_bytes"], row["put_ns"], row["gets"], row["busiest_ns"]) == (6,
        600, 60, 0, 30)


def test_records_of_mpi_tell_routine_sequence_and_peer(tmp_path):
    """Operations 142 to 148: the upper half of the size is the routine, the offset a number on the
    communicator or a rank."""
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    with TraceWriter(directory / "n.weir", "n") as writer:
        process = writer.process(5, 0, 2)
        world, start = process.name("mpi:world:2"), writer.created_ticks
        made = [
            ("MPI_collective", 1 << 32, 7), ("MPI_collective", 2 << 32 | 4096, 8),
            ("MPI_receive", 142 << 32 | 100, 1),
            ("MPI_wait", 121 << 32 | 3, 2**48 - 1), ("MPI_File_open", 2, 5),
            ("MPI_awaited", 1 << 32 | 55, 1), ("MPI_awaited", 2 << 32, 9),
            ("MPI_send", 1 << 32, 2**48 - 1),
        ]  # fmt: skip
        process.events([event(op, start + 10 * i, 5, file=world, size=size, offset=at)
            for i, (op, size, at) in enumerate(made)])
    with weir.open(tmp_path / "run") as run:
        rows = run.sql("SELECT op, bytes, sequence, peer, offset_bytes, class, file FROM events "
                       "ORDER BY start_ns").to_pylist()
        routines = run.sql(
            "SELECT routine FROM events WHERE op = 'MPI_collective' ORDER BY start_ns").to_pylist()
        assert run.sql("SELECT sum(bytes) n, sum(calls) c FROM totals").to_pylist() == [{"n": 0,
            "c": 8}]
    assert [(r["op"], r["bytes"], r["sequence"], r["peer"]) for r in rows] == [
        ("MPI_collective", 0, 7, None), ("MPI_collective", 4096, 8, None),
        ("MPI_receive", 100, None, 1), ("MPI_wait", 0, None, None),
        ("MPI_File_open", 0, None, None),
        ("MPI_awaited", 55, None, 1), ("MPI_awaited", 0, 9, None), ("MPI_send", 0, None, None),
    ]  # fmt: skip
    assert {(r["offset_bytes"], r["class"], r["file"])
        for r in rows} == {(None, "none", "mpi:world:2")}
    assert [r["routine"] for r in routines] == ["MPI_Barrier", "MPI_Bcast"]


@pytest.mark.parametrize(
    "use", ["run.files.to_arrow()", "run.sql('SELECT 1')",
        "reader = run.sql_reader('SELECT * FROM events'); reader.read_next_batch()"]
)
def test_a_program_that_closes_nothing_ends_in_silence(two_steps, execute, use):
    done = execute([sys.executable, "-c",
        f"import weir; run = weir.open({str(two_steps)!r}); {use}"]).ok()
    assert (done.stdout, done.stderr) == ("", "")


def test_a_run_goes_with_its_last_user(two_steps):
    run = weir.open(two_steps)
    reader = run.sql_reader("SELECT count(*) AS n FROM events")
    gone = weakref.ref(run)
    del run
    assert reader.read_all().to_pylist() == [{"n": 15}]
    del reader
    gc.collect()
    assert gone() is None


def test_bytes_are_data_and_other_sizes_have_columns_of_their_own(tmp_path):
    """A view of 8 GB, a preallocation, a mapping and ranks of an open were in sums of bytes."""
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    made = [
        ("MPI_File_open", 4, MPI_IO), ("MPI_File_set_view", 8 << 30, MPI_IO),
        ("MPI_File_preallocate", 1 << 30, MPI_IO), ("MPI_File_set_size", 1 << 20, MPI_IO),
        ("MPI_File_write_at_all", 100, MPI_IO), ("pwrite", 100, POSIX), ("mmap", 1 << 16, POSIX),
        ("ftruncate", 1 << 12, POSIX), ("library_put", 50, NETCDF),
    ]  # fmt: skip
    with TraceWriter(directory / "n.weir", "n") as writer:
        process = writer.process(5, 0, 2)
        name, start = process.name("/data/x"), writer.created_ticks
        process.events([
            event(op, start + 10 * i, 5, file=name, size=size, layer=layer)
            for i, (op, size, layer) in enumerate(made)
        ])
    asked = "SELECT op, bytes, length_bytes, filetype_bytes, statistic FROM {} ORDER BY {}"
    with weir.open(tmp_path / "run") as run:
        events = run.sql(asked.format("events", "start_ns")).to_pylist()
        totals = run.sql(asked.format("totals", "first_ns")).to_pylist()
        assert run.sql("SELECT sum(bytes) n FROM events WHERE layer = 'mpi_io'").to_pylist() == [
            {"n": 100}]
    assert [tuple(row.values()) for row in events] == [
        ("MPI_File_open", 0, None, None, None), ("MPI_File_set_view", 0, None, 8 << 30, None),
        ("MPI_File_preallocate", 0, 1 << 30, None, None),
        ("MPI_File_set_size", 0, 1 << 20, None, None),
        ("MPI_File_write_at_all", 100, None, None, None), ("pwrite", 100, None, None, None),
        ("mmap", 0, 1 << 16, None, None), ("ftruncate", 0, 1 << 12, None, None),
        ("library_put", 50, None, None, None),
    ]  # fmt: skip
    assert totals == events


def test_calls_of_libraries_have_the_function_s_name_or_none_in_older_traces(tmp_path):
    """What a record has in the place of an offset; a path has colons as variables' names have."""
    directory = tmp_path / "run" / "s"
    directory.mkdir(parents=True)
    numbers = {one.name: number for number, one in library_functions().items()}
    collective = 2 << 16
    made = [
        ("library_put", NETCDF, numbers["nc_put_vara_float"], "netcdf:/data/wrf_00:00:00:T"),
        ("library_put", HDF5, numbers["H5Dwrite"] | collective, "hdf5:/data/x.h5:/g/T"),
        ("library_close", PNETCDF, numbers["ncmpi_close"], "/data/wrf_00:00:00"),
        ("library_put", NETCDF, None, "netcdf:/data/wrf_00:00:00:T"),
        ("library_put", NETCDF, 0xFFFF, "netcdf:/data/wrf_00:00:00:T"),
        ("MPI_File_write_at_all", MPI_IO, 4096, "/data/wrf_00:00:00"),
        ("pwrite", POSIX, 4096, "/data/wrf_00:00:00"),
    ]  # fmt: skip
    with TraceWriter(directory / "n.weir", "n") as writer:
        process, start = writer.process(5, 0, 2), writer.created_ticks
        process.events([
            event(op, start + 10 * i, 5, file=process.name(name), size=8, layer=layer,
                **({} if offset is None else {"offset": offset}))
            for i, (op, layer, offset, name) in enumerate(made)
        ])
    with weir.open(tmp_path / "run") as run:
        calls = run.sql("SELECT library, function, collective, file, variable, end_ns - start_ns "
            "FROM library_calls ORDER BY start_ns").to_pylist()
        offsets = run.sql("SELECT offset_bytes FROM events ORDER BY start_ns").to_pylist()
        assert run.netcdf_calls.to_arrow().num_rows == 3
    wrf = "/data/wrf_00:00:00"
    assert [tuple(row.values()) for row in calls] == [
        ("netcdf", "nc_put_vara_float", None, wrf, "T", 5),
        ("hdf5", "H5Dwrite", True, "/data/x.h5", "/g/T", 5),
        ("pnetcdf", "ncmpi_close", True, wrf, None, 5),
        ("netcdf", None, None, wrf, "T", 5), ("netcdf", None, None, wrf, "T", 5),
        ("mpi_io", "MPI_File_write_at_all", True, wrf, None, 5),
    ]  # fmt: skip
    assert [row["offset_bytes"] for row in offsets] == [None] * 5 + [4096] * 2
