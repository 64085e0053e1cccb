# SPDX-License-Identifier: Apache-2.0
"""The page of `weir scaling`: curves, where they stop, parts."""

from __future__ import annotations

import base64
import hashlib
import math
import re

import pytest
from wait_trace import WaitTrace
from weir_pages import Opened

from weir._errors import StorageError
from weir.scaling.compute import RunTimes, scaling
from weir.scaling.figure import write_figure
from weir.scaling.page import scaling_page, scalings_page
from weir.scaling.table import stop_sentences

SECOND = 10**9


def run(ranks: int, exec_s: float, write_s: float, nodes: int = 1, name: str = "") -> RunTimes:
    times = {"8exec": round(exec_s * SECOND), "9write": round(write_s * SECOND)}
    return RunTimes(name or f"r{ranks}.{nodes}", ranks, nodes, sum(times.values()), times)


ONE = [run(n, 64 / n, n / 4) for n in (1, 2, 4, 8, 16, 32, 48)]
TWO = [run(1, 64, 1), *(run(n, 64 / n, 1, n) for n in (2, 4, 8, 16)),
    *(run(n, 64 / n, 1.5 * n) for n in (2, 4, 8, 16))]
FEW = [run(1000, 10, 1), run(2000, 9.9, 1)]


def points(page: str) -> list[list[tuple[float, float]]]:
    """Of each line, the ideal first."""
    return [[tuple(map(float, one.split(","))) for one in text.split()]
        for text in re.findall('<polyline class="[a-z]+" points="([^"]*)"', page)]


@pytest.mark.parametrize("runs", [ONE, TWO, FEW])
def test_curves_are_the_speed_ups_on_logarithmic_axes(runs):
    found = scaling(runs)
    ideal, *lines = points(scaling_page(found, 0.25))
    reference = found.reference
    (x0, y0), (x1, y1) = ideal
    most = max(point.run.ranks for curve in found.curves for point in curve.points)
    per_x = (x1 - x0) / math.log(most / reference.ranks)
    per_y = (y1 - y0) / math.log(most / reference.ranks)
    assert len(lines) == len(found.curves)
    for line, curve in zip(lines, found.curves):
        assert len(line) == len(curve.points)
        for (x, y), point in zip(line, curve.points):
            assert x == pytest.approx(x0 + per_x * math.log(point.run.ranks / reference.ranks),
                abs=0.2)
            assert y == pytest.approx(y0 + per_y * math.log(point.speedup), abs=0.2)


@pytest.mark.parametrize("runs, stops", [(ONE, ["16"]), (TWO, ["4"]), (FEW, ["1,000"]),
    ([run(n, 8 / n, 0) for n in (1, 2, 4)], [])])
def test_where_a_curve_stops_is_marked_on_it(runs, stops):
    found = scaling(runs)
    page = scaling_page(found, 0.25)
    assert re.findall(r'<text class="stop"[^>]*>stops at ([^<]*)<', page) == stops
    rings = [tuple(map(float, one))
        for one in re.findall(r'<circle class="stop" cx="([^"]*)" cy="([^"]*)"', page)]
    on_curves = [one for line in points(page)[1:] for one in line]
    assert len(rings) == len(stops) and all(ring in on_curves for ring in rings)
    for curve in found.curves:
        for sentence in stop_sentences(curve):
            assert sentence[1:].replace("<", "&lt;") in page


def test_bars_of_a_run_are_its_parts():
    found = scaling(ONE)
    rows = re.findall(r'<tr title="([^"]*)"><th scope="row">(\d+) on 1</th>(.*?)</tr>',
        scaling_page(found, 0.25))
    assert [int(ranks) for _, ranks, _ in rows] == [one.ranks for one in ONE]
    longest = max(one.wall_ns for one in ONE)
    for (title, _, cells), one in zip(rows, ONE):
        widths = sorted(float(width) for width in re.findall(r"width:([\d.]+)%", cells))
        assert widths == pytest.approx(sorted(100 * ns / longest
            for ns in one.parts_ns.values() if ns), abs=0.01)
        assert "8exec" in title and "9write" in title


@pytest.mark.parametrize("runs", [ONE, TWO, FEW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_offline_and_no_texts_overlap(driver, tmp_path, runs, scheme):
    page = tmp_path / "page.html"
    page.write_text(scaling_page(scaling(runs), 0.25))
    opened = Opened(driver, page, unfold=False, ready="true")
    opened.shape(1280, 800, scheme=scheme)
    assert opened.console() == []
    hit = opened.js("""const all = [...document.querySelectorAll('svg text')].filter(
        t => t.textContent).map(t => t.getBoundingClientRect());
      return all.some((a, i) => all.slice(i + 1).some(b => a.left < b.right && b.left < a.right &&
        a.top < b.bottom - 4 && b.top < a.bottom - 4));""")
    assert not hit
    assert opened.js("return document.documentElement.scrollWidth") <= 1280
    opened.js("document.querySelector('table.sortable thead button').click()")
    assert opened.js("return document.querySelector('[aria-sort]') !== null")
    opened.shape(1280)


def test_names_stay_names_and_the_policy_names_the_script():
    name = "</script><script>window.harmed=1</script>"
    page = scaling_page(scaling([run(1, 8, 0, name=name), run(2, 4, 0)]), 0.25)
    assert name not in page and "&lt;/script&gt;" in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_the_command_writes_it(weir, tmp_path):
    for ranks in (1, 2):
        program = WaitTrace(ranks, cost=0)
        for rank in range(ranks):
            program.compute(rank, 4 * SECOND // ranks)
        program.barrier()
        program.write(tmp_path / f"run{ranks}" / "s")
    done = weir("scaling", tmp_path / "run1", tmp_path / "run2", "--html", tmp_path / "a.html").ok()
    assert done.stdout == "" and "a.html" in done.stderr
    assert "<h1>Scaling of <b>2 runs</b>, 1 to 2 ranks</h1>" in (tmp_path / "a.html").read_text()
    refused = weir("scaling", tmp_path / "run1", tmp_path / "run2", "--html", "x", "--json")
    assert refused.returncode == 2 and "--json" in refused.stderr


def test_several_programs_have_a_heading_and_a_chart_each():
    page = scalings_page({"disk": scaling(ONE), "lustre": scaling(TWO)}, 0.25, (), "All of them")
    assert re.findall("<h2>(.*?)</h2>", page) == ["disk", "lustre"]
    assert len(points(page)) == 2 + 3 and "<b>All of them</b>, 1 to 48 ranks" in page


def test_curves_are_drawn_as_a_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the test extra, on Python 3.11 or newer")
    write_figure({"disk": scaling(ONE), "lustre": scaling(TWO)}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(StorageError, match="the picture cannot be written"):
        write_figure({"": scaling(ONE)}, tmp_path / "no" / "curves.png")
