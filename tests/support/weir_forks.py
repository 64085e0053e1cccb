# SPDX-License-Identifier: Apache-2.0
"""Run the commands of weir that only read, in processes forked from one that imported everything.

Starting an interpreter and importing numpy, pyarrow and DuckDB takes half a second of CPU a call,
hundreds of times. A forked call has a session, standard streams, environment, working directory and
exit status of its own, as a started one has. What is decided at the start of the interpreter
(locale, PYTHON*, LD_*) is shared: ``can_fork`` refuses calls that change it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from weir_process import Completed, clean_environment, limit, signals_by_default

VERBS = ("report", "query", "compare", "export", "advise")
_PACKET = 1 << 17
_START_S = 60  # of all imports
_IMPORTED = (
    "numpy.ma", "pandas", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet", "duckdb",
    "weir.cli._app", "weir.compare.table", "weir.export", "weir.trace", "weir.query",
    *(f"weir.cli.{verb}_command" for verb in VERBS),
)  # fmt: skip


def can_fork(arguments: tuple[str, ...], env: Mapping[str, str | None] | None) -> bool:
    is_verb = bool(arguments) and arguments[0] in VERBS
    return is_verb and all(name.startswith("WEIR_") or name == "COLUMNS" for name in env or ())


class Forks:
    """``forks(arguments, timeout=..., env=..., cwd=..., input=...)``: as weir_process.run."""

    def __init__(self, command: Path):
        self._command = command
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here, number = str(Path(__file__).parent), theirs.fileno()
        load = f"import sys; sys.path.insert(0, {here!r}); import weir_forks"
        code = f"{load}; weir_forks.serve({number})"
        # One thread: a fork takes no other along.
        environment = {**clean_environment(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[number], env=environment,
            stdin=subprocess.DEVNULL, start_new_session=True, **signals_by_default(),
        )  # fmt: skip
        theirs.close()

    def __call__(
        self, *arguments: str, timeout: float, env=None, cwd=None, input: str | None = None
    ) -> Completed:
        command = [str(self._command), *arguments]
        directory = str(cwd or os.getcwd())
        request = {"arguments": command, "env": clean_environment(env), "cwd": directory}
        with contextlib.ExitStack() as stack:
            fds = map(os.memfd_create, ("stdin", "stdout", "stderr"))
            streams = [stack.enter_context(os.fdopen(fd, "r+b")) for fd in fds]
            streams[0].write((input or "").encode())
            streams[0].seek(0)
            answer, reply = os.pipe()
            replies = stack.enter_context(os.fdopen(answer, "rb", buffering=0))
            passed = [*(stream.fileno() for stream in streams), reply]
            socket.send_fds(self._socket, [json.dumps(request).encode()], passed)
            os.close(reply)
            begun = _line(replies, limit(_START_S))
            assert begun, f"no process was forked within {limit(_START_S)} s"
            status = _line(replies, limit(timeout))
            if status is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(int(begun), signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout)
            output = []
            for stream in streams[1:]:
                stream.seek(0)
                text = io.TextIOWrapper(io.BytesIO(stream.read()), "utf-8", "replace")
                output.append(text.read())
        return Completed(tuple(command), int(status), *output)

    def close(self) -> None:
        self._socket.close()
        self._server.wait()


def _line(stream, timeout: float) -> bytes | None:
    """The next line, None when it does not come in time."""
    text = b""
    while not text.endswith(b"\n"):
        if not select.select([stream], [], [], timeout)[0]:
            return None
        byte = stream.read(1)
        assert byte, "the process from which the commands are forked has ended"
        text += byte
    return text


def serve(number: int) -> None:
    """Fork a process for each request, until the other end is closed."""
    sys.path.remove("")
    for module in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.freeze()
    requests = socket.socket(fileno=number)
    while True:
        message, fds, _, _ = socket.recv_fds(requests, _PACKET, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            _run(json.loads(message), fds)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _run(request: dict, fds: list[int]) -> None:
    """Run the command in a child of this process, which reports the child's id and exit status."""
    *streams, reply = fds
    if pid := os.fork():
        for fd in streams:
            os.close(fd)
        os.write(reply, b"%d\n" % pid)
        os.write(reply, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    os.setsid()
    os.close(reply)
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["arguments"]
    # As an interpreter makes them in the locale C.UTF-8.
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = open(
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1
    )
    from weir.cli import main

    status = main()
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(status)  # what an interpreter does at its end would copy all that it has imported
