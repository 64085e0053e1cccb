# SPDX-License-Identifier: Apache-2.0
"""Plots of offset over time: which requests of which files, drawn by rank and direction, and what
is said where many are combined."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from weir_pages import Opened

from weir.report import build
from weir.report.html import render_html, write_html
from weir.report.offsets.page import offsets
from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

RANKS, EACH = 3, 100
WIDTHS = (4, 4, 8, 8, 4, 4, 1)


def write_run(directory: Path, each: int, names: int = 1, stream: bool = False) -> Path:
    """Each rank writes its part of a shared file, block after block, then reads another one's."""
    directory.mkdir()
    with TraceWriter(directory / "n.weir") as writer:
        for rank in range(RANKS):
            process = writer.process(100 + rank, rank, RANKS)
            number = np.arange(2 * each)
            is_write = number < each
            part = np.where(is_write, rank, (rank + 1) % RANKS)
            kinds = np.where(is_write, op_named("pwrite").value, op_named("pread").value)
            files = [process.name(f"/scratch/shared{at}") for at in range(names)]
            process.events(records(kinds, writer.created_ticks + number * 1_000_000 + rank * 100,
                500_000, file=np.resize(files, 2 * each), size=4096,
                offset=(part * each + number % each) * 4096))
            if stream:
                process.events(records(op_named("fwrite").value, writer.created_ticks
                    + np.arange(7), 1, file=files[0], size=10), thread=2)
    return directory


def drawn(page: str, at: int = 0) -> tuple[dict, list[np.ndarray]]:
    """What the page says of a plot, and the columns of its marks."""
    (data,) = re.findall('id="weir-data">(.*?)</script>', page)
    (text,) = re.findall(f'id="blob-offsets-{at}">([^<]*)<', page)
    said = json.loads(data)["offsets"]
    marks = said["plots"][at]["marks"]
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    assert len(raw) == marks * sum(WIDTHS)
    columns, begin = [], 0
    for width in WIDTHS:
        planes = raw[begin : begin + width * marks].reshape(width, marks).astype(np.uint64)
        columns.append((planes << (8 * np.arange(width, dtype=np.uint64))[:, None]).sum(axis=0))
        begin += width * marks
    columns[0] = np.cumsum(columns[0]) % 2**32
    return said | said["plots"][at], columns


def test_each_request_is_there_with_its_rank_time_and_bytes(tmp_path):
    run = write_run(tmp_path / "run", EACH)
    said, (begin, length, offset, size, count, place, way) = drawn(render_html(build(run)))
    unit = said["unit_ns"]
    assert not said["combined"] and said["ways"] == [0, 1] and set(count.tolist()) == {1}
    found = {(said["ranks"][int(p)], int(w), int(o), int(s))
        for p, w, o, s in zip(place, way, offset, size)}
    number = np.arange(EACH)
    assert found == {(rank, way, (part * EACH + block) * 4096, 4096) for rank in range(RANKS)
        for way, part in ((1, rank), (0, (rank + 1) % RANKS)) for block in number.tolist()}
    # the order of time is that of the blocks; unit: two seconds more than fit 32 bits are none
    first = begin[(way == 1) & (place == 0)].astype(np.int64) * unit
    assert np.abs(np.diff(first) - 1_000_000).max() <= unit
    assert set((length * unit).tolist()) <= {500_000, 500_000 + unit}


def test_many_requests_are_combined_and_that_is_said(tmp_path):
    run = write_run(tmp_path / "run", 20_000)
    report = build(run)
    section = offsets(report)
    said, (begin, length, offset, size, count, place, way) = drawn(render_html(report))
    assert said["combined"] and len(count) <= 20_000 and count.sum() == 2 * RANKS * 20_000
    assert re.search(r"120,000 requests, combined into [\d,]+ boxes: those that begin "
        r"within [\d.]+\u00a0\w+ and [\d.]+\u00a0\w+ of one another", section.body)
    assert int(offset.min()) == 0 and int((offset + size).max()) == RANKS * 20_000 * 4096
    parts = offset[way == 1] // np.uint64(20_000 * 4096)
    ranks = place[way == 1]
    assert (parts[ranks < 2**32 - 1] == ranks[ranks < 2**32 - 1]).all()  # never another rank's


def test_full_plots_take_little_of_a_page(tmp_path):
    """The worst: as many marks as there may be, each somewhere else."""
    random = np.random.default_rng(1)
    (tmp_path / "run").mkdir()
    with TraceWriter(tmp_path / "run" / "n.weir") as writer:
        for rank in range(4):
            process = writer.process(100 + rank, rank, 4)
            calls = 250_000
            process.events(records(op_named("pread").value, writer.created_ticks
                + np.sort(random.integers(0, 10**10, calls)), random.integers(10, 10**6, calls),
                file=np.resize([process.name(f"/scratch/{at}") for at in range(6)], calls),
                size=random.integers(1, 10**6, calls), offset=random.integers(0, 2**40, calls)))
    section = offsets(build(tmp_path / "run"))
    assert [plot["marks"] > 5000 for plot in section.data["plots"]] == [True] * 5
    assert sum(map(len, section.blobs.values())) < 3_000_000


