# SPDX-License-Identifier: Apache-2.0
"""The first screen of the page: job, verdict, figures, pictures; what is folded below it; and the
two sheets of paper that it prints on."""

from __future__ import annotations

import base64
import io
import json
import os
import pwd
import re
from pathlib import Path

import numpy as np
import pytest
from weir_pages import Opened, write_step

from weir.report import build, render_text
from weir.report.html import render_html, write_html
from weir.report.html.job import job_facts
from weir.report.files.groups import file_groups
from weir.report.html.pictures import (
    files_that_matter, over_time_picture, over_time_pictures
)  # fmt: skip
from weir.trace._synthetic import TraceWriter, event, records
from weir.trace.ops import op_named

RANKS, NODES = 1000, 8
LONGEST = "/scratch/" + "/".join(["z" * 200] * 15)
PAPER = {"A4": (8.27, 11.69), "Letter": (8.5, 11)}


@pytest.fixture(scope="module")
def large_run(tmp_path_factory) -> Path:
    """1,000 ranks on 8 nodes that write between 5 barriers; the longer, the higher the number."""
    run = tmp_path_factory.mktemp("large") / "global"
    run.mkdir()
    begin = 10**18
    job = {"format": 1, "step": "main", "cwd": "/scratch", "level": "trace", "exit_status": 0,
        "command": ["srun", "-n", str(RANKS), "./model", "x" * 3000], "user": "oper",
        "batch_system": "Slurm", "job_id": "4711", "started_realtime_ns": begin,
        "ended_realtime_ns": begin + 10**10}
    (run / "job.json").write_text(json.dumps(job))
    each, number = RANKS // NODES, np.arange(5)
    for node in range(NODES):
        with TraceWriter(run / f"nid{node}.weir", f"nid{node:06d}.cluster",
                created_realtime_ns=begin) as writer:
            for rank in range(node * each, (node + 1) * each):
                process = writer.process(1000 + rank, rank, RANKS, mpi=1)
                at = writer.created_ticks + 10_000_000 + number * 100_000_000
                took = 1_000_000 + rank * 10_000
                process.events(records(op_named("pwrite").value, at, took,
                    file=process.name("/scratch/out"), size=1 << 20))
                process.events(records(op_named("MPI_collective").value, at + took,
                    60_000_000 - took, file=process.name(f"mpi:world:{RANKS}"), size=1 << 32,
                    offset=number))
    return run


@pytest.fixture(scope="module")
def pages(plain_run, large_run, tmp_path_factory) -> dict[str, Path]:
    """By what is unusual of the run."""
    base = tmp_path_factory.mktemp("pages")
    one = base / "one"
    one.mkdir()
    with TraceWriter(one / "n.weir") as writer:
        process = writer.process(100)
        process.events(event("write", writer.created_ticks, 5_000_000, size=10**6,
            file=process.name("/scratch/restart")))
    write_step(base / "long" / "main", 1, [f"{LONGEST}{i}" for i in range(40)], calls=300)
    for file in (base / "long" / "main").glob("*.weir"):
        os.truncate(file, 100_000)  # several grave notes
    empty = base / "empty"
    empty.mkdir()
    with TraceWriter(empty / "n.weir", level=1) as writer:
        writer.process(100)
    runs = {"plain": plain_run, "large": large_run, "one": one, "long": base / "long",
        "empty": empty}
    for name, run in runs.items():
        write_html(build(run), base / f"{name}.html")
    return {name: base / f"{name}.html" for name in runs}


NAMES = ("plain", "large", "one", "long", "empty")


@pytest.mark.parametrize("paper", PAPER)
@pytest.mark.parametrize("name", NAMES)
def test_it_prints_on_two_sheets(driver, pages, name, paper):
    Opened(driver, pages[name])  # unfolded: what was folded is left out all the same
    width, height = PAPER[paper]
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True,
        "preferCSSPageSize": paper == "A4", "paperWidth": width, "paperHeight": height})
    pdf = base64.b64decode(printed["data"])
    assert len(re.findall(rb"/Type /Page\b(?!s)", pdf)) in ({1, 2} if name == "empty" else {2})


@pytest.mark.parametrize("name", ("plain", "large", "one"))
def test_job_verdict_figures_and_pictures_are_on_the_first_screen(driver, pages, name):
    page = Opened(driver, pages[name], unfold=False)
    page.shape(1280, 800)
    bottoms = page.js("return ['.job', '.findings', '.cards', '.pictures'].map(one => "
                      "document.querySelector(one).getBoundingClientRect().bottom)")
    assert sorted(bottoms) == bottoms and bottoms[-1] <= 800
    assert page.js("return document.querySelectorAll('.cards div').length") == 5
    assert page.js("return [...document.querySelectorAll('.fold')].every(one => !one.open)")
    assert page.js("return document.querySelectorAll('.pictures figure').length") == 3
    assert page.console() == []
    page.shape(1280)


