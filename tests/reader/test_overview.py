# SPDX-License-Identifier: Apache-2.0
"""`weir report RUN` alone: at most two screens, as wide as the screen, with what matters in it;
and the declarations of all tables."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

import pytest
from wait_trace import WaitTrace
from weir_pages import STEPS, write_step

from weir._errors import UsageError
from weir.report import build, render_text, report_json
from weir.report.files.groups import file_groups
from weir.report.frame.amounts import plain
from weir.report.frame.kind import ALL, Options
from weir.report.registry import KINDS, named, report_tables
from weir.report.sentences import sentences
from weir.trace._synthetic import TraceWriter, counter

TWO_SCREENS = 80  # lines
LONG = "/scratch/an/experiment-with-a-long-name/output/of/the/atmosphere/{kind}/{kind}_{number}.nc"


@pytest.fixture(scope="module")
def large():
    """20 steps with 400 files of 40 kinds, long paths, and a trace file that is damaged. Its own
    path is short: a note names it."""
    run = Path(tempfile.mkdtemp()) / "large"
    kinds = [f"{a}{b}" for a in "abcdefgh" for b in "vwxyz"]
    paths = [LONG.format(kind=kind * 3, number=number) for kind in kinds for number in range(10)]
    for at in range(20):
        write_step(run / f"step{chr(97 + at)}", at, paths, calls=900)
    with open(next((run / "stepa").glob("*.weir")), "r+b") as trace:
        trace.truncate(100_000)
    yield build(run)
    shutil.rmtree(run.parent)


def shown(report, **options) -> list[str]:
    text = io.StringIO()
    render_text(report, text, Options(**options))
    return text.getvalue().splitlines()


def files(lines: list[str]) -> list[str]:
    """The rows of the table of files."""
    first = (
        next(at for at, line in enumerate(lines) if line.endswith("File, or files of one pattern"))
        + 1
    )
    last = next(
        at for at in range(first, len(lines)) if lines[at].startswith(("critical: ", "use: "))
    )
    return lines[first:last]


@pytest.mark.parametrize("width", [80, 120])
def test_a_large_run_fits_two_screens(large, width):
    lines = shown(large, width=width)
    assert len(lines) <= TWO_SCREENS
    lines = [line for line in lines if not line.startswith("note: ")]
    assert max(map(len, lines)) <= width, max(lines, key=len)
    assert "(10 of 20; --tables steps)" in "\n".join(lines)
    assert len(files(lines)) == 10 and all(line.endswith(".nc") for line in files(lines))
    assert any("..." in line for line in files(lines)) == (width == 80)


def test_what_makes_figures_wrong_stands_first(large):
    lines = shown(large)
    assert lines[0].startswith(
        "note: INCOMPLETE: the figures below do not show all I/O of the run"
    ) and any(line.startswith("large: 20 steps, 6 ranks, ") for line in lines)


def rows_of(program: WaitTrace, directory) -> tuple[list[str], str]:
    """The rows of the table of files, and all of the overview as one line of words."""
    lines = shown(build(program.write(directory / "run" / "main")))
    return files(lines), " ".join(" ".join(lines).split())


def test_groups_of_one_name_have_their_own_critical_time(tmp_path):
    """Files that are read and files that are written are never together, also where their names
    are of one pattern."""
    program = WaitTrace(2)
    for number in range(6):
        program.io(
            0,
            (1 + number // 3) * 10**9,
            f"/scratch/hist{number}",
            "read" if number < 3 else "write",
        )
        program.barrier()
    rows, text = rows_of(program, tmp_path)
    assert [row.split()[:2] + row.split()[-2:] for row in rows] == [
        ["6.000", "6.000", "w", "/scratch/hist<N>"],
        ["3.000", "3.000", "r", "/scratch/hist<N>"],
    ]
    assert (
        "The largest part of this delay, 6 s, is I/O on the 3 files named like /scratch/hist<N>."
        in text
    )


@pytest.mark.parametrize(("other_s", "first"), [(0, "/scratch/hist"), (200, "/scratch/log")])
def test_the_file_with_most_io_is_first_unless_another_delays_the_run(tmp_path, other_s, first):
    """Rank 1 writes a log for long, while rank 0 computes; rank 1 waits for rank 0's history."""
    program = WaitTrace(2)
    program.io(1, 9 * 10**8, "/scratch/log")
    program.compute(0, 10**9)
    program.io(0, 10**8, "/scratch/hist")
    program.compute(0, other_s * 10**9)
    program.compute(1, other_s * 10**9)
    program.barrier()
    rows, text = rows_of(program, tmp_path)
    assert rows[0].split()[-1] == first and len(rows) == 2
    reason = "Files by I/O time (critical time is below 5% of the run)"
    assert (reason in text) == (first == "/scratch/log")


