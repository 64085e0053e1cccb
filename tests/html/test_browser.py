# SPDX-License-Identifier: Apache-2.0
"""The page as its readers meet it: in a browser, with pointer and keys, wide and narrow, light and
dark, printed."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from weir_pages import STEPS, RANKS, Opened, write_step

from weir.analysis.names import shown as shown_path
from weir.report import build
from weir.report.html import write_html
from weir.trace._synthetic import TraceWriter, event

SECTIONS = {"overview", "steps", "waits", "timeline", "heat", "rates", "files", "requests",
    "summary", "processes"}
HOSTILE = (
    "</script><script>window.harmed=1</script>",
    '"><img src=x onerror="window.harmed=1">',
    "<!--<script>",
    "{{ 7 * 7 }}\u2028'&amp;",
)


def test_it_opens_without_a_word_and_without_a_request(opened):
    assert opened.console() == []
    (asked,) = {url for url in opened.requests() if not url.startswith("data:")}
    assert asked == opened.driver.current_url


def test_all_sections_are_there_and_led_to(opened):
    there = opened.js("return [...document.querySelectorAll('main section')].map(s => s.id)")
    assert SECTIONS <= set(there)
    assert opened.js(
        "return [...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))") == there[1:]


def test_plots_show_something(opened):
    assert len(opened.drawn("lanes")) > 4  # ground, lanes, reads, writes, ...
    assert len(opened.drawn("heat")) > 20
    assert opened.js("return document.querySelectorAll('.lines canvas').length") == 2


def test_buttons_and_keys_move_all_plots_together(opened):
    whole = opened.view()
    before = opened.drawn("lanes"), opened.drawn("heat")
    opened.js("document.querySelector('figure[data-plot=\"heat\"] [data-do=\"in\"]').click()")
    opened.settle()
    from_s, until_s = opened.view()
    assert until_s - from_s == pytest.approx((whole[1] - whole[0]) / 2)
    assert opened.drawn("lanes") != before[0] and opened.drawn("heat") != before[1]
    canvas = opened.driver.find_element("css selector", "figure[data-plot='lanes'] > canvas")
    canvas.send_keys("+")
    canvas.send_keys("\ue012")  # left arrow
    opened.settle()
    assert opened.view()[0] < from_s + (until_s - from_s) / 4
    canvas.send_keys("0")
    opened.settle()
    assert opened.view() == pytest.approx(whole)
    assert (opened.drawn("lanes"), opened.drawn("heat")) == before


def test_a_drag_shows_that_stretch(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    canvas = opened.driver.find_element("css selector", "figure[data-plot='lanes'] > canvas")
    length = opened.view()[1]
    opened.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(opened.driver).move_to_element_with_offset(canvas, -100,
        0).click_and_hold().move_by_offset(200, 0).release().perform()
    opened.settle()
    from_s, until_s = opened.view()
    assert 0 < from_s < until_s < length
    assert (until_s - from_s) / length == pytest.approx(200 / opened
        .js("return arguments[0].clientWidth", canvas), rel=0.15)
    opened.js("weirView.do('all')")


def test_a_drag_over_the_lines_moves_the_lanes(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    over = opened.driver.find_element("css selector", ".lines .u-over")
    opened.js("arguments[0].scrollIntoView({block: 'center'})", over)
    ActionChains(opened.driver).move_to_element_with_offset(over, 50,
        0).click_and_hold().move_by_offset(120, 0).release().perform()
    opened.settle()
    from_s, until_s = opened.view()
    width, length = opened.js("return arguments[0].clientWidth",
        over), opened.js("return weirView.length")
    assert (until_s - from_s) / length == pytest.approx(120 / width, rel=0.1)
    assert from_s / length == pytest.approx(0.5 + 50 / width, rel=0.1)
    assert opened.js("return document.querySelector('.u-select').offsetWidth") == 0


def test_zoom_ends_at_a_few_slices_and_comes_back(opened):
    opened.js("for (let i = 0; i < 60; i++) weirView.zoom(0.5, 1)")
    opened.settle()
    from_s, until_s = opened.view()
    assert from_s <= 1 <= until_s and 0 < until_s - from_s < 0.1
    opened.js("for (let i = 0; i < 60; i++) weirView.zoom(2)")
    opened.settle()
    assert opened.view()[0] == 0
    assert opened.console() == []


def test_the_keyboard_tells_of_a_rank(opened):
    canvas = opened.driver.find_element("css selector", "figure[data-plot='lanes'] > canvas")
    canvas.send_keys("\ue015")  # down arrow
    opened.settle()
    tip = opened.js("return document.querySelector('figure[data-plot=\"lanes\"] .tip').textContent")
    assert tip.startswith(
        f"rank 0, {STEPS[0]}") and "reads" in tip and "writes" in tip and "waits in MPI" in tip


def test_waits_in_mpi_are_a_measure_of_the_heat_map(opened):
    options = opened.js(
        "return [...document.querySelectorAll('[data-measure] option')].map(o => o.value)")
    assert options == ["bytes", "read", "written", "calls", "busy", "waiting"]
    waits = [row.split() for row in cells(opened, "#timeline table.sortable", 4)]
    # 20 barriers of 0.1 and 30.1 ms in each of 3 steps
    assert waits[0] == ["0.006"] and waits[1] == ["1.806"]


def choose(opened, which: str, value: str) -> None:
    opened.js(
        "const s = document.querySelector(`[data-${arguments[0]}]`); s.value = arguments[1]; "
        "s.dispatchEvent(new Event('change'))", which, value
    )
    opened.settle()


def heat_rows(opened) -> list[str]:
    """The tips of the heat map's rows from top to bottom, for all of the time in view."""
    canvas = opened.driver.find_element("css selector", "figure[data-plot='heat'] > canvas")
    opened.js("arguments[0].blur()", canvas)
    made: list[str] = []
    while True:
        canvas.send_keys("\ue015")  # down arrow
        opened.settle()
        tip = opened.js(
            "return document.querySelector('figure[data-plot=\"heat\"] .tip').textContent")
        if made and tip == made[-1]:
            return made
        made.append(tip)


