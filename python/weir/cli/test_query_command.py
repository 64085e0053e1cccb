# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading

import pytest

from weir.cli.query_command import _deferring_interrupts, _interrupting


def test_an_interrupt_of_an_import_is_raised_behind_it():
    before, imported = signal.signal(signal.SIGINT, signal.default_int_handler), []
    try:
        with pytest.raises(KeyboardInterrupt), _deferring_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            imported.append("all")
        assert imported and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


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
