# SPDX-License-Identifier: Apache-2.0
"""Findings on the page: on its first screen with what each would save, and their links to the
timeline and to the table with the figures."""

from __future__ import annotations

import pytest
from advised import KIB, MS, advised, stream
from wait_trace import WaitTrace
from weir_pages import Opened

from weir.report.html import render_html, write_html


def costly(trace: WaitTrace) -> None:
    """Small writes, small files and fsyncs, one behind the other, each for a second or two."""
    stream(4000, 8 * KIB, 300, "/scratch/an/hist.{rank}")(trace)
    for number in range(400):
        path = f"/scratch/an/plots/p{number:05}"
        for op, size in (("creat", 0), ("write", 2 * KIB), ("close", 0)):
            trace.io(number % trace.ranks, 2 * MS, path, op, size)
    for number in range(50):
        trace.io(0, MS, "/scratch/an/restart", "pwrite", 64 * KIB, number * 64 * KIB)
        trace.io(0, 20 * MS, "/scratch/an/restart", "fsync", 0)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("found")
    report = advised(directory, costly)
    write_html(report.facts.report, directory / "page.html")
    return report, directory / "page.html"


def test_they_stand_at_the_top_with_what_they_would_save(driver, found):
    report, path = found
    page = Opened(driver, path, unfold=False)
    page.shape(1280, 800)
    lines = page.js("return [...document.querySelectorAll('.found li')].map(o => o.innerText)")
    assert len(lines) == len(report.advices) == 3
    for line, one in zip(lines, report.advices):
        assert line.startswith("Would save ") and f"{one.finding}: {one.what}" in line
    assert page.js("return document.querySelector('.pictures').getBoundingClientRect().bottom") \
        <= 800
    assert page.js("return document.querySelector('main').children[2].id") == "findings"
    page.shape(1280)


def test_each_links_to_its_time_and_its_table(driver, found):
    _, path = found
    page = Opened(driver, path, unfold=False)
    whole = page.js("return weirView.span")
    for at in range(3):
        page.js("document.querySelectorAll('.found a')[arguments[0]].click()", at)
        page.settle()
        assert page.js("return document.querySelector('#findings > details').open")
        page.js("document.querySelectorAll('.advices a[data-from]')[arguments[0]].click()", at)
        page.settle()
        assert page.js("return document.querySelector('#timeline > details').open")
        first, last = page.js("return [weirView.from, weirView.until]")
        assert 0 <= first < last and last - first < 0.7 * whole
    tables = page.js("return [...document.querySelectorAll('.advices dd a:not([data-from])')]"
                     ".map(o => document.querySelector(o.hash) !== null)")
    assert tables == [True] * 3
    assert page.console() == []


def test_a_healthy_run_has_no_section(tmp_path):
    report = advised(tmp_path, stream(4, 16 * KIB, 10))
    page = render_html(report.facts.report)
    assert 'class="found"' not in page and 'id="findings"' not in page
