# SPDX-License-Identifier: Apache-2.0
"""What `weir report` says of programs whose files have layers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from weir.advise.advise import findings_of
from weir.report import build
from weir.report.files.compute import files_of
from weir.report.layers.compute import layers_of


def test_a_rank_that_reads_ahead_is_not_called_incomplete(weir, testfs, tmp_path):
    """The kernel counts megabytes for a program that asks for 0.1 MB."""
    fs = testfs("direct")
    (fs.backing / "a.dat").write_bytes(bytes(8 << 20))
    rules, program = tmp_path / "rules.toml", tmp_path / "reader.py"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "bufa:1MiB:8"\n')
    program.write_text(
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for at in range(0, 8 << 20, 32768): assert len(os.pread(fd, 512, at)) == 512\n"
    )
    command = ["python3", program, fs.path / "a.dat"]
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--", *command, cwd=tmp_path).ok()
    report = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    [reader] = [p for p in report["processes"] if Path(p["command"].split()[1]).name == "reader.py"]
    assert min(reader["kernel_bytes_read"], reader["seen_bytes_read"]) > 1_000_000
    assert not reader["incomplete"]


def test_the_first_page_says_why_the_file_with_most_io_was_bypassed(weir, testfs, tmp_path):
    """dd copies its files onto the numbers of the standard streams, which write unseen."""
    fs = testfs("direct")
    (fs.backing / "in.dat").write_bytes(bytes(1 << 20))
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*.dat"\nstack = "bufa:64KiB:4"\n')
    command = ["dd", f"if={fs.path}/in.dat", f"of={fs.path}/out.dat", "bs=1k"]
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--", *command, cwd=tmp_path).ok()
    page = " ".join(weir("report", tmp_path / "run").ok().stdout.split())
    assert "the file under layers with the most I/O time, was bypassed by all its layers: the " \
           "program copied its descriptor onto a number that a stream of the C library may use" \
           in page
    tables = weir("report", tmp_path / "run", "--tables", "layers").ok().stdout
    assert "bypassed: streams" in tables
    assert (fs.backing / "out.dat").read_bytes() == bytes(1 << 20)


SQLITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("create table t(a, b)")
for i in range(60):
    db.execute("insert into t values(?, ?)", (i, "x" * 500))
    db.commit()
"""


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_calls_past_the_layers_are_requests(weir, testfs, tmp_path, level):
    """sqlite locks ranges of its file, which layers then bypass: it makes all requests itself."""
    fs = testfs("direct")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*.db"\nstack = "bufa:64KiB:4"\n')
    fs.reset()
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--level", level, "--",
        sys.executable, "-c", SQLITE, fs.path / "a.db", cwd=tmp_path).ok()
    counted = fs.stats().requests
    run = build(str(tmp_path / "run"))
    journal = next(one for one in files_of(run) if one.file.endswith("-journal"))
    calls = {op.op: op.calls for op in journal.ops}
    (one,) = (one for one in layers_of(run) if one.file.endswith("a.db"))
    assert one.system is not None and [past.reason for past in one.bypassed] == ["locked"]
    assert one.past.writes == one.system.writes == counted["write"] - calls["pwrite"] > 100
    assert one.logical.writes == one.system.writes
    table = weir("report", tmp_path / "run", "--tables", "layers").ok().stdout
    assert "past: of these requests, calls that the program made of the kernel itself" in " ".join(
        table.split())
    assert [one.finding for one in findings_of(run).advices if "a.db" in one.files[0]
        and "requests below the layers for" in one.sentence] == []


def test_what_streams_write_past_the_layers_is_not_known(weir, tmp_path):
    """awk writes whole buffers of its stream, which a layer with small ones has no use for."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*.out"\nstack = "bufa:4KiB:2"\n')
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--", "awk",
        'BEGIN { for (i = 0; i < 40000; i++) print i, "some line" > "x.out" }', cwd=tmp_path).ok()
    (one,) = layers_of(build(str(tmp_path / "run")))
    assert one.system is None and one.has_streams
    table = weir("report", tmp_path / "run", "--tables", "layers").ok().stdout
    assert "a stream of the C library" in " ".join(table.split())


def test_tables_of_layers_state_meanings_and_leave_out_what_no_table_has(weir, testfs, tmp_path):
    fs = testfs("direct")
    (fs.backing / "a.dat").write_bytes(bytes(1 << 20))
    rules, program = tmp_path / "rules.toml", tmp_path / "reader.py"
    rules.write_text('[[rule]]\nname = "*"\nstack = "bufa:64KiB:4"\n')
    program.write_text(
        "import os, sys\n"
        "own = os.open('/dev/shm/vader_segment.%d' % os.getpid(), os.O_RDWR | os.O_CREAT)\n"
        "os.unlink('/dev/shm/vader_segment.%d' % os.getpid())\n"
        "os.pwrite(own, b'x' * 4096, 0)\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for at in range(0, 1 << 20, 512): assert len(os.pread(fd, 512, at)) == 512\n"
    )
    weir("run", "--rules", rules, "--trace", tmp_path / "run", "--", "python3", program,
        fs.path / "a.dat", cwd=tmp_path).ok()
    tables = weir("report", tmp_path / "run", "--tables", "layers").ok().stdout
    assert "bufa, hits: reads served from buffers" in tables
    assert "file system: requests that the layers made of them" in " ".join(tables.split())
    listed = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)["layers"]
    assert [Path(one["file"]).name for one in listed if one["file"].startswith("/dev/shm")] == []
    assert "a.dat" in {Path(one["file"]).name for one in listed}
    assert not any(one["file"].startswith(("/usr", "/etc", "/lib")) for one in listed)
    every = json.loads(weir("report", tmp_path / "run", "--json", "--all").ok().stdout)["layers"]
    assert len(every) >= len(listed)
