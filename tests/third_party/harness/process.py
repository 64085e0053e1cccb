# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a time limit that ends everything which it started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.model import Ended

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "WEIR_THIRD_PARTY_SOURCES")
_OUTPUT_MAX_BYTES = 20_000_000


def base_environment() -> dict[str, str]:
    """The few variables that every step has: results must not depend on the shell of who runs them.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment


def _session_of(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[3])
    return -1


def kill_session(session: int) -> None:
    """SIGKILL to each process of the session, until none is left that can be seen."""
    for _ in range(20):
        living = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and _session_of(int(entry.name)) == session
        ]
        if not living:
            return
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait([], 0.02)


def run_limited(
    command: Sequence[str], environment: Mapping[str, str], directory: Path, limit_s: float
) -> Ended:
    """Run it in a session of its own; its standard output and error together, in their order.

    The output goes to a file: a process that outlives the command does not hold the runner.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Ended("not started", str(error))
        status: int | str
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = "time limit"
        kill_session(process.pid)
        process.wait()
        output.seek(0)
        return Ended(status, output.read(_OUTPUT_MAX_BYTES).decode(errors="backslashreplace"))


def weir_environment(options: Sequence[str], weir: Path, directory: Path) -> dict[str, str]:
    """The variables that `weir env` with these options sets for what a shell starts."""
    script = 'lines=$("$@") && eval "$lines" && exec env -0'
    command = ["bash", "-c", script, "bash", str(weir), "env", *options]
    ended = subprocess.run(
        command, env=base_environment(), cwd=directory, capture_output=True, check=True
    )
    pairs = (part.split("=", 1) for part in ended.stdout.decode().split("\0") if "=" in part)
    return {name: value for name, value in pairs if re.match(r"WEIR_|LD_PRELOAD$", name)}
