# SPDX-License-Identifier: Apache-2.0
"""The page as a file: its size, what it may load, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.report import build
from weir.report.html import overtime, render_html
from weir.report.html.encode import pack, unpack
from weir.trace._synthetic import TraceWriter, records
from weir.trace.ops import op_named

MOST_BYTES = 2_000_000


@settings(max_examples=100, deadline=None)
@given(st.lists(st.just(0) | st.integers(1, 2**50), min_size=1, max_size=200), st.sampled_from([8, 16]))
def test_packed_numbers_are_near_and_nothing_stays_nothing(values, bits):
    plane = np.array(values, np.uint64)
    back, zeros = unpack(pack([plane, plane * 0], bits), 2)
    assert not zeros.any()
    assert np.array_equal(back > 0, plane > 0)
    some = plane[plane > 0].astype(float)
    if len(some):
        step = np.log(some.max() / some.min()) / (2**bits - 2)
        assert np.all(np.abs(np.log(back[plane > 0] / some)) <= step / 2 + 1e-9)


@pytest.fixture(scope="module")
def dense_run(tmp_path_factory):
    """384 tasks that read and write all the time, each slice otherwise: the worst that tiles can be."""
    run = tmp_path_factory.mktemp("dense")
    random = np.random.default_rng(1)
    ranks, calls = 384, 2000
    with TraceWriter(run / "n.weir") as writer:
        for rank in range(ranks):
            process = writer.process(1000 + rank, rank, ranks)
            starts = writer.created_ticks + np.arange(calls) * 1_000_000 + random.integers(0, 300_000, calls)
            kinds = random.choice([op_named(one).value for one in ("read", "pwrite", "stat")], calls)
            files = [process.name(f"/scratch/an/{'long/' * 20}{rank}.{i}") for i in range(4)]
            sizes = random.integers(1, 2**22, calls)
            process.events(records(kinds, starts, random.integers(100, 700_000, calls), file=random.choice(files, calls), size=sizes))
    return run


def test_the_page_is_small_however_dense_the_run(dense_run):
    page = render_html(build(dense_run))
    assert len(page.encode()) < MOST_BYTES
    for name, most in (("timeline", overtime.MOST_LANES_TEXT), ("rates", overtime.MOST_TEXT - overtime.MOST_LANES_TEXT)):
        (text,) = re.findall(rf'id="blob-{name}-tiles">([^<]*)<', page)
        assert 1000 < len(text) <= most


def test_it_may_run_its_own_script_and_load_nothing(page):
    text = page.read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules == {"default-src": "'none'", "style-src": "'unsafe-inline'", "script-src": f"'sha256-{digest}'"}
    assert not re.search(r"""(?:src|href)\s*=\s*["']?[^"'#]""", re.sub(r"<script.*?</script>", "", text, flags=re.S))


def test_numbers_of_the_page_are_those_of_the_report(page, plain_run):
    text, report = page.read_text(), build(plain_run)
    for step in report.steps:
        assert f"<th scope=\"row\">{step.name}</th>" in text
    calls = f"{report.all.calls:,}".replace(",", "\u202f")
    assert f"<b>{calls}</b>" in text


def test_the_command_writes_it_whole_or_not_at_all(weir, plain_run, tmp_path):
    done = weir("report", plain_run, "--html", tmp_path / "a b.html").ok()
    assert done.stdout == "" and "a b.html" in done.stderr
    assert (tmp_path / "a b.html").read_text().endswith("</html>\n")
    refused = weir("report", plain_run, "--html", tmp_path / "none" / "out.html")
    assert refused.returncode == 3 and "cannot be written" in refused.stderr
    refused = weir("report", plain_run, "--html", tmp_path)
    assert refused.returncode == 3 and "cannot be written" in refused.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["a b.html"]


@pytest.mark.parametrize("more", [["--json"], ["--trace"], ["--tables", "files"], ["--top", "3"], ["--by", "mb"]])
def test_options_that_the_page_cannot_heed_are_refused(weir, plain_run, tmp_path, more):
    done = weir("report", plain_run, "--html", tmp_path / "out.html", *more)
    assert done.returncode == 2 and "--html" in done.stderr
    assert not (tmp_path / "out.html").exists()
