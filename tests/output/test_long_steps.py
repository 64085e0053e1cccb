# SPDX-License-Identifier: Apache-2.0
"""Two-sided transport: ranks send in their calls of libweir. Those that compute for longer than the
time limit are waited for; those that others wait for are not."""

from __future__ import annotations

import numpy as np
import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

# pieces that MPI does not send on its own
TWO_SIDED = {"WEIR_OUTPUT_TRANSPORT": "two-sided", "nx": 200, "ny": 100, "path": "o.nc"}


def test_ranks_that_compute_for_longer_than_the_time_limit_are_waited_for(model):
    model(4, "servers+parallel", limit_s=2, steps=2, pause_ms=3000, WEIR_OUTPUT_SERVERS_PER_GROUP=2,
        **TWO_SIDED).fine()
    with Dataset(model.directory / "o.nc") as file:
        assert file["time"][:].tolist() == [0, 60]
        for step in (0, 1):
            plain = np.arange(3)[:, None] * 10000 + np.arange(20000)[None] % 997 + step * 0.25
            assert np.array_equal(file["f1"][step].reshape(3, -1), (100000 + plain).astype("f4"))


def test_a_rank_that_others_wait_for_is_given_up_after_the_time_limit(model):
    ran = model(4, "servers", survive=True, limit_s=2, steps=6, hang_step=1, skip_rank=1, hang_s=8,
        **TWO_SIDED)
    for rank in (0, 2):
        assert ran.codes(rank)[0] == "WEIR_E_LOST", ran.said
    assert ran.codes(3) == ["WEIR_E_LOST"] and "within 2 s (time_limit_s)" in ran.said[3][0][2]
    assert not (model.directory / "o.nc").exists()