def test_texts_of_the_pictures_do_not_overlap(driver, pages):
    for name in NAMES:
        page = Opened(driver, pages[name], unfold=False)
        hit = page.js("""const all = [...document.querySelectorAll('.pictures svg text')].filter(
            t => t.textContent).map(t => t.getBoundingClientRect());
          return all.some((a, i) => all.slice(i + 1).some(b => a.left < b.right - 1 &&
            b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));""")
        assert not hit, name


def test_a_link_a_key_and_a_button_unfold(driver, page):
    opened = Opened(driver, page, unfold=False)

    def is_open(name):
        return opened.js("return document.querySelector(`#${arguments[0]} > details`).open", name)

    driver.find_element("css selector", "nav a[href='#files']").click()
    opened.settle()
    assert is_open("files") and not is_open("steps")
    driver.find_element("css selector", "#steps summary").send_keys("\ue007")
    opened.settle()
    assert is_open("steps")
    button = driver.find_element("id", "unfold-all")
    assert button.text == "Unfold all"
    button.send_keys("\ue007")
    opened.settle()
    assert opened.js("return [...document.querySelectorAll('.fold')].every(one => one.open)")
    assert button.text == "Fold all"
    assert len(opened.drawn("lanes")) > 4


def test_the_verdict_is_that_of_the_terminal(plain_run, page):
    text = io.StringIO()
    report = build(plain_run)
    render_text(report, text)
    (block,) = re.findall(r'<div class="findings">(.*?)</div>', page.read_text(), re.S)
    found = [re.sub("&lt;", "<", re.sub("&gt;", ">", re.sub("&#39;", "'", one)))
        for one in re.findall("<p>(.*?)</p>", block)]
    plain = " ".join(text.getvalue().replace(",", "").split())
    assert 1 <= len(found) <= 3
    for one in found:
        assert " ".join(one.replace(",", "").replace("\u00a0", " ").split()) in plain


def choose(page: Opened, label: str, value: str) -> None:
    page.js("const s = document.querySelector(`[data-ranks] select[aria-label=\"${arguments[0]}\"]`"
        "); s.value = arguments[1]; s.dispatchEvent(new Event('change'))", label, value)


def rows(page: Opened) -> list[list[str]]:
    """Of the picture of ranks: heading of a node, or label and title of a bar."""
    return page.js("return [...document.querySelectorAll('[data-ranks] tr')].map(r => "
        "r.cells.length === 1 ? [r.textContent.trim()] : [r.cells[0].textContent.trim(), r.title])")


def test_a_thousand_ranks_stand_by_node_and_are_sorted_by_any_part(driver, pages):
    page = Opened(driver, pages["large"], unfold=False)
    assert [one[0] for one in rows(page)] == [
        f"nid{node:06d}.cluster, {RANKS // NODES} ranks" for node in range(NODES)]
    choose(page, "Show", "ranks")
    listed = rows(page)
    assert len(listed) == RANKS + NODES and listed[0] == ["nid000000.cluster, 125 ranks"]
    assert [one[0] for one in listed[1:4]] == ["rank 0", "rank 1", "rank 2"]
    sorts = page.js("return [...document.querySelectorAll('[data-ranks] select:last-child option')]"
                    ".map(o => [o.value, o.textContent])")
    choose(page, "Sort by", next(value for value, text in sorts if text == "by I/O"))
    listed = rows(page)
    assert listed[0] == ["nid000007.cluster, 125 ranks"] and listed[1][0] == "rank 999"
    assert [int(one[0][5:]) for one in listed if len(one) == 2] == list(range(999, -1, -1))
    choose(page, "Show", "nodes")
    assert [one[0][:9] for one in rows(page)] == [f"nid{n:06d}" for n in range(7, -1, -1)]
    assert {text for _, text in sorts} >= {"by computing", "by I/O", "by whole time"}
    assert page.console() == []


