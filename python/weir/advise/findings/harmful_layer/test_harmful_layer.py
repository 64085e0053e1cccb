# SPDX-License-Identifier: Apache-2.0
"""Finding harmful-layer: a layer that takes time and merges nothing, and one that does its work."""

from __future__ import annotations

import sys

import pytest
from advised import advise_run

WRITES = """
import os, sys
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(300): os.write(f, bytes(4096))
"""


@pytest.mark.parametrize(("layer", "harms"), [("delay:us=2000", True), ("bufa:1MiB:4", False)])
def test_a_layer_that_takes_time_of_its_own_is_found(weir, tmp_path, layer, harms):
    (tmp_path / "rules.toml").write_text(
        f'[[rule]]\npath = "{tmp_path}/out"\nstack = "event | {layer} | event"\n')
    weir("trace", "-o", tmp_path / "run", "--rules", tmp_path / "rules.toml", "--", sys.executable,
        "-c", WRITES, tmp_path / "out").ok()
    found = advise_run(tmp_path / "run").advices
    assert [one.finding for one in found] == ["harmful-layer"] * harms
    if harms:
        (one,) = found
        assert "merge 300 calls to 300 requests" in one.sentence
        assert one.change.startswith(f"Drop the rule of {tmp_path}/out")
        assert 0.25 < one.saving.io.low < one.saving.io.high
