# SPDX-License-Identifier: Apache-2.0
"""Messages name the right rank, by one numbering, and are reported once."""

from __future__ import annotations

from collections import Counter

import pytest

pytestmark = pytest.mark.any_mpi


def test_when_output_has_ended_the_reason_is_reported_once(model):
    ran = model(4, "servers", survive=True, limit_s=2, steps=12, hang_step=3, skip_rank=1,
        hang_s=60, path="o.nc")
    ended = ("nothing is written any more; an earlier call reported why",
        "no server is left: nothing is written any more")
    later = []
    # the first that ends with an error may take the others with it, by the launcher
    for rank in (0, 2):
        printed = Counter(message for _, _, message in ran.said[rank])
        later.append(sum(printed.pop(text, 0) for text in ended))
        assert set(printed.values()) == {1}, printed
        assert set(ran.codes(rank)) == {"WEIR_E_LOST"}
    assert max(later) > 5
    assert "step 3: ranks that did not end the step within 2 s (time_limit_s): 1" in ran.said[0][0][
        2]


def test_ranks_are_numbered_as_in_the_communicator_of_weir_init(model):
    """Ranks 1 and 3 of four serve: the model's second rank is rank 2."""
    ran = model(4, "servers", WEIR_OUTPUT_GROUPS=2, WEIR_OUTPUT_PLACEMENT="spread", steps=4,
        skip_step=1, skip_rank=1, path="o.nc")
    for rank in (0, 2):
        ((call, code, message),) = ran.said[rank]
        assert code == "WEIR_E_MISSING" and "(the first: rank 2)" in message
