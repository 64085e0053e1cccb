# SPDX-License-Identifier: Apache-2.0
"""What is exported is what the tables have: Parquet and CSV row for row, Darshan's counters against
known answers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest
from query_runs import TWO_STEPS, write_run
from wait_trace import WaitTrace
from weir_process import clean_environment

import weir
from weir.export.files import STORED

duckdb = pytest.importorskip("duckdb", reason="needs the test extra, on Python 3.11 or newer")
pq = pytest.importorskip("pyarrow.parquet", reason="needs the test extra, on Python 3.11 or newer")
pa_csv = pytest.importorskip("pyarrow.csv", reason="needs the test extra, on Python 3.11 or newer")
pa_dataset = pytest.importorskip("pyarrow.dataset",
    reason="needs the test extra, on Python 3.11 or newer")

open_run = weir.open  # `weir` is a fixture in the tests below


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("export") / "run", TWO_STEPS)


def rows(table) -> list[dict]:
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, sort_keys=True))


def test_parquet_is_the_tables(weir, run, tmp_path):
    weir("export", run, "--to", "parquet", "-o", tmp_path / "out").ok()
    names = {str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*.parquet")}
    assert names == {f"{name}.parquet" for name in STORED if name != "events"} | {
        "events/step=traj0/node=n1/part-0.parquet", "events/step=traj0/node=n2/part-1.parquet",
        "events/step=min0/node=n1/part-2.parquet",
    }  # fmt: skip
    with open_run(run) as opened:
        for name in STORED:
            if name != "events":
                made = pq.read_table(tmp_path / "out" / f"{name}.parquet")
                assert rows(made) == rows(opened.table(name).to_arrow())
                assert made.schema.metadata is None or b"pandas" not in made.schema.metadata
        events = pa_dataset.dataset(tmp_path / "out" / "events", partitioning="hive").to_table()
        assert rows(events.select(opened.events.schema.names)) == rows(opened.events.to_arrow())
    found = duckdb.sql(
        f"SELECT step, node, sum(bytes) FROM '{tmp_path}/out/events/**/*.parquet' GROUP BY ALL "
        f"ORDER BY ALL").fetchall()
    assert found == [("traj0", "n1", 4096 + 100 + 800 + 816 + 9 + 4096), ("traj0", "n2", 5050)]


@pytest.mark.parametrize("form", ["perfetto", "totals", "parquet", "csv"])
def test_what_is_there_is_not_overwritten(weir, run, tmp_path, form):
    (tmp_path / "out").write_text("mine")
    done = weir("export", run, "--to", form, "-o", tmp_path / "out")
    assert done.returncode == 2 and "exists already" in done.stderr
    assert (tmp_path / "out").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("command", [("export", "--to", "totals", "-o"),
    ("export", "--to", "perfetto", "-o"), ("query", "SELECT 1", "--format", "csv", "-o")])
def test_a_device_or_named_pipe_is_written_to_as_it_is(weir, run, tmp_path, command):
    """It is not replaced by a file, which as root would be the end of /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # some 2 KB, less than a pipe holds
    weir(command[0], run, *command[1:], pipe).ok()
    assert os.read(reader, 16) and stat.S_ISFIFO(pipe.lstat().st_mode)
    os.close(reader)


def test_a_reader_of_totals_that_goes_away_is_no_fault(tmp_path):
    program = WaitTrace(1)
    for number in range(300):  # more than any buffer on the way holds
        program.io(0, 10, f"/scratch/{number}")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "weir", "export", program.write(tmp_path / "run" / "s"),
        "--to", "totals"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=clean_environment(),
        timeout=300)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_csv_is_the_tables(weir, run, tmp_path):
    weir("export", run, "--to", "csv", "-o", tmp_path / "out", "--tables", "events,steps", "--step",
        "traj0").ok()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"events.csv", "steps.csv"}
    made = pa_csv.read_csv(tmp_path / "out" / "events.csv")
    with open_run(run, step="traj0") as opened:
        table = opened.events.to_arrow()
    assert made.column_names == table.column_names
    assert made.column("offset_bytes").to_pylist() == table.column("offset_bytes").to_pylist()
    assert made.column("op").to_pylist() == table.column("op").to_pylist()


def test_a_run_of_more_than_one_batch_keeps_every_record(weir, tmp_path):
    write_run(tmp_path / "run",
        "step s\nnode n\nprocess pid=1\nread /a at=1 for=1 every=3 bytes=7 offset=0 x=700000")
    weir("export", tmp_path / "run", "--to", "parquet", "-o", tmp_path / "out", "--tables",
        "events").ok()
    made = pq.ParquetFile(tmp_path / "out" / "events" / "step=s" / "node=n" / "part-0.parquet")
    assert made.metadata.num_rows == 700_000 and made.metadata.num_row_groups == 2
    starts = made.read(["start_ns"]).column(0).to_numpy()
    assert (starts[1:] - starts[:-1] == 3).all()


