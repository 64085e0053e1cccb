# SPDX-License-Identifier: Apache-2.0
"""The page as a file: its size, what it may load, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir_pages import write_step

from weir.report import build
from weir.report.files.groups import file_groups
from weir.report.frame.amounts import number, seconds
from weir.report.frame.table import Table
from weir.report.html import render_html, tables
from weir.report.mpi_io.table import MPI_IO
from weir.report.sentences import sentences
from weir.report.timeline import page as overtime
from weir.report.timeline.encode import Packed, pack, unpack
from weir.report.waits.summary import synchronisation_of
from weir.trace._synthetic import TraceWriter, counter, records
from weir.trace.ops import op_named

MOST_BYTES = 2_000_000


@settings(max_examples=100)
@given(st.lists(st.just(0) | st.integers(1, 2**50), min_size=1, max_size=200),
    st.sampled_from([8, 16]))
def test_packed_numbers_are_near_and_nothing_stays_nothing(values, bits):
    plane = np.array(values, np.uint64)
    back, zeros = unpack(pack([plane, plane * 0], bits), 2)
    assert not zeros.any()
    assert np.array_equal(back > 0, plane > 0)
    some = plane[plane > 0].astype(float)
    if len(some):
        step = np.log(some.max() / some.min()) / (2**bits - 2)
        assert np.all(np.abs(np.log(back[plane > 0] / some)) <= step / 2 + 1e-9)


@pytest.mark.parametrize("kind", ["zeros", "noise"])
def test_planes_are_packed_where_their_text_is_short_enough_and_to_the_same_text(kind):
    noise = np.random.default_rng(5).integers(1, 2**40, (3, 50_000))
    planes = list(noise * (kind == "noise"))
    whole = pack(planes)
    assert pack(iter(planes), most_text=len(whole.text)) == whole
    made = []
    assert pack((made.append(one) or one for one in planes), most_text=len(whole.text) - 1) is None
    assert pack((made.append(one) or one for one in planes), most_text=100 - 50 * (kind == "zeros")
        ) is None
    assert len(made) == (4 if kind == "noise" else 6)  # the first plane of noise is too long


@pytest.fixture(scope="module")
def dense_run(tmp_path_factory):
    """384 ranks that read and write all the time, each slice otherwise: the worst that tiles can
    be."""
    run = tmp_path_factory.mktemp("dense")
    random = np.random.default_rng(1)
    ranks, calls = 384, 2000
    with TraceWriter(run / "n.weir") as writer:
        for rank in range(ranks):
            process = writer.process(1000 + rank, rank, ranks)
            starts = writer.created_ticks + np.arange(calls) * 1_000_000 + random.integers(0,
                300_000, calls)
            kinds = random.choice([op_named(one).value for one in ("read", "pwrite", "stat")],
                calls)
            files = [process.name(f"/scratch/an/{'long/' * 20}{rank}.{i}") for i in range(4)]
            sizes = random.integers(1, 2**22, calls)
            process.events(records(kinds, starts, random.integers(100, 700_000, calls),
                file=random.choice(files, calls), size=sizes))
    return run


def test_the_page_is_small_however_dense_the_run(dense_run):
    page = render_html(build(dense_run))
    assert len(page.encode()) < MOST_BYTES
    for name, most in (("timeline", overtime.MOST_LANES_TEXT),
            ("rates", overtime.MOST_RATES_TEXT), ("heat", overtime.MOST_FILES_TEXT)):
        (text,) = re.findall(rf'id="blob-{name}-tiles">([^<]*)<', page)
        assert 1000 < len(text) <= most


def test_it_may_run_its_own_script_and_load_nothing(page):
    text = page.read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules == {"default-src": "'none'", "style-src": "'unsafe-inline'",
        "script-src": f"'sha256-{digest}'"}
    assert not re.search(r"""(?:src|href)\s*=\s*["']?[^"'#]""",
        re.sub(r"<script.*?</script>", "", text, flags=re.S))


def test_numbers_of_the_page_are_those_of_the_report(page, plain_run):
    text, report = page.read_text(), build(plain_run)
    for step in report.steps:
        assert f"<th scope=\"row\">{step.name}</th>" in text
    assert f"of {number(report.all.calls)} calls;" in text


def test_the_command_writes_it_whole_or_not_at_all(weir, plain_run, tmp_path):
    done = weir("report", plain_run, "--html", tmp_path / "a b.html").ok()
    assert done.stdout == "" and "a b.html" in done.stderr
    assert (tmp_path / "a b.html").read_text().endswith("</html>\n")
    refused = weir("report", plain_run, "--html", tmp_path / "none" / "out.html")
    assert refused.returncode == 3 and "cannot be written" in refused.stderr
    refused = weir("report", plain_run, "--html", tmp_path)
    assert refused.returncode == 3 and "cannot be written" in refused.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["a b.html"]


