# SPDX-License-Identifier: Apache-2.0
"""What ends a bench before its end leaves neither its directory nor its programs behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from weir.bench import _scratch
from weir.bench._process import RunFailed, run

# A launcher, its rank in a session of its own (as MPICH's), both deaf to SIGTERM, and files without
# end in the bench's directory.
RANK = "trap '' TERM; echo $$ > rank; i=0; while :; do i=$((i + 1)); mkdir -p f$i; done"
LAUNCHER = f"""trap '' TERM; setsid sh -c "{RANK.replace("$", chr(92) + "$")}" & while :; do sleep 1; done"""
BENCH = f"""
import sys
from weir.bench import _process
from weir.bench._scratch import scratch
_process._POLITE_S = 0.3
with scratch({{parent!r}}) as place, scratch({{parent!r}}, in_memory=False) as other:
    _process.run(["sh", "-c", {LAUNCHER!r}], {{{{"PATH": {os.environ["PATH"]!r}}}}}, place, 60)
"""


def wait_for(what, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_programs_and_removes_directories(tmp_path, number):
    command = [sys.executable, "-c", BENCH.format(parent=str(tmp_path))]
    # What a shell starts in the background ignores SIGINT, and so would the bench.
    bench = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    found = wait_for(lambda: [path for path in tmp_path.glob("weir-bench-*/rank")
        if path.read_text().strip()])
    assert found and len(list(tmp_path.iterdir())) == 2
    rank = int(found[0].read_text())
    bench.send_signal(number)
    time.sleep(0.1)
    bench.send_signal(number)  # as timeout(1) does
    complaint = bench.communicate(timeout=300)[1]
    assert list(tmp_path.iterdir()) == [], complaint
    assert bench.returncode == (-signal.SIGINT if number == signal.SIGINT
        else 128 + number), complaint
    assert wait_for(lambda: gone(rank)), "the rank goes on"


def test_a_signal_in_the_moment_of_the_start_ends_what_was_started(tmp_path, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(SystemExit), _scratch.scratch(str(tmp_path)) as place:
        run(["sleep", "77"], dict(os.environ), place, 60)
    assert started and gone(started[0])
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    with pytest.raises(RunFailed, match="longer than 3 s"):
        run(["sh", "-c", "setsid sleep 77 & echo $! > pid; wait"], dict(os.environ), tmp_path, 3)
    assert wait_for(lambda: gone(int((tmp_path / "pid").read_text()))), "it goes on"


def test_signals_are_as_before_afterwards_and_ignored_ones_stay_ignored(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _scratch.scratch(str(tmp_path)), _scratch.scratch(str(tmp_path)):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is _scratch._leave
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
    assert list(tmp_path.iterdir()) == []
