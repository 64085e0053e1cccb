# SPDX-License-Identifier: Apache-2.0
"""The page of `weir compare`: sentences, figures, curves of both runs on common axes."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from golden_trace import GoldenTrace
from weir_pages import Opened, write_step

from weir.compare.compute import parse_threshold
from weir.compare.page import MOST_STEPS, comparison_page
from weir.compare.table import compare
from weir.report import build

MS = 10**6


def write_run(run, ranks: int, slow: int = 1, name: str = "out", steps: int = 1):
    """Each rank writes 1000 bytes in 10 ms * slow * (1 + rank)."""
    trace = GoldenTrace(run)
    for step in range(steps):
        trace.line(f"step s{step} wall={2 + slow * step}")
        trace.line("node n0")
        for rank in range(ranks):
            trace.line(f"process pid={100 + rank} rank={rank} ranks={ranks}")
            took = 10 * MS * slow * (1 + rank)
            trace.line(f"write /scratch/{name} at=0 for={took} bytes=1000")
    trace.close()
    return run


def page_of(a, b, **options) -> str:
    return comparison_page(compare(build(a), build(b), **options))


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Two runs of three steps of six ranks, with calls over time; the second one has more."""
    top = tmp_path_factory.mktemp("runs")
    for run, calls in (("first", 500), ("second", 3000)):
        for seed, step in enumerate(("traj0", "min0", "traj1")):
            write_step(top / run / step, seed, ["/scratch/an/a", "/scratch/an/b"], calls=calls)
    return top / "first", top / "second"


def test_sentences_and_figures_say_what_changed(tmp_path):
    page = page_of(write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 4, slow=3))
    plain = page.replace("\u00a0", " ")
    assert "(A with 2 ranks on 1 node, B with 4 ranks on 1 node)" in plain
    assert "All ranks of B together are 300 ms in I/O, 10.00 times the 30.0 ms of A." in plain
    assert ("I/O time rises most on out: 300 ms in 4 calls, 4 kB in B, 30.0 ms in 2 calls, 2 kB in "
        "A." in plain.replace("/scratch/", ""))
    assert "falls most" not in page
    (card,) = re.findall(r"<dt>Moved</dt><dd>(.*?)</dd>", plain)
    assert card == "<span>A 2 kB</span><b>4 kB</b><span>2.00 times</span>"


def test_curves_of_ranks_have_one_scale(tmp_path):
    page = page_of(write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 4, slow=3))
    lines = re.findall(r'<polyline class="(base|judged)" points="([^"]*)"', page)
    assert [kind for kind, _ in lines] == ["base", "judged"]
    heights = [sorted({float(one.split(",")[1]) for one in text.split()}, reverse=True)
        for _, text in lines]
    assert [len(one) for one in heights] == [2, 4]
    floor = float(re.search(r'<line class="grid"[^>]*y1="([\d.]+)"[^>]*/><text[^>]*>0<',
        page).group(1))
    unit = floor - heights[0][0]  # 10 ms
    expected = [[10, 20], [30, 60, 90, 120]]
    for found, ms in zip(heights, expected):
        assert [floor - one for one in found] == pytest.approx([unit * one / 10 for one in ms],
            abs=0.6)


def test_pictures_over_time_have_one_scale(traced):
    page = page_of(*traced)
    assert [side for side in re.findall(r"<h3>([AB]): I/O over time, MB/s", page)] == ["A", "B"]
    svgs = re.findall(r"<svg viewBox.*?</svg>", page, re.S)
    axes = [re.findall(r'<text x="[\d.]+" y="[\d.]+" text-anchor="(?:end|middle)">([^<]*)<', one)
        for one in svgs]
    assert len(svgs) == 2 and axes[0] == axes[1]


def test_a_run_without_calls_over_time_has_the_other_pictures(tmp_path, traced):
    trace = GoldenTrace(tmp_path / "d")
    trace.line("step traj0 wall=2")
    trace.line("node n0 level=1")
    trace.close()
    page = page_of(tmp_path / "d", traced[1] / "traj0")
    assert "A: I/O over time" not in page and "B: I/O over time" in page


def test_of_many_steps_those_that_changed_most_are_drawn(tmp_path):
    page = page_of(write_run(tmp_path / "a", 1, steps=20),
        write_run(tmp_path / "b", 1, slow=2, steps=20))
    figure = page.partition("Wall time of each step")[2].partition("</figure>")[0]
    names = re.findall(r'scope="rowgroup">(\w+)', figure)
    assert names == [f"s{n}" for n in range(20 - MOST_STEPS, 20)]
    assert f"{MOST_STEPS} of 20 steps" in figure


def test_failed_tests_stand_on_top(tmp_path):
    a, b = write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 2, slow=3)
    page = page_of(a, b, thresholds=[parse_threshold("seconds>1.1"), parse_threshold("calls>2")])
    graves = re.findall(r'<p class="note grave">([^<]*)', page)
    assert len(graves) == 1 and graves[0].startswith("FAILED: seconds&gt;1.1 in TOTAL")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_offline_and_nothing_is_too_wide(driver, tmp_path, traced, scheme):
    page = tmp_path / "page.html"
    page.write_text(page_of(*traced))
    opened = Opened(driver, page, unfold=False, ready="true")
    for width in (1280, 390):
        opened.shape(width, 800, scheme=scheme)
        assert opened.js("return document.documentElement.scrollWidth") <= width
    assert opened.console() == []
    opened.js("document.querySelector('table.sortable thead button').click()")
    assert opened.js("return document.querySelector('[aria-sort]') !== null")
    opened.shape(1280)


def test_names_stay_names_and_the_policy_names_the_script(tmp_path):
    name = "<script>alert(1)"
    page = page_of(write_run(tmp_path / "a", 2, name=name), write_run(tmp_path / "b", 2, slow=2,
        name=name))
    assert name not in page and "&lt;script&gt;" in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_the_command_writes_it_and_keeps_its_status(weir, tmp_path):
    a, b = write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 2, slow=3)
    done = weir("compare", a, b, "--html", tmp_path / "page.html").ok()
    assert done.stdout == "" and "page.html" in done.stderr
    assert "(B) compared with <b>a</b> (A)" in (tmp_path / "page.html").read_text()
    failed = weir("compare", a, b, "--html", tmp_path / "page.html", "--fail-if", "seconds>2")
    assert failed.returncode == 1
    refused = weir("compare", a, b, "--html", "x", "--json")
    assert refused.returncode == 2 and "--json" in refused.stderr
