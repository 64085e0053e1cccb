# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading

from weir.cli.query_command import _interrupting


def test_an_interrupt_is_repeated_until_the_question_has_ended():
    """DuckDB forgets one that comes before it has begun."""
    calls, again = [], threading.Event()

    def interrupt() -> None:
        calls.append(None)
        if len(calls) == 3:
            again.set()

    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with _interrupting(interrupt):
            assert calls == []
            os.kill(os.getpid(), signal.SIGINT)
            assert again.wait(300)
    finally:
        signal.signal(signal.SIGINT, before)
