# SPDX-License-Identifier: Apache-2.0
"""Programs under a rule with the layer stage, each test with a tier of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from weir_process import clean_environment


@pytest.fixture
def tier(tmp_path):
    # In memory, as a tier is: file systems of tests may have no leases.
    place = Path("/dev/shm") / f"weir-test-stage-{os.getpid()}-{tmp_path.name[:40]}"
    yield place
    # The daemon ends by itself within seconds when nothing is there for it.
    for one in (place, *place.parent.glob(place.name + ".node*")):
        shutil.rmtree(one, ignore_errors=True)
    shutil.rmtree(place.with_name(f"weir.{os.geteuid()}.{place.name[:64]}"), ignore_errors=True)


@pytest.fixture
def rule(preload, tier):
    """``rule("async", ":fsync=drain")``: the environment in which *.dat goes to the tier."""

    def environment(drain: str = "never", options: str = "", **more: str) -> dict[str, str]:
        return clean_environment() | {
            "LD_PRELOAD": str(preload), "WEIR_JOB": tier.name,
            "WEIR_RULES": "weir-rules 1\nrule source=test:1:1 name=*.dat "
                          f"stack=stage:tier={tier}:drain={drain}{options}|system\n"} | more

    return environment


@pytest.fixture
def run(weir, rule, tmp_path):
    """Runs a command in tmp_path/staged, or another directory, under such a rule."""

    def call(*command, where=None, drain="never", stack="", **more):
        where = where or tmp_path / "staged"
        where.mkdir(exist_ok=True)
        return subprocess.run(command, cwd=where, env=rule(drain, stack, **more),
            capture_output=True, text=True, timeout=300, check=False)

    return call
