# SPDX-License-Identifier: Apache-2.0
"""Runs with known records: those of the golden files, and one of two steps and nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from query_runs import TWO_STEPS, write_run

from weir.report import build, report_json

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "reader" / "golden").glob("*.txt"))


@pytest.fixture(scope="session")
def two_steps(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("query") / "run", TWO_STEPS)


@pytest.fixture(scope="session", params=GOLDEN, ids=lambda path: path.stem)
def golden_run(request, tmp_path_factory) -> Path:
    text = request.param.read_text().split("\n? ")[0]
    return write_run(tmp_path_factory.mktemp(request.param.stem) / "run", text)


@pytest.fixture(scope="session")
def report():
    """``report(run)``: what `weir report --json` tells of a run; everything=True: with --all."""

    def call(run: Path, everything: bool = False) -> dict:
        return json.loads(json.dumps(report_json(build(run, all=everything))))

    return call
