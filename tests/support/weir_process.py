# SPDX-License-Identifier: Apache-2.0
"""Running a program in a test: limited, killed with all its children, in an environment that is the
same everywhere."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

DEFAULT_TIMEOUT_S = 60.0
# Time limits of tests are for an idle machine, and end what hangs; a busy one takes several times
# as long for the same work.
PATIENCE = 5


def limit(seconds: float) -> float:
    """The time limit, in seconds, of what should take at most so many."""
    return seconds * PATIENCE


# A shell may have started the tests with these ignored (nohup, &), which every program would
# inherit.
_OF_SHELLS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


@dataclass(frozen=True)
class Completed:
    """What came of a program; a negative returncode is the signal that killed it."""

    args: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    def ok(self) -> Completed:
        """Itself when the program succeeded; otherwise an AssertionError that shows all it said."""
        assert self.returncode == 0, (
            f"{shlex.join(self.args)}\nended with {self.returncode}\n"
            f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}"
        )
        return self


def clean_environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The caller's environment without weir's own variables, with the changes; a value of None
    removes a variable."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")
        and k != "LD_PRELOAD"}
    environment["LC_ALL"] = "C.UTF-8"
    for name, value in (changes or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    return environment


def _take_signals_by_default() -> None:
    for number in _OF_SHELLS:
        signal.signal(number, signal.SIG_DFL)


def signals_by_default() -> dict[str, Callable[[], None]]:
    """A keyword for subprocess: the program does not ignore what ends it. SIGPIPE is seen to by
    subprocess itself."""
    ignored = any(signal.getsignal(number) is signal.SIG_IGN for number in _OF_SHELLS)
    return {"preexec_fn": _take_signals_by_default} if ignored else {}


def run(
    command: Sequence[object],
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str | None] | None = None,
    cwd: object = None,
    input: str | None = None,
) -> Completed:
    """Run a command to its end. Raises subprocess.TimeoutExpired after ``limit(timeout)``, after
    killing its whole session."""
    arguments = tuple(str(part) for part in command)
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=clean_environment(env),
        cwd=cwd,
        start_new_session=True,
        **signals_by_default(),
    ) as process:
        try:
            stdout, stderr = process.communicate(input, timeout=limit(timeout))
        except subprocess.TimeoutExpired:
            _kill_session(process.pid)
            process.communicate()
            raise
    return Completed(arguments, process.returncode, stdout, stderr)


def _kill_session(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
