# SPDX-License-Identifier: Apache-2.0
"""I/O of programs without MPI that run while no rank of the step does: cp, cdo or tar of a job
script, before or behind the model."""

from __future__ import annotations

import numpy as np

from weir.analysis.active import active_time
from weir.report.frame.build import StepReport, figure
from weir.report.waits.locations import lives_of
from weir.report.waits.summary import synchronisation_of

LEAST_SHARE = 0.01  # of the step


@figure
def outside_ns(step: StepReport) -> int:
    """How long at least one of them is in I/O; 0 where that is less than LEAST_SHARE of the step,
    and in steps without waits in MPI.

    cost: a pass over their records.
    """
    found, data = synchronisation_of(step), step.data
    if found.waits is None:
        return 0
    locations, columns = found.account.locations, data.sums.by_member
    its = columns.where(columns.by_code("RWOCM") & columns.is_file)
    io_ns = np.bincount(its.member, its.own_ns, len(data.members))
    lives = lives_of(data, locations)
    chosen = np.zeros(len(data.members), bool)
    for at in np.flatnonzero((locations.of_member < 0) & (io_ns > 0)).tolist():
        member = data.members[at]
        line, process = data.lines[member.file], member.process
        begin, end = (line.timestamp(t) for t in (process.start_ticks, process.last_ticks))
        chosen[at] = not member.is_launcher and not (
            (lives[:, 0] < end) & (lives[:, 1] > begin)).any()
    least = LEAST_SHARE * step.wall_ns
    if io_ns[chosen].sum() < least:
        return 0
    firsts = [data.first_member(index) for index in range(len(data.files))]
    masks = [chosen[first : first + len(file.processes)]
        for first, file in zip(firsts, data.files)]
    ns = active_time(data.files, data.lines, masks).ns
    return ns if ns >= least else 0
