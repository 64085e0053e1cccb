# SPDX-License-Identifier: Apache-2.0
"""What a reader must be able to read in tables: names of files and routines in full, lines that say
something, remarks that fit the screen, and who ran the job."""

from __future__ import annotations

import io
import os
import pwd

import pytest
from wait_trace import WaitTrace

from weir.analysis.names import shown
from weir.report import build, render_text, report_json
from weir.report.files.groups import file_groups
from weir.report.frame.kind import Options
from weir.report.frame.table import Table, text_lines
from weir.report.html.page import render_html
from weir.report.html.pictures import files_that_matter
from weir.trace._synthetic import TraceWriter, event

MS = 1_000_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("/scratch/out.nc", "out.nc"),
        ("/scratch/two words", "two words"),
        ("/scratch/ ", '" "'),
        ("/scratch/out.nc ", '"out.nc "'),
        ("/scratch/\n", r'"\n"'),
        ("/scratch/a\tb", r'"a\tb"'),
        ("/scratch/\\n", r"\n"),  # a backslash and an n
        ('/scratch/"a\\\x1b', r'"\"a\\\x1b"'),
        ("/scratch/\u00a0", r'"\xa0"'),
        ("/scratch/\udcff", r'"\udcff"'),
        ("", ""),
    ],
)
def test_names_that_would_not_be_seen_are_in_quotes(name, text):
    assert shown(name, "/scratch") == text


def printed(report, **options) -> str:
    text = io.StringIO()
    render_text(report, text, Options(**options))
    return text.getvalue()


def test_a_blank_name_is_in_quotes_in_all_tables(tmp_path):
    program = WaitTrace(2)
    for name in ("/ ", "/\n", "/plain"):
        program.io(0, MS, name)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    for tables in ((), ("files",), ("output-cost",), ("waits",), ("patterns",)):
        text = printed(report, tables=tables)
        assert '"/ "' in text and r'"/\n"' in text and '"/plain"' not in text, tables


LONG_ROUTINE, LONG_COMMUNICATOR = "MPI_Reduce_scatter_block", "world/10.20.30/40.50.60/70.80.90"


def test_names_of_routines_are_whole_and_the_table_fits_the_screen(tmp_path):
    program = WaitTrace(3)
    program.compute(0, 50 * MS)
    program.barrier(comm=LONG_COMMUNICATOR, name=LONG_ROUTINE)
    report = build(program.write(tmp_path / "run" / "s"))
    text = printed(report, tables=("waits",))
    assert LONG_ROUTINE in text and max(map(len, text.splitlines())) <= 80
    assert LONG_ROUTINE in render_html(report)


def test_a_column_of_names_is_never_shortened():
    name, path = "ncmpi_put_varn_longlong_all_and_more", "/scratch/" + "x" * 60
    table = Table("T", ("<Routine", "Calls", "<File"), ((name, "1", path),), whole=("<Routine",))
    lines = list(text_lines(table, 80))
    assert max(map(len, lines)) <= 80 and name in lines[2] and path not in lines[2]
    narrow = list(text_lines(table, 50))
    assert max(map(len, narrow)) <= 50 and sum(name in line for line in narrow) >= 1


def test_remarks_are_wrapped_where_a_table_stays_in_one_piece():
    remark = " ".join(["word"] * 40)
    table = Table("T", ("<a",), (("x" * 100,),), remarks=(remark,))
    title, head, row, *remarks = text_lines(table, 80, is_split=False)
    assert len(row) == 100 and max(map(len, remarks)) <= 80
    assert " ".join(" ".join(remarks).split()) == remark


def test_files_with_times_of_zero_are_counted_and_not_listed(tmp_path):
    program = WaitTrace(2)
    program.io(0, 300 * MS, "/scratch/a")
    for name in ("one", "other"):
        program.io(0, 1000, f"/scratch/{name}")
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    text = printed(report)
    assert "(1 of 3 lines)" in text and "/scratch/other" not in text
    assert "not listed: 2 with less than 0.0005 s; --top 0 lists all" in text
    assert "/scratch/other" in printed(report, top=0)
    costs = printed(report, tables=("output-cost",))
    assert "(1 of 3, the others 0.000 s)" in costs and "/scratch/other" not in costs
    assert "/scratch/other" in printed(report, tables=("output-cost",), pattern="other")


def test_where_all_times_are_zero_all_files_are_listed(tmp_path):
    program = WaitTrace(2)
    for name in ("one", "other"):
        program.io(0, 100, f"/scratch/{name}")
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    for tables in ((), ("output-cost",)):
        text = printed(report, tables=tables)
        assert "/scratch/one" in text and "/scratch/other" in text and "not listed" not in text


def test_the_picture_of_files_that_matter_has_no_file_that_delays_nothing(tmp_path):
    program = WaitTrace(2)
    program.io(0, 300 * MS, "/scratch/late")
    program.io(1, 100 * MS, "/scratch/beside")  # while the other rank is in I/O
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    picture = files_that_matter(report, file_groups(report))
    assert [bar.name for bar in picture.bars] == ["/scratch/late"]
    assert picture.legend == ("critical",
        "time by which I/O on the file delays the run; 1 other file does not delay it")


def test_examples_of_a_pattern_are_names_that_differ(tmp_path):
    """Of four directories each with the same four files; a directory of many names; and a pattern
    that also fits a file of another use."""
    with TraceWriter(tmp_path / "n.weir") as writer:
        begin, process = writer.created_ticks + 1000, writer.process(100, 0, 1, cwd="/scratch")
        names = [f"job/{which}/{number}/{kind}" for which in "abcd" for number in range(2)
            for kind in ("update", "body", "hdr", "depar")]
        names += [f"{kind}.nc" for kind in ("mean", "sum", "least", "most")]
        names += [f"same/{which}.{number}/f" for which in "abcd" for number in range(2)]
        process.events([
            event(op, begin + at, 1, file=process.name(f"/scratch/{name}"), size=1000 - at)
            for at, (op, name) in enumerate([*(("write", name) for name in names),
                ("read", "in.nc")])
        ])
    groups = {one.name: one.files for one in file_groups(build(tmp_path))}
    assert groups == {"job/*/<N>/* (update, body, ...)": 32, "./*.nc (mean.nc, sum.nc, ...)": 4,
        "same/*.<N>/f": 8, "in.nc": 1}


def test_who_ran_which_job_is_in_the_first_line_and_in_json(weir, tmp_path):
    weir("trace", "-o", tmp_path / "run", "--", "sh", "-c", "echo x > there", cwd=tmp_path,
        env={"SLURM_JOB_ID": "4711"}).ok()
    report, user = build(tmp_path / "run"), pwd.getpwuid(os.geteuid()).pw_name
    head = " ".join(printed(report).partition("\n\n")[0].split())
    assert f", user {user}, job Slurm 4711" in head
    [step] = report_json(report)["steps"]
    assert (step["user"], step["batch_system"], step["job_id"]) == (user, "Slurm", "4711")


def test_who_ran_it_is_left_out_where_it_was_not_recorded(tmp_path):
    program = WaitTrace(2)
    program.io(0, MS)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "s"))
    assert "user" not in printed(report).splitlines()[0]
    [step] = report_json(report)["steps"]
    assert step["user"] is step["batch_system"] is step["job_id"] is None
