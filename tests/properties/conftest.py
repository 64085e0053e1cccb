# SPDX-License-Identifier: Apache-2.0
"""The stage on which scripts are played; options are in tests/support/weir_fixtures.py
(--operations, --seed)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from play import Stage, a_job, build, end_job  # noqa: E402


@pytest.fixture(scope="session")
def player(tmp_path_factory):
    return build(tmp_path_factory.mktemp("player"))


@pytest.fixture(scope="session")
def job():
    environment = a_job()
    yield environment
    end_job(environment)


@pytest.fixture
def stage(player, preload, tmp_path, job) -> Stage:
    return Stage(player, tmp_path, preload, job)


@pytest.fixture
def traced_stage(player, preload, preload_env, tmp_path, job) -> Stage:
    return Stage(player, tmp_path, preload, {**preload_env(WEIR_BUDGET="64M"), **job})