@pytest.fixture(scope="module")
def of_nodes(tmp_path_factory) -> Path:
    """Four ranks, of which node1 has the last two. Rank N writes N + 1 MB in half a second to
    outN.nc, all others to logN."""
    top = tmp_path_factory.mktemp("nodes")
    (top / "run").mkdir()
    for node in range(2):
        with TraceWriter(top / "run" / f"{node}.weir", f"node{node}") as writer:
            for rank in (2 * node, 2 * node + 1):
                process = writer.process(100 + rank, rank, 4)
                process.events(event("write", writer.created_ticks, 500_000_000,
                    file=process.name(f"/scratch/{'outlog'[3 * node:][:3]}{rank}.nc"),
                    size=(rank + 1) * 10**6))
                process.events(event("open", writer.created_ticks + 10**9, 10,
                    file=process.name("/scratch/in")))
    write_html(build(top / "run"), top / "page.html")
    return top / "page.html"


def test_rows_of_the_heat_map_are_ranks_nodes_or_files(driver, of_nodes):
    opened = Opened(driver, of_nodes)
    rate = re.compile("about ([0-9.]+) MB/s")

    def rows(choice: str) -> list[tuple[str, float]]:
        choose(opened, "rows", choice)
        return [(tip.partition(",")[0], float(found.group(1)) if (found := rate.search(tip)) else 0)
            for tip in heat_rows(opened)]

    ranks = rows("ranks")
    unit = ranks[0][1]
    expected = [("rank 0", 1), ("rank 1", 2), ("rank 2", 3), ("rank 3", 4)]
    assert [(name, round(value / unit, 1)) for name, value in ranks] == expected
    nodes = [(name, round(value / unit, 1)) for name, value in rows("nodes")]
    assert nodes == [("node node0", 3), ("node node1", 7)]
    files = [(name, round(value / unit, 1)) for name, value in rows("files")]
    assert files == [("/scratch/log<N>.nc", 7), ("/scratch/out<N>.nc", 3), ("/scratch/in", 0)]
    assert opened.console() == []


def test_rows_of_the_heat_map_are_sorted_by_any_figure(driver, of_nodes):
    opened = Opened(driver, of_nodes)
    choose(opened, "order", "written")
    names = [tip.partition(",")[0] for tip in heat_rows(opened)]
    assert names == ["rank 3", "rank 2", "rank 1", "rank 0"]
    choose(opened, "order", "")
    assert [tip.partition(",")[0] for tip in heat_rows(opened)] == names[::-1]


