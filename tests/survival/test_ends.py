# SPDX-License-Identifier: Apache-2.0
"""However a process ends, it ends as it would without the library, and every call it made is in the
trace."""

import signal

import pytest
from weir_guest import counts

EXIT, QUICK, NONE, SIGNALLED = 1, 2, 0, 4

ENDS = {
    "return": (7, EXIT),
    "exit": (7, EXIT),
    "thread_exit": (7, EXIT),
    "pthread_exit": (0, EXIT),
    "_exit": (7, QUICK),
    "_Exit": (7, QUICK),
    "quick_exit": (7, QUICK),
    "exit_group": (7, None),
    "abort": (-signal.SIGABRT, SIGNALLED),
    "thread_crash": (-signal.SIGSEGV, NONE),
    **{f"signal {s}": (-s, NONE) for s in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP,
        signal.SIGFPE, signal.SIGPIPE)},
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("level", ["trace", "detail"])
def test_all_calls_are_there_and_the_status_is_the_programs_own(guest, traced, how, level):
    status, end_kind = ENDS[how]
    outcome = traced([guest("ends.c"), how], level=level)
    assert outcome.done.returncode == status, outcome.done.stderr
    trace = outcome.trace
    assert counts(trace, "write", "main") == 1000
    assert counts(trace, "write", "other") == 1000
    (process,) = trace.processes.values()
    assert process.lost_events == 0 and process.failures == 0
    if end_kind is not None:
        assert process.end_kind == end_kind
        assert (process.end_ticks != 0) == (end_kind != NONE)