def test_segments_of_mpi_libraries_delay_no_run(tmp_path):
    """Neither UCX's nor Open MPI's shared memory is a file of the run, however long it takes."""
    program = WaitTrace(2)
    program.io(0, 10**9, "/scratch/out")
    program.barrier()
    for path in (
        "/dev/shm/ucx_shm_posix_5549c4a5",
        "/dev/shm/vader_segment.n.0.6cbc0001.1",
        "/tmp/ompi.n.0/pid.66/smseg-1",
    ):
        program.io(0, 5 * 10**9, path)
        program.barrier()
    rows, text = rows_of(program, tmp_path)
    assert [row.split()[-1] for row in rows] == ["/scratch/out"]
    assert "I/O delays the run by 1 s" in text and "is I/O on the file /scratch/out." in text
    assert "- 3 calls, 15000.000 MB and 15.000 s of 3 shared-memory files of MPI libraries" in text
    as_json = report_json(build(tmp_path / "run"))
    assert (
        {**as_json["mpi_segments"], "seconds": 15}
        == {"files": 3, "calls": 3, "bytes": 15 * 10**9, "seconds": 15}
        and as_json["total"]["calls"] == 1
    )
    everything = report_json(build(tmp_path / "run", all=True))
    assert len(everything["files"]) == 4


def test_short_times_are_shown_in_ms_and_every_heading_has_a_legend(tmp_path):
    program = WaitTrace(2)
    for name in ("/scratch/a", "/scratch/b_1", "/scratch/b_2"):
        program.io(0, 2_000_000, name)
        program.barrier()
    lines = shown(build(program.write(tmp_path / "run" / "main")))
    assert [row.split()[:2] for row in files(lines)] == [["4.000", "4.000"], ["2.000", "2.000"]]
    text = "\n".join(lines)
    assert (
        "  ms\n" in text
        and "%WALL: share of the wall time" in text
        and "Faster I/O\non files can save 6 ms at most." in text
    )
    for legend in ("critical: ", "use: ", "<N>, <M>, *: "):
        assert any(line.startswith(legend) for line in lines), legend
    assert max(map(len, lines)) <= 80


def threads_beside(tmp_path, ms: int):
    """A thread of rank 0 writes while it computes; the other rank waits for it."""
    program = WaitTrace(2)
    program.io(0, ms * 1_000_000, "/scratch/own")
    came = program.io_beside(0, 400_000_000, "/scratch/beside")
    program.compute(0, came - program.now[0] + 600_000_000)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "main"))
    return [plain(one) for one in sentences(report, file_groups(report))]


def test_what_threads_may_cost_comes_first_where_the_certain_delay_is_negligible(tmp_path):
    [delay] = [one for one in threads_beside(tmp_path, 0) if "I/O delays" in one]
    assert delay.startswith("I/O delays the run by up to 400 ms (40 % of its time) if ranks wait")
    assert delay.endswith("in I/O for 400 ms. Else it delays the run by nothing.")


