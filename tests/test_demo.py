# SPDX-License-Identifier: Apache-2.0
"""tools/demo at the size of tests: what `make demo` shows, and that it can be repeated."""

from __future__ import annotations

import json
import re

import pytest
from weir_process import run
from weir_sources import ROOT

STEPS = ["traj0", "min0", "traj1", "min1", "traj2"]
pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Two demos one after the other in the same directories, and the directory of the run."""
    directory = tmp_path_factory.mktemp("demo")
    env = {"DEMO_RUN": str(directory / "run"), "DEMO_WORK": str(directory / "work")}
    shown = [run([ROOT / "tools" / "demo", "--tiny", "--ranks", "2"], env=env, timeout=180).ok()
        for _ in range(2)]
    return shown, directory


def step_rows(text: str) -> list[str]:
    return re.findall(rf"^({'|'.join(STEPS)}|TOTAL)(?: +[\d.,]+[KMG]?){{10}}$", text, re.M)


def test_the_step_table_has_the_five_steps_in_order(demo):
    (first, _), _ = demo
    assert step_rows(first.stdout)[:5] == STEPS


def test_it_says_where_the_files_are(demo):
    (first, _), directory = demo
    assert str(directory / "run") in first.stdout and str(directory / "work") in first.stdout
    for step in STEPS:
        assert list((directory / "run" / step).glob("*.weir"))


def test_it_can_be_repeated_and_counts_the_same_requests(demo, weir):
    """The workload is deterministic: a second run makes the same calls of the application."""
    (first, second), directory = demo
    assert step_rows(first.stdout) == step_rows(second.stdout)
    report = json.loads(weir("report", directory / "run", "--json").ok().stdout)
    assert [step["name"] for step in report["steps"]] == STEPS
    assert report["lost_events"] == 0 and report["complete"] is True
    for step in report["steps"]:
        assert step["ranks"] == 2
        assert step["all"]["bytes"] >= step["rank0"]["bytes"] > 0


def test_a_step_that_fails_is_shown_with_what_it_said(tmp_path):
    env = {"DEMO_RUN": str(tmp_path / "run"), "DEMO_WORK": str(tmp_path / "work")}
    done = run([ROOT / "tools" / "demo", "--tiny", "--ranks", "1", "--pools", "nonsense"], env=env,
        timeout=120)
    assert done.returncode != 0
    assert "nonsense" in done.stdout + done.stderr
