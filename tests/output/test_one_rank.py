# SPDX-License-Identifier: Apache-2.0
"""The fixture one_rank: the model that is forked does what the one that is started does."""

from __future__ import annotations

import json
import sys

import weir_one_rank

HERE = {"lon": [0.0, 90.0, 180.0], "lat": [45.0, -45.0]}


def test_a_forked_model_answers_as_one_that_is_started(one_rank, tmp_path):
    jobs = [{**HERE, "put": "o.nc"}, {**HERE, "get": "o.nc"}, {**HERE, "get": "none.nc"}]
    found = []
    for started in (False, True):
        said = one_rank(*jobs, **({"PYTHONUTF8": "1"} if started else {}))
        found.append((said, one_rank.stderr, one_rank.command,
            [(tmp_path / name).read_bytes() for name in ("o.nc", "o.nc.npy")]))
        (tmp_path / "o.nc").unlink()
    (*forked, by_fork, values), (*begun, by_start, others) = (
        (said, stderr, command, data) for said, stderr, command, data in found)
    assert forked == begun and values == others
    assert "none.nc" in forked[0][2] and forked[0][:2] == ["", ""]
    assert by_fork == (weir_one_rank.__file__, json.dumps(jobs))
    assert by_start == (sys.executable, *by_fork)
