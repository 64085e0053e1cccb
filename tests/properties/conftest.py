# SPDX-License-Identifier: Apache-2.0
"""The stage on which scripts are played; options are in tests/support/weir_fixtures.py (--operations, --seed)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from play import Stage, build  # noqa: E402


@pytest.fixture(scope="session")
def player(tmp_path_factory):
    return build(tmp_path_factory.mktemp("player"))


@pytest.fixture
def stage(player, preload, tmp_path) -> Stage:
    return Stage(player, tmp_path, preload, {"WEIR_QUIET": "1"})


@pytest.fixture
def traced_stage(player, preload, preload_env, tmp_path) -> Stage:
    return Stage(player, tmp_path, preload, {"WEIR_QUIET": "1", **preload_env(WEIR_BUDGET="64M")})
