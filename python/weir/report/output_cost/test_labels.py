# SPDX-License-Identifier: Apache-2.0
"""Labels of files and variables, as each trace file has them."""

from __future__ import annotations

import numpy as np

from weir.report.output_cost.calls import NO_LABEL, Cuts, Labels
from weir.trace._abi import NO_ROW

NAMES = 1000


def labels() -> Labels:
    """Name n is file n, but for 7, a variable of file 500, and 8, no output; name 9 is file 9, then
    file 600."""
    of_name, file = np.arange(NAMES + 1), np.arange(NAMES + 1, dtype=np.uint32)
    file[7], of_name[8], of_name[NAMES] = 500, NO_LABEL, NO_LABEL
    return Labels(of_name, np.arange(NAMES + 1, dtype=np.uint32), Cuts({9: ([123], [600])}), file,
        tuple(map(str, range(NAMES + 1))))


def test_a_trace_file_has_the_labels_of_its_names_alone():
    used = labels().used_by(np.array([3, 7, 8, 9, 3]))
    assert used.every.tolist() == [3, 7, 9, 500, 600]
    of_text, members, file, first, at, cuts = used.arrays
    assert of_text.tolist() == [0, 1, NO_ROW, 2, 0] and members.tolist() == [3, 7, 8, 9, 3]
    assert used.every[file].tolist() == [3, 500, 9, 500, 600]
    assert (first.tolist(), at.tolist(), cuts.tolist()) == ([0, 0, 0, 0, 1, 1], [123], [4])


def test_a_trace_file_without_output_has_none():
    used = labels().used_by(np.array([8]))
    assert not len(used.every) and used.arrays[0].tolist() == [NO_ROW]
