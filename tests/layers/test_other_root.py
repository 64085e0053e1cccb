# SPDX-License-Identifier: Apache-2.0
"""A child that goes on in another root directory sees no /proc: it must not take living holders of
locks and leases for dead ones, nor be taken for one."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import pytest

STACKS = ["keep:files=1:always=1", "keep:files=1:always=1|bufa:4096:2:always=1"]
SEEDS = range(1, 17)


def lines_of(directory: Path) -> dict[str, list[str]]:
    """In no order: parent and child append side by side."""
    return {file.name: sorted(file.read_text().splitlines()) for file in directory.iterdir()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root directory")
@pytest.mark.parametrize("stack", STACKS)
def test_a_child_in_another_root_directory(cc, preload, execute, tmp_path, stack):
    program = cc((Path(__file__).parent / "programs/other_root.c").read_text())
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = f"weir-rules 1\nrule source=test:1 name=*.log stack={stack}|system\n"
    layered = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    try:
        for seed in SEEDS:
            found = []
            for name, env in ("plain", {}), ("layered", layered):
                directory = tmp_path / f"{name}{seed}"
                directory.mkdir()
                execute([program, directory, str(seed)], env=env, timeout=30).ok()
                found.append(lines_of(directory))
            assert found[0] == found[1], seed
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