def counters(text: str) -> dict[tuple, str]:
    """(module, rank, file, counter) -> value, of lines as darshan-parser prints them."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            module, rank, _, counter, value, file, mount, kind = line.split("\t")
            assert (mount, kind) == ("UNKNOWN", "UNKNOWN")
            found[module, int(rank), file, counter] = value
    return found


def test_totals_have_darshan_s_names_and_meanings(weir, run):
    text = weir("export", run, "--to", "totals", "--step", "traj0").ok().stdout
    found = counters(text)
    a = {counter: value for (module, rank, file, counter), value in found.items()
        if (module, rank, file) == ("POSIX", 0, "/data/a")}
    assert {name: a[f"POSIX_{name}"] for name in ("OPENS", "READS", "WRITES", "SEEKS", "STATS",
        "MMAPS", "FSYNCS", "FDSYNCS")} == {
        "OPENS": "1", "READS": "0", "WRITES": "2", "SEEKS": "0", "STATS": "0", "MMAPS": "0",
        "FSYNCS": "0", "FDSYNCS": "0",
    }  # fmt: skip
    assert (a["POSIX_BYTES_READ"], a["POSIX_BYTES_WRITTEN"]) == ("0", "4196")
    assert (a["POSIX_F_READ_TIME"], a["POSIX_F_WRITE_TIME"], a["POSIX_F_META_TIME"]) == ("0.000000",
        "0.000000", "0.000000")
    assert found["POSIX", 1, "/data/a", "POSIX_BYTES_READ"] == "4096"
    assert found["POSIX", 0, "/data/f",
        "POSIX_BYTES_WRITTEN"] == "816", "a Fortran statement counts by its system calls"
    assert not [key for key in found if key[2] in ("/data/b", "pipe:[7]", "/etc/hosts")]
    assert "# left out: 5 calls of processes without a rank" in text
    assert "# nprocs: 2\n# run time: 2.0000\n" in text and "# start_time: 1700000000\n" in text


def test_totals_of_time_and_timestamps(weir, tmp_path):
    write_run(tmp_path / "run", """
        step s wall=9
        node n
        process pid=1 rank=3 ranks=4
        open /a at=1000000 for=2000
        write /a at=2000000 for=5000000 bytes=10 offset=0
        fsync /a at=9000000 for=1000000
        lseek /a at=11000000 for=3000
        fread /c at=20000000 for=4000000 bytes=5
        close /a at=30000000 for=1000
    """)
    found = counters(weir("export", tmp_path / "run", "--to", "totals", "-o", tmp_path / "t")
        .ok().stdout or (tmp_path / "t").read_text())
    of = {name: found["POSIX", 3, "/a", f"POSIX_F_{name}"] for name in (
        "WRITE_TIME", "META_TIME", "READ_TIME", "OPEN_START_TIMESTAMP", "WRITE_START_TIMESTAMP",
        "WRITE_END_TIMESTAMP", "READ_END_TIMESTAMP",
        "CLOSE_END_TIMESTAMP",
    )}  # fmt: skip
    assert of == {
        "WRITE_TIME": "0.006000", "META_TIME": "0.000006", "READ_TIME": "0.000000",
        "OPEN_START_TIMESTAMP": "0.001000",
        "WRITE_START_TIMESTAMP": "0.002000", "WRITE_END_TIMESTAMP": "0.007000",
        "READ_END_TIMESTAMP": "0.000000",
        "CLOSE_END_TIMESTAMP": "0.030001",
    }  # fmt: skip
    assert found["STDIO", 3, "/c", "STDIO_READS"] == "1" and found["STDIO", 3, "/c",
        "STDIO_F_READ_TIME"] == "0.004000"
    assert found["POSIX", 3, "/a", "POSIX_FSYNCS"] == "1" == found["POSIX", 3, "/a", "POSIX_SEEKS"]


def test_totals_of_mpi_io(weir, tmp_path):
    write_run(tmp_path / "run", """
        step s wall=9
        node n
        process pid=1 rank=0 ranks=2
        MPI_File_open /a at=0 for=1000000
        MPI_File_read_at /a at=1000000 for=2000000 bytes=100
        MPI_File_read_at_all /a at=4000000 for=2000000 bytes=50
        MPI_File_iwrite_at /a at=7000000 for=1000000 bytes=7
        MPI_File_write_all_begin /a at=8000000 for=1000000 bytes=9
        MPI_File_write_all_end /a at=9000000 for=1000000
        MPI_File_sync /a at=10000000 for=3000000
        pwrite /a at=10500000 for=1000000 bytes=16 offset=0
    """)
    found = counters(weir("export", tmp_path / "run", "--to", "totals").ok().stdout)
    mpi = {counter: value for (module, _, _, counter), value in found.items() if module == "MPI-IO"}
    counts = {name: mpi[f"MPIIO_{name}"] for name in (
        "INDEP_READS", "COLL_READS", "NB_READS", "SPLIT_READS", "INDEP_WRITES", "COLL_WRITES",
        "NB_WRITES", "SPLIT_WRITES", "SYNCS", "VIEWS",
        "BYTES_READ", "BYTES_WRITTEN",
    )}  # fmt: skip
    assert list(counts.values()) == ["1", "1", "0", "0", "0", "0", "1", "1", "1", "0", "150", "16"]
    assert [mpi[f"MPIIO_F_{name}_TIME"] for name in ("READ", "WRITE", "META")] == ["0.004000",
        "0.006000", "0.001000"]
    assert found["POSIX", 0, "/a", "POSIX_BYTES_WRITTEN"] == "16"


def test_nothing_is_overwritten_and_mistakes_are_reported(weir, run, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    for arguments, word in (
        (["--to", "xml", "-o", "x"], "parquet"), (["--to", "parquet"], "-o"),
        (["--to", "csv", "-o", "x", "--tables", "io"], "events"),
        (["--to", "perfetto", "-o", "x", "--tables", "events"], "--tables"),
        (["--to", "parquet", "-o", "there"], "exists already"),
    ):  # fmt: skip
        done = weir("export", run, *arguments, cwd=tmp_path)
        assert done.returncode == 2 and word in done.stderr, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"there"} and (tmp_path / "there"
        / "mine").read_text() == "x"
