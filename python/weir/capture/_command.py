# SPDX-License-Identifier: Apache-2.0
"""Starting one command and standing in its place: its descriptors, its signals, its exit status.

The command stays in the process group of the caller, so that the terminal, job control and batch
systems treat it as if weir were not there. A signal sent to that whole group has therefore reached
the command already, and must not be sent again (the second SIGTERM within seconds makes mpirun give
up its ranks), while one sent to weir alone must be passed on. The kernel does not say which it was;
the canary does: a `cat` in the same group, without handlers, that waits on a pipe. A signal to the
group kills it. It ends with weir, whatever ends weir, because the pipe closes.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

# What a batch system, a shell or a person may send. Those that stop a process keep their effect on
# weir and the command.
PASSED_ON = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGVTALRM,
        signal.SIGPROF,
        signal.SIGXCPU,
        signal.SIGIO,
        signal.SIGPWR,
    }
)
# ignored by the interpreter; a command expects the default
_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# Looks at the canary, 2 ms apart: not a time, as on a busy machine who sends a signal first to weir
# and then to its group may come late to the second.
_CANARY_LOOKS = 100
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class CannotStart(Exception):
    """The command was not started; ``status`` is what a shell would exit with."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def word(text: str) -> str:
    """The text as one word of a shell's command line; bytes that are not UTF-8 as bash reads them.
    """
    if text.isascii() or text == os.fsencode(text).decode(errors="replace"):
        return shlex.quote(text)
    parts = (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in os.fsencode(text))
    return "$'" + "".join({"\\": "\\\\", "'": "\\'"}.get(part, part) for part in parts) + "'"


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """The file that ``name`` starts, searched as a shell searches it. Raises CannotStart."""
    if "/" in name:
        if not os.path.exists(name):
            raise CannotStart(f"{name}: no such file", NOT_FOUND)
        if os.path.isdir(name):
            raise CannotStart(f"{name}: is a directory", NOT_EXECUTABLE)
        if not os.access(name, os.X_OK):
            raise CannotStart(f"{name}: not executable; chmod +x, or name the interpreter",
                NOT_EXECUTABLE)
        return name
    found = shutil.which(name, path=environ.get("PATH", os.defpath)) if name else None
    if found is None:
        raise CannotStart(f"{name or repr(name)}: command not found", NOT_FOUND)
    return found


def _spawn(path: str, arguments: Sequence[str], environ: Mapping[str, str],
        mask: set[signal.Signals]) -> int:
    keywords = {"setsigmask": mask, "setsigdef": _SET_BY_PYTHON}
    try:
        return os.posix_spawn(path, arguments, environ, **keywords)
    except OSError as error:
        # a script without a first line that names its interpreter: as shells do
        if error.errno == errno.ENOEXEC:
            return os.posix_spawn("/bin/sh", ["sh", path, *arguments[1:]], environ, **keywords)
        why = error.strerror
        if error.errno == errno.ENOENT:
            why = "the interpreter that it names does not exist"
        raise CannotStart(f"{path}: cannot be started: {why}", NOT_EXECUTABLE) from error


class _Canary:
    """Tells whether a signal reached the whole process group. Costs one small process; without
    `cat` it never sings."""

    def __init__(self) -> None:
        self._program = shutil.which("cat")
        self._read, self._write = os.pipe()
        self._pid: int | None = None
        self._hatch()

    def _hatch(self) -> None:
        self._pid = None
        if self._program is None:
            return
        actions = [(os.POSIX_SPAWN_DUP2, self._read, 0)]
        actions += [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        with suppress(OSError):
            self._pid = os.posix_spawn(
                self._program, ["cat"], {}, file_actions=actions, setsigmask=[],
                setsigdef=[*PASSED_ON, signal.SIGPIPE]
            )

    def died_of(self, number: int) -> bool:
        """Whether the canary was killed by this signal, waiting a moment for it."""
        for _ in range(_CANARY_LOOKS if self._pid is not None else 0):
            # Who was sent the signal dies of it, however long that takes on a busy machine.
            pid, status = os.waitpid(self._pid, 0 if self._was_sent(number) else os.WNOHANG)
            if pid:
                killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
                # the other half of kill(weir) + kill(group), as timeout(1) sends them
                signal.sigtimedwait([number], 0)
                self._hatch()
                return killed
            time.sleep(0.002)
        return False

    def _was_sent(self, number: int) -> bool:
        with suppress(OSError), open(f"/proc/{self._pid}/status") as file:
            pending = next(line.split()[1] for line in file if line.startswith("ShdPnd:"))
            return bool(int(pending, 16) >> (number - 1) & 1)
        return False

    def release(self) -> None:
        os.close(self._write)
        os.close(self._read)
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


def _wait(pid: int, canary: _Canary) -> int:
    """Pass signals on until the process ends; its wait status."""
    while True:
        caught = signal.sigwaitinfo(PASSED_ON | {signal.SIGCHLD})
        if caught.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
        elif not canary.died_of(caught.si_signo):
            with suppress(ProcessLookupError):
                os.kill(pid, caught.si_signo)


def run_command(command: Sequence[str], environ: Mapping[str, str],
        on_start: Callable[[int], None] = lambda pid: None) -> int:
    """Run a command to its end: the status it exited with, or minus the signal that killed it.
    on_start gets its process number. Raises CannotStart.

    To be called from the main thread; signals that arrive in between are passed on or, after the
    end, take effect.
    """
    path = find_program(command[0], environ)
    inherited = signal.getsignal(signal.SIGCHLD)
    # a caller may have it ignored, and then nobody can be waited for
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    try:
        # before the command: a signal to the group that reaches one reaches both
        canary = _Canary()
        try:
            pid = _spawn(path, command, environ, mask)
            on_start(pid)
            status = _wait(pid, canary)
        finally:
            canary.release()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGCHLD, inherited)
    return os.waitstatus_to_exitcode(status)


def shell_status(status: int) -> int:
    """What a shell's $? is for it: 128 + n when signal n killed the command."""
    return 128 - status if status < 0 else status