def test_choices_of_many_nodes_stay_within_their_picture(driver, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for node in range(40):
        with TraceWriter(run / f"n{node:02d}.weir", f"n{node:02d}") as writer:
            process = writer.process(1000 + node, node, 40)
            process.events(event("write", writer.created_ticks, 5_000_000, size=10**6,
                file=process.name("/scratch/restart")))
    write_html(build(run), tmp_path / "page.html")
    page = Opened(driver, tmp_path / "page.html", unfold=False)
    [label] = page.js("return [document.querySelector('[data-ranks] select').textContent]")
    assert "16 of 40 nodes" in label
    assert page.js("""return [...document.querySelectorAll('[data-ranks] select')].every(one =>
        one.getBoundingClientRect().right <=
        one.closest('figure').getBoundingClientRect().right + 1)""")


def test_bars_of_ranks_are_those_of_the_table(large_run, pages):
    from weir.report.wall.table import by_rank

    (data,) = re.findall('id="weir-data">(.*?)</script>', pages["large"].read_text())
    drawn = json.loads(data)["overview"]
    (step,) = build(large_run).steps
    table = by_rank(step)
    assert len(drawn["ranks"]) == len(table) == RANKS
    kinds = [kind for kind, _ in drawn["words"]]
    for (rank, node, *us), row in zip(drawn["ranks"], table):
        assert (rank, drawn["nodes"][node]) == (row["rank"].rank, row["node"])
        assert us[kinds.index("active")] == row["io_ns"] // 1000
        assert us[kinds.index("wall")] == row["computing_ns"] // 1000


def test_areas_over_time_hold_all_bytes(plain_run):
    """The outline of each area, measured in its own axes, is what was read and written."""
    report = build(plain_run)
    picture = over_time_picture(report)
    frame = picture.frame
    marks = {one.text: one.at for one in frame.vertical}
    top = max((float(text) for text in marks), default=0)
    per_mb = abs(picture.zero - marks[f"{top:g}"]) / top
    seconds = {float(one.text): one.at for one in frame.horizontal}
    per_s = (seconds[max(seconds)] - seconds[0]) / max(seconds)
    assert frame.left == seconds[0] and frame.right >= max(seconds.values())
    for area, code in zip(picture.areas, "RW"):
        sizes = [0.0, 0.0]
        x, y = float(frame.left), picture.zero
        for kind, number in re.findall(r"([HV])([\d.]+)", area.path):
            if kind == "V":
                y = float(number)
                assert 0 <= y <= frame.height
            else:
                sizes[picture.zero < y] += abs(y - picture.zero) / per_mb * (float(number)
                    - x) / per_s
                x = float(number)
        mask = report.columns.by_code(code)
        assert sizes[code == "W"] == pytest.approx(report.columns.moved[mask].sum() / 1e6, rel=0.03)
        assert sizes[code == "R"] == 0


def facts_of(path) -> dict[str, str]:
    return {one.name: one.text for one in job_facts(build(path))}


def test_the_job_is_named(weir, tmp_path):
    env = {"SLURM_JOB_ID": "4711"}
    weir("trace", "-o", tmp_path / "run", "--", "sh", "-c", "echo x > there", cwd=tmp_path,
        env=env).ok()
    found = facts_of(tmp_path / "run")
    assert found["Job"] == "Slurm 4711"
    assert found["User"] == pwd.getpwuid(os.geteuid()).pw_name
    assert found["Command"] == "sh -c 'echo x > there'" and found["Exit status"] == "0"
    assert found["Ranks and nodes"].startswith("1 process of sh, not parallel, on ")
    assert found["MPI"] == "none"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:]{8} to ([\d-]{10} )?[\d:]{8}",
        found["Start and end, UTC"])
    assert re.search(r"\(\w+\)", found["File systems"])


def test_what_a_run_does_not_say_is_said_to_be_missing(tmp_path):
    with TraceWriter(tmp_path / "n.weir") as writer:
        writer.process(100, 0, 2)
    found = facts_of(tmp_path)
    missing = {name for name, text in found.items() if text == "not recorded"}
    assert missing == {"Job", "User", "MPI", "File systems", "Exit status"}
    assert "not recorded" in render_html(build(tmp_path))


def test_the_status_of_a_step_that_failed_is_there(tmp_path):
    for name, status in (("first", 0), ("second", -9), ("third", 3)):
        write_step(tmp_path / "run" / name, 1, ["/scratch/f"], calls=10)
        path = tmp_path / "run" / name / "job.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"exit_status": status}))
    assert facts_of(tmp_path / "run")["Exit status"] == (
        "killed by signal 9 (SIGKILL) in second, 3 in third")


COLLECTIVE = """#include <mpi.h>
int main(int argc, char **argv) {
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_ordered(file, argv, 4, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  return MPI_Finalize();
}
"""


def test_the_implementation_of_mpi_io_is_named(weir, mpi, tmp_path):
    program = mpi.cc(COLLECTIVE)
    for io_component, expected in (("ompio", "OMPIO"), ("romio321", "ROMIO")):
        run = tmp_path / expected
        command = mpi.launch(2, program)
        weir("trace", "-o", run, "--", *command, cwd=tmp_path,
            env={**mpi.env, "OMPI_MCA_io": io_component}).ok()
        name = "Open MPI" if mpi.name == "openmpi" else "MPICH or derived from it"
        expected = expected if mpi.name == "openmpi" else "ROMIO"
        assert facts_of(run)["MPI"] == f"{name}; MPI-IO: {expected}"


def test_files_stand_in_the_order_of_the_terminal(plain_run, large_run):
    for run in (plain_run, large_run):
        report = build(run)
        text = io.StringIO()
        render_text(report, text)
        table = text.getvalue().partition("Files by ")[2]
        picture = files_that_matter(report, file_groups(report))
        assert ("critical" in table.partition(" (")[0].splitlines()[0]) == (
            picture.legend[0] == "critical")
        assert table.index(picture.bars[0].name) == min(
            table.index(bar.name) for bar in picture.bars)