def test_shares_of_time_of_a_node_are_those_of_its_ranks(driver, of_nodes):
    """And of files, how many ranks are in I/O on them."""
    opened = Opened(driver, of_nodes)
    choose(opened, "measure", "busy")
    greatest = "return document.querySelector('[data-high]').textContent"
    opened.drawn("heat")
    for rows, expected in (("ranks", "100 %"), ("nodes", "100 %"), ("files", "2 ranks")):
        choose(opened, "rows", rows)
        opened.drawn("heat")
        assert opened.js(greatest) == expected


def test_the_heat_map_has_several_measures(opened):
    before = opened.drawn("heat")
    for measure in ("calls", "busy"):
        opened.js(
            "const s = document.querySelector('[data-measure]'); s.value = arguments[0]; "
            "s.dispatchEvent(new Event('change'))", measure
        )
        opened.settle()
        assert opened.drawn("heat") != before
    assert opened.js("return document.querySelector('[data-high]').textContent").endswith("%")


def cells(opened, table: str, column: int) -> list[str]:
    return opened.js(
        "return [...document.querySelector(arguments[0]).tBodies[0].rows].map(r => "
        "r.cells[arguments[1]].textContent.trim())", table, column
    )


def test_tables_sort_as_numbers_and_as_words(opened):
    def click(column):
        opened.js("document.querySelectorAll('table.files thead button')[arguments[0]].click()",
            column)

    click(6)
    calls = [int(text) for text in cells(opened, "table.files", 6)]
    assert calls == sorted(calls, reverse=True) and len(set(calls)) > 3
    click(6)
    assert [int(text) for text in cells(opened, "table.files", 6)] == calls[::-1]
    click(0)
    names = cells(opened, "table.files", 0)
    assert names == sorted(names)
    assert opened.js("return document.querySelectorAll('table.files [aria-sort]').length") == 1


def test_sorting_leaves_the_total_where_it_is(opened):
    opened.js("document.querySelectorAll('#steps table.sortable thead button')[1].click()")
    assert set(cells(opened, "#steps table.sortable", 0)) == set(STEPS)
    assert opened.js(
        "return document.querySelector('#steps table.sortable tfoot').textContent").split(
        )[0] == "TOTAL"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_runs_out_of_the_window(opened, width, scheme):
    opened.shape(width, scheme=scheme)
    assert opened.js("return document.documentElement.scrollWidth") <= width
    assert opened.js(
        "return [...document.querySelectorAll('canvas')].every(c => "
        "c.getBoundingClientRect().right <= innerWidth + 1)")
    assert len(opened.drawn("lanes")) > 4
    assert opened.console() == []
    opened.shape(1280)