def test_requests_without_an_offset_are_counted_and_said(tmp_path):
    run = write_run(tmp_path / "run", EACH, stream=True)
    body = offsets(build(run)).body
    assert ("21 more have no known offset (files opened to append, several C streams on the file) "
        "and are left out") in body


STREAMS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static char data[4096];
static void *rest(void *f) {
  if (fread(data, 1, 96, f) != 96) exit(1);  // at 5096, where the other thread left the stream
  return 0;
}
int main(void) {
  FILE *f = fopen("stream", "w+");
  for (int i = 0; i < 4; ++i) fwrite(data, 1, 2048, f);
  fseek(f, 1000, SEEK_SET);
  if (fread(data, 1, 4096, f) != 4096) return 1;
  pthread_t thread;
  pthread_create(&thread, 0, rest, f);
  pthread_join(thread, 0);
  fclose(f);
  f = fopen("stream", "a");
  fwrite(data, 1, 7, f);  // its offset is not known
  return fclose(f);
}
"""


def test_requests_of_c_streams_have_the_offsets_of_opens_and_seeks(
        cc, preload_env, tmp_path, execute):
    env = preload_env()
    execute([cc(STREAMS, "-pthread")], env=env, cwd=tmp_path).ok()
    report = build(env["WEIR_TRACE_DIR"])
    said, columns = drawn(render_html(report))
    offset, size, way = (columns[at].astype(int).tolist() for at in (2, 3, 6))
    assert sorted(zip(way, offset, size)) == [(0, 1000, 4096), (0, 5096, 96),
        *((1, at, 2048) for at in (0, 2048, 4096, 6144))]
    assert "1 more have no known offset" in offsets(report).body


def test_the_files_are_those_with_most_time_or_those_of_the_option(weir, tmp_path):
    run = write_run(tmp_path / "run", EACH, names=7)
    names = [one["name"] for one in files_of(offsets(build(run)))]
    assert len(names) == 5
    weir("report", run, "--html", tmp_path / "a.html", "--offsets", "*shared6").ok()
    page = (tmp_path / "a.html").read_text()
    assert re.findall('data-plot="offsets".*?<h3 title="([^"]*)"', page, re.S) == [
        "/scratch/shared6"]
    refused = weir("report", run, "--offsets", "x")
    assert refused.returncode == 2 and "--html" in refused.stderr


def files_of(section) -> list[dict]:
    return [{"name": name} for name in re.findall('<h3 title="([^"]*)"', section.body)]


@pytest.fixture(scope="module")
def plotted(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("offsets")
    write_html(build(write_run(base / "run", EACH)), base / "out.html")
    return base / "out.html"


def test_panels_show_ranks_in_colours_and_zoom(driver, plotted):
    from selenium.webdriver.common.action_chains import ActionChains

    page = Opened(driver, plotted)
    before = page.drawn("offsets")
    assert len(before) > RANKS + 1  # ground, a colour of each rank, texts
    canvas = driver.find_element("css selector", "figure[data-plot='offsets'] > canvas")
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    length = page.view()[1]
    ActionChains(driver).move_to_element_with_offset(canvas, -100, -150).click_and_hold(
        ).move_by_offset(150, 60).release().perform()
    page.settle()
    from_s, until_s = page.view()
    assert 0 < from_s < until_s < length
    zoomed = page.drawn("offsets")
    assert zoomed != before
    canvas.send_keys("\ue00e")  # Page Up: fewer bytes
    page.settle()
    assert page.drawn("offsets") != zoomed
    canvas.send_keys("0")
    page.settle()
    assert page.drawn("offsets") == before and page.view()[1] == length
    assert all("getImageData" in one for one in page.console())  # which the test does


def test_the_pointer_tells_of_a_request(driver, plotted):
    from selenium.webdriver.common.action_chains import ActionChains

    page = Opened(driver, plotted)
    canvas = driver.find_element("css selector", "figure[data-plot='offsets'] > canvas")
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    # half of rank 0's part, a third of the file, is written after 50 ms: lower panel, a sixth up
    box = page.js("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height]",
        canvas)
    left, top, panel, gap = 72, 20, 190, 22
    wide = box[0] - left - 6
    x, y = left + wide * 0.0504 / page.view()[1], top + panel + gap + panel * (1 - 0.5 / 3)
    ActionChains(driver).move_to_element_with_offset(canvas, x - box[0] / 2, y - box[1] / 2
        ).perform()
    page.settle()
    tip = page.js("return document.querySelector('figure[data-plot=\"offsets\"] .tip').textContent")
    assert tip.startswith("rank 0, ") and "written: bytes " in tip
