# SPDX-License-Identifier: Apache-2.0
"""tools/demo at the size of tests: what `make demo` shows; with --slow, that it can be repeated."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from weir_process import run
from weir_sources import ROOT

STEPS = ["traj0", "min0", "traj1", "min1", "traj2"]
pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory, pytestconfig):
    """What a demo prints, with --slow of two one after the other in the same directories; and the
    directory of the run."""
    directory = tmp_path_factory.mktemp("demo")
    env = {"DEMO_RUN": str(directory / "run"), "DEMO_WORK": str(directory / "work")}
    command = [ROOT / "tools" / "demo", "--tiny", "--ranks", "2", "--tables", "9", "--types", "8"]
    times = 2 if pytestconfig.getoption("slow") else 1
    shown = [run(command, env=env, timeout=180).ok() for _ in range(times)]
    return shown, directory


def step_rows(text: str) -> list[str]:
    return re.findall(rf"^({'|'.join(STEPS)}|TOTAL)(?: +[\d.,]+%?){{9}}$", text, re.M)


def test_it_shows_what_the_five_steps_wait_for(demo):
    (first, *_), _ = demo
    assert step_rows(first.stdout) == [*STEPS, "TOTAL"]


def test_it_says_where_the_files_are(demo):
    (first, *_), directory = demo
    assert str(directory / "run") in first.stdout and str(directory / "work") in first.stdout
    for step in STEPS:
        assert list((directory / "run" / step).glob("*.weir"))
        assert list((directory / "run-tuned" / step).glob("*.weir"))


def test_rules_that_it_finds_make_fewer_requests_and_the_same_outputs(demo):
    shown, directory = demo
    assert tomllib.loads((directory / "run.rules.toml").read_text())["rule"]
    for one in shown:
        row = re.search(r"^requests to the file system  +(.+)$", one.stdout, re.M)[1]
        plain, tuned = (int(re.sub(r"\D", "", cell)) for cell in re.split(r"  +", row))
        assert tuned < 0.8 * plain
        assert re.search(r"Obtained: it is [\d.,]+ \w+ (shorter|longer); the I/O that delays it is "
            r"[\d.,]+ \w+ (shorter|longer)\.", one.stdout)
        said = re.search(r"(\d+) of (\d+) files and links are", one.stdout)
        same, every = map(int, said.groups())
        assert every - same == int(re.search(r"byte for byte; (\d+) logs", one.stdout)[1]) <= 5


def test_the_run_under_rules_counts_the_same_calls(demo, weir):
    """The workload is deterministic."""
    _, directory = demo
    found = [json.loads(weir("report", directory / name, "--json").stdout)
        for name in ("run", "run-tuned")]
    assert [step["name"] for step in found[0]["steps"]] == STEPS
    assert all(one["lost_events"] == 0 for one in found) and found[0]["complete"] is True
    for plain, tuned in zip(*(one["steps"] for one in found)):
        assert plain["ranks"] == tuned["ranks"] == 2
        assert plain["all"]["bytes"] == tuned["all"]["bytes"] >= plain["rank0"]["bytes"] > 0


def test_a_step_that_fails_is_shown_with_what_it_said(tmp_path):
    env = {"DEMO_RUN": str(tmp_path / "run"), "DEMO_WORK": str(tmp_path / "work")}
    done = run([ROOT / "tools" / "demo", "--tiny", "--ranks", "1", "--pools", "nonsense"], env=env,
        timeout=120)
    assert done.returncode != 0
    assert "nonsense" in done.stdout + done.stderr