def test_what_threads_may_cost_is_added_to_a_certain_delay(tmp_path):
    [delay] = [one for one in threads_beside(tmp_path, 200) if "I/O delays" in one]
    assert delay.startswith("I/O delays the run by 200 ms") and "by up to 600 ms" in delay


def test_a_negligible_delay_names_no_file(tmp_path):
    program = WaitTrace(2)
    program.io(0, 5_000_000, "/scratch/own")
    program.compute(0, 995_000_000)
    program.barrier()
    report = build(program.write(tmp_path / "run" / "main"))
    assert "I/O delays the run by 5 ms (0.5 % of its time)." in [
        plain(one) for one in sentences(report, file_groups(report))]


def test_options_choose_the_files(large):
    some = files(shown(large, pattern="avavav_*", top=5))
    assert some and all("avavav" in line for line in some)
    rows = files(shown(large, by="file", width=300, top=0))
    by_name = [line.split()[-1] for line in rows if line.endswith(".nc")]
    assert by_name == sorted(by_name) and len(by_name) >= 40


def test_the_tables_it_names_have_something_to_show(tmp_path):
    write_step(tmp_path / "run" / STEPS[0], 1, ["/scratch/an/a", "/scratch/an/b"], calls=30)
    report = build(tmp_path / "run")
    lines = shown(report)
    listed = {
        line.split()[0] for line in lines[lines.index("More tables") + 1 :] if line.startswith("  ")
    }
    for kind in KINDS:
        parts = list(report_tables(report, Options((kind.name,))))
        is_empty = any(isinstance(part, str) and "nothing to show" in part for part in parts)
        assert not (is_empty and kind.name in listed), kind.name
    assert {"waits", "files", "processes"} <= listed and not {
        "units",
        "layers",
        "mpi-io",
        "variables",
    } & listed


def test_every_table_is_declared_once():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all(
        len(kind.shows) <= 60 and kind.page in ("early", "late", "last", "own") for kind in KINDS
    )
    assert named(f"{ALL},graph") == (ALL, "graph")
    with pytest.raises(UsageError,
            match="--tables: no table nonsense; the tables are all, steps, wall, output-cost"):
        named("steps,nonsense")
    with pytest.raises(UsageError, match="--tables: a name is empty; the tables are all, steps"):
        named("")


def test_notes_stand_below_tables_but_those_without_which_figures_mislead(large):
    stream = io.StringIO()
    render_text(large, stream, Options(tables=("steps",), width=80))
    above, below = stream.getvalue().split("\nSteps\n")
    assert above.startswith("note: INCOMPLETE") and "left out" not in above.lower()
    assert "\nNotes\n- " in below and "note: " not in below


def test_the_command_lists_them(weir):
    listed = weir("report", "--tables", "list", ".").ok().stdout.splitlines()
    assert [line.split()[0] for line in listed] == [kind.name for kind in KINDS]


def test_level_summary_has_no_shares_of_files(tmp_path):
    """Its calls on pipes and terminals are among the others: they wait for programs, not for
    files."""
    (tmp_path / "run" / "s").mkdir(parents=True)
    with TraceWriter(tmp_path / "run" / "s" / "n.weir", level=1) as writer:
        at = writer.created_ticks
        process = writer.process(5, last_ticks=at + 10**9)
        process.counters(counter("read", 5000, 10, 1000, at, at + 10**9))
    report = build(tmp_path / "run")
    lines = shown(report)
    [shares] = [line.split() for line in lines if line.startswith("%WALL  ")]
    assert set(shares[1:]) == {"-"}
    text = " ".join(" ".join(lines).split())
    assert "spent 5 ms in calls, those on pipes and terminals included, during" in text
    assert "less than 4 KiB" not in text and report_json(report)["findings"] == []
    listed = [line.split()[0] for line in lines[lines.index("More tables") + 1 :] if line]
    assert "files" not in listed and "detail" not in listed and "summary" in listed
    for name in ("files", "detail"):
        [part] = report_tables(report, Options((name,)))
        assert "nothing to show; level summary does not record which files" in part