def test_a_device_or_a_pipe_stays_what_it_is(weir, plain_run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    copy = tmp_path / "copy"
    with open(copy, "wb") as to, subprocess.Popen(["cat", pipe], stdout=to) as reader:
        try:
            weir("report", plain_run, "--html", pipe).ok()
            assert stat.S_ISFIFO(pipe.stat().st_mode)
            reader.wait(timeout=300)
        finally:
            reader.kill()
    assert copy.read_bytes().endswith(b"</html>\n")


@pytest.mark.parametrize("more", [["--json"], ["--tables", "files"], ["--top", "3"]])
def test_options_that_the_page_cannot_heed_are_refused(weir, plain_run, tmp_path, more):
    done = weir("report", plain_run, "--html", tmp_path / "out.html", *more)
    assert done.returncode == 2 and "--html" in done.stderr
    assert not (tmp_path / "out.html").exists()


def mount(point: str, kind: str) -> str:
    """A name as the trace has it for each mount (docs/formats/trace.md, section 3.8)."""
    return f"mount\n36 35 98:0 / {point} rw,noatime - {kind} server:/x rw"


def test_rates_are_reported_by_file_system(tmp_path):
    with TraceWriter(tmp_path / "n.weir") as writer:
        process = writer.process(100, 0, 1)
        for point, kind in (("/", "ext4"), ("/scratch", "lustre"), ("/home", "nfs4")):
            process.name(mount(point, kind))
        files = np.array([process.name(name) for name in ("/scratch/a", "/scratch/deep/b",
            "/home/c")])
        starts = writer.created_ticks + 1000 * np.arange(300)
        process.events(records(op_named("pwrite").value, starts, 900, file=np.resize(files, 300),
            size=1000))
        process.events(records(op_named("read").value, starts, 50, file=0, size=7), thread=2)
    sections = {one.name: one for one in overtime.over_time(build(tmp_path))}
    groups = sections["rates"].data["rows"]
    assert sorted(groups) == ["/home (nfs4)", "/scratch (lustre)", "other files"]
    packed = Packed(*(sections["rates"].data[key] for key in ("bits", "least", "step")),
        sections["rates"].blobs["tiles"])
    *_, read, written, calls, _ = (plane.reshape(3, -1).sum(axis=1) for plane in unpack(packed, 7))
    of = dict(zip(groups, zip(read, written, calls)))
    assert of["/scratch (lustre)"] == pytest.approx((0, 200_000, 200), rel=1e-3)
    assert of["/home (nfs4)"] == pytest.approx((0, 100_000, 100), rel=1e-3)
    assert of["other files"] == pytest.approx((2100, 0, 300), rel=1e-3)


def test_the_most_important_sentences_come_first(plain_run):
    report = build(plain_run)
    printed = list(sentences(report, file_groups(report)))
    assert printed[0].startswith("At least one rank was in I/O during ")
    assert not any(one.startswith("Step ") for one in printed)  # each has its share
    assert any("Most I/O time goes to the 12 files named like TRAJHR00/trajspecL<N>" in one
        for one in printed)


def test_files_that_a_run_waits_for_are_reported_together(plain_run, tmp_path):
    """Twelve files that ranks read and write evenly cost more than any of them; where there is one,
    it is that one."""
    report = build(plain_run)
    critical = sum(synchronisation_of(step).waits.critical_ns for step in report.steps)
    printed = list(sentences(report, file_groups(report)))[1]
    assert printed.endswith(
        f"{seconds(critical / 1e9)}, is I/O on the 12 files named like TRAJHR00/trajspecL<N>.")
    write_step(tmp_path / "run" / "main", 0, ["/scratch/an/field"])
    alone = build(tmp_path / "run")
    critical = synchronisation_of(alone.steps[0]).waits.critical_ns
    assert list(sentences(alone, file_groups(alone)))[1].endswith(
        f"{seconds(critical / 1e9)}, is I/O on the file field.")


def test_a_step_with_much_more_than_its_share_is_reported(tmp_path):
    for i, name in enumerate(("before", "worst", "after")):
        write_step(tmp_path / "run" / name, i, ["/scratch/an/f"], calls=2000 if name == "worst"
            else 100)
    report = build(tmp_path / "run")
    (printed,) = [one for one in sentences(report, file_groups(report)) if one.startswith("Step ")]
    assert printed.startswith("Step worst has ") and printed.endswith(
        "ms of its 3\u00a0s wall time.")


def test_the_page_of_one_rank_speaks_of_that_rank(plain_run):
    report = build(plain_run, rank=2)
    text = render_html(report)
    assert "I/O delays the run by" in render_html(
        build(plain_run)) and "I/O delays the run by" not in text
    assert (
        "I/O time of rank 2" in text
        and "Rank 2 was in I/O" in text
        and "of a rank, mean</dt>" not in text
    )
    assert f"of {number(report.all.calls)} calls;" in text


def test_files_are_grouped_whole(plain_run):
    report = build(plain_run)
    groups = file_groups(report)
    assert [(one.name, one.files) for one in groups] == [("TRAJHR00/trajspecL<N>", 12)]
    assert (sum(one.ns for one in groups), sum(one.calls for one in groups)) == (report.all.ns,
        report.all.calls)
    assert sum(one.bytes_read + one.bytes_written for one in groups) == report.all.bytes


def test_steps_without_a_trace_or_without_single_calls_are_named(plain_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(plain_run, run)
    for number, name in enumerate(("early", "late")):
        (run / name).mkdir()
        job = {"format": 1, "step": name, "level": "trace", "started_realtime_ns": 10**17 + number
            * 10**18, "ended_realtime_ns": 10**17 + number * 10**18}
        (run / name / "job.json").write_text(json.dumps(job))
    with TraceWriter(run / "late" / "n.weir", level=2) as writer:
        writer.process(7, 0, 1).counters(counter("read", 5, 100, 10, writer.created_ticks,
            writer.created_ticks + 99))
    plain, found = ({one.name: one for one in overtime.over_time(build(path))}
        for path in (plain_run, run))
    assert found["timeline"].blobs == plain["timeline"].blobs
    assert "no single calls were recorded of them (level trace does): early, late." in found[
        "heat"].body
    page = render_html(build(run))
    assert "INCOMPLETE" in page and 'class="note grave"' in page


def page_of_a_command(directory, status: int, *counters, level: int = 3) -> str:
    """The page of a step whose command ended with this status, with these counters and no records.
    """
    directory.mkdir()
    begin = 10**18
    job = {"format": 1, "step": "main", "level": "trace", "started_realtime_ns": begin,
        "ended_realtime_ns": begin + 10**9, "exit_status": status}
    (directory / "job.json").write_text(json.dumps(job))
    with TraceWriter(directory / "n.weir", level=level, created_realtime_ns=begin) as writer:
        at = writer.created_ticks
        writer.process(7, 0, 1).counters(*(counter(name, calls, size, 10, at, at + 99)
            for name, calls, size in counters))
    return render_html(build(directory))


def test_what_a_run_without_names_of_files_moved_is_reported(tmp_path):
    page = page_of_a_command(tmp_path / "main", 0, ("read", 5, 300), ("write", 2, 1_000_000),
        level=1)
    assert "<b>1.5\u00a0kB | 2\u00a0MB</b>" in page
    assert "When there was I/O is not known of main" in page and "wall clock</li>" in page


def test_a_run_that_failed_says_so_above_its_figures(tmp_path):
    printed = '<p class="note grave">step failed: the command ended with status 137</p>'
    page = page_of_a_command(tmp_path / "failed", 137, ("read", 5, 100), level=2)
    assert printed in page and page.index(printed) < page.index('<div class="findings">')
    assert 'class="note grave">step' not in page_of_a_command(tmp_path / "well", 0,
        ("read", 5, 100), level=2)


def test_a_run_without_io_is_no_riddle(tmp_path):
    page = page_of_a_command(tmp_path / "main", 0)
    assert "No I/O on files was recorded in the 1\u00a0s of the run." in page
    assert "Faster I/O on files" not in page and "- of it in rank 0" not in page


def test_what_a_step_waits_for_stands_beside_its_bar(plain_run):
    report = build(plain_run)
    critical = [synchronisation_of(step).waits.critical_ns for step in report.steps]
    page = render_html(report)
    assert all(critical) and page.count(", waited for ") == len(critical)
    for ns in critical:
        assert f", waited for {seconds(ns / 1e9)}" in page


def test_the_first_tables_of_a_long_section_are_open(plain_run):
    """Placement, hints and access of the file with most bytes, and those of the others folded."""
    made = [Table(f"{what} of {file}", ("<a",), (("x",),) * rows) for file in "fg"
        for what, rows in (("placement", 4), ("hints", 20), ("access", 20))]
    kind = replace(MPI_IO, tables=lambda *_: made)
    body = tables.table_section(build(plain_run), kind).body
    assert re.findall("<summary>(.*?)</summary>", body) == ["hints of g", "access of g"]
    assert re.findall("<caption>(.*?)</caption>", body) == ["placement of f", "hints of f",
        "access of f", "placement of g"]


def test_a_directory_whose_name_is_no_text(weir, tmp_path):
    run = os.fsencode(tmp_path) + b"/bad\xffrun"
    with TraceWriter(tmp_path / "n.weir") as writer:
        writer.process(1000, 0, 1)
    os.mkdir(run)
    os.replace(tmp_path / "n.weir", os.path.join(run, b"n.weir"))
    weir("report", os.fsdecode(run), "--html", tmp_path / "page.html").ok()
    assert "<title>" in (page := (tmp_path / "page.html").read_text()) and "bad\\udcffrun" in page
