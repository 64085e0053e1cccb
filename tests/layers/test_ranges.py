# SPDX-License-Identifier: Apache-2.0
"""Byte-range locks on files under layers: the bytes that the kernel locks, and its answers, are
those without layers."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("how", ["fcntl", "ofd", "lockf"])
@pytest.mark.parametrize("stack", ["global:8192:4:always=1", "gather:8192:4:always=1",
    "forward:8192:8:always=1", "bufa:8192:2:always=1"])
def test_a_lock_from_the_position_or_the_end_is_on_the_same_bytes(cc, execute, preload, tmp_path,
        stack, how):
    program = cc((HERE / "programs" / "ranges.c").read_text(), name="ranges")
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    said = []
    try:
        for env in ({}, {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}):
            (tmp_path / "a.dat").write_bytes(bytes(20))
            (tmp_path / "plain").unlink(missing_ok=True)
            os.link(tmp_path / "a.dat", tmp_path / "plain")
            said.append(execute([program, tmp_path / "a.dat", tmp_path / "plain", how], env=env)
                .ok().stdout)
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    assert said[1] == said[0]
    assert said[0].count("X") >= 6