LUMINANCE = """const rgb = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => { const [r, g, b] = rgb(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!c.endsWith(', 0)')) return c; } };
const all = [...document.querySelectorAll('h1, h2, p, dt, dd span, th, td, summary, nav a, button, .legend li, .figure, figcaption')];
return Math.min(...all.filter(e => e.offsetParent && e.textContent.trim()).map(e => {
  const a = light(getComputedStyle(e).color), b = light(ground(e));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}));"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(opened, scheme):
    """At least 4.5 to 1, as WCAG 2.2 has it (success criterion 1.4.3)."""
    opened.shape(1280, scheme=scheme)
    assert opened.js(LUMINANCE) >= 4.5
    opened.shape(1280)


def test_dark_and_light_pictures_differ(opened):
    def ground() -> str:
        return opened.js("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    opened.shape(1280, scheme="dark")
    assert ground() != light
    opened.shape(1280)


def test_every_picture_has_words_and_a_table(opened):
    pictures = opened.js(
        """return [...document.querySelectorAll('section:not(#overview) [role=img]')].map(p =>
        [p.getAttribute('aria-label'), p.closest('section').querySelectorAll('table.sortable tbody tr').length])"""
    )
    assert len(pictures) == 4
    assert all(label and rows for label, rows in pictures)
    rows = opened.js("return document.querySelectorAll('#timeline table.sortable tbody tr').length")
    assert rows == RANKS + 1
    ids = opened.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert opened.js(
        "return [...document.querySelectorAll('button')].every(b => (b.ariaLabel ?? "
        "b.textContent).trim())")


def test_it_prints(opened):
    printed = opened.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert opened.js("return getComputedStyle(document.querySelector('nav')).display") == "none"
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert opened.console() == []


def test_hostile_names_stay_names(driver, tmp_path):
    names = [f"/scratch/an/{text}" for text in HOSTILE]
    write_step(tmp_path / "run" / '"><img src=x onerror="window.harmed=1">', 1, names, calls=200)
    out = tmp_path / "out.html"
    write_html(build(tmp_path / "run"), out)
    page = Opened(driver, out)
    assert page.js("return window.harmed") is None
    assert page.console() == []
    shown = cells(page, "table.files", 0)
    for text in HOSTILE[:3]:
        assert shown_path(text, None) in shown
    assert page.js("return document.querySelectorAll('img').length") == 0
    assert page.js("return document.querySelector('#steps .bars "
                   "th').textContent") == '"><img src=x onerror="window.harmed=1">'


def test_a_run_without_single_calls_has_no_empty_plots(driver, tmp_path, weir):
    run = tmp_path / "run"
    weir("trace", "--level", "detail", "-o", run, "--", "sh", "-c", "cat /etc/hostname > copy",
        cwd=tmp_path).ok()
    weir("report", run, "--html", tmp_path / "out.html").ok()
    page = Opened(driver, tmp_path / "out.html")
    there = page.js("return [...document.querySelectorAll('main section')].map(s => s.id)")
    assert {"overview", "steps", "files"} <= set(there) and not {"timeline", "heat",
        "rates"} & set(there)
    assert page.console() == []


@pytest.mark.parametrize("width", [1280, 400])
def test_long_names_leave_the_figures_in_sight(driver, tmp_path, width):
    names = [f"/scratch/an/{'y' * 200}/{'y' * 200}/{'y' * 200}/{i}-end" for i in range(3)]
    write_step(tmp_path / "run" / "main", 1, names, calls=100)
    out = tmp_path / "out.html"
    write_html(build(tmp_path / "run"), out)
    page = Opened(driver, out)
    page.shape(width)
    for table in page.js(
            "return [...document.querySelectorAll('#files table')].map((t, i) => t.dataset.test = "
            "'table' + i)"):
        right = page.js(
            f"return document.querySelector('[data-test={table}]').tBodies[0].rows[0].cells[1].getBoundingClientRect().right"
        )
        assert 0 < right <= width
    page.shape(1280)
    shown = cells(page, "table.files", 0)
    assert sorted(name[-5:] for name in shown) == ["0-end", "1-end", "2-end"] and all(len(name)
        < 200 for name in shown)
    titles = page.js(
        "return [...document.querySelectorAll('table.files tbody th')].map(t => t.title)")
    assert sorted(titles) == names


def test_lines_over_time_have_their_units(opened):
    drawn = opened.js(
        "return [...document.querySelectorAll('.lines')].map(e => "
        "[e.previousElementSibling.textContent, e.textContent])")
    assert [unit for unit, _ in drawn] == ["MB/s", "Calls/s"]
    # the legend, before a pointer is over the plot
    assert all(text.startswith("at s\u2013") for _, text in drawn)


def test_names_of_steps_fit_or_are_left_out(opened):
    """Each letter ten wide: whole, cut with a sign that it is cut, or not at all."""
    fits = "return fitted(arguments[0], arguments[1], (text) => 10 * text.length)"
    assert opened.js(fits, "traj0", 50) == "traj0"
    assert opened.js(fits, "analysis_00", 60) == "analy\u2026"
    assert opened.js(fits, "analysis_00", 40) == ""


@pytest.mark.parametrize(("scheme", "is_darker"), [("light", True), ("dark", False)])
def test_the_most_stands_out_most_from_the_ground(opened, scheme, is_darker):
    """Right end of the scale against its left end, and both against a lane without I/O."""
    opened.shape(1280, scheme=scheme)
    opened.drawn("heat")
    least, most = opened.js(
        """const c = document.querySelector('.ramp'), sum = (x) => [...c.getContext('2d').getImageData(x, 0, 1, 1).data.slice(0, 3)].reduce((a, b) => a + b);
        return [sum(0), sum(c.width - 1)];"""
    )
    assert (most < least) == is_darker
    lane = sum(int(opened
        .js("return getComputedStyle(document.documentElement).getPropertyValue('--lane').trim()")[
            i : i + 2], 16) for i in (1, 3, 5))
    assert abs(most - lane) > abs(least - lane) > 0
    opened.shape(1280)
