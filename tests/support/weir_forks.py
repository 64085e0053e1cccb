# SPDX-License-Identifier: Apache-2.0
"""Run commands of weir in processes forked from ones that imported everything.

Starting an interpreter and importing what a command needs takes 0.15 s of CPU a call, with numpy,
pyarrow and DuckDB half a second, thousands of times. A forked call has a session, standard streams,
environment, working directory and exit status of its own, as a started one has. What is decided at
the start of the interpreter (locale, PYTHON*, LD_*) is shared: ``can_fork`` refuses calls that
change it. Commands are forked from the smallest of three processes that has what they import: a
fork takes time with the memory of the one that forks. A fourth runs the model of one rank
(weir_one_rank.py).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NoReturn

from weir_process import Completed, clean_environment, limit, signals_by_default

# What the start of an interpreter, or of a library that is loaded by then, reads.
_OF_INTERPRETERS = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "OMP_", "OPENBLAS_")
_PACKET = 1 << 18
_START_S = 60  # of all imports
_STARTS = (
    "typer._click._textwrap", "typer._click.decorators", "weir.capture._launch",
    "weir.capture._mounts", "weir.capture._shell", "weir.capture.drain", "weir.capture.tier",
    "weir.rules.check",
    "weir.rules.forms.assign_file", "weir.rules.forms.compiled", "weir.rules.forms.iobuf",
    "weir.rules.forms.mpiio_hints", "weir.rules.forms.toml", "weir.rules.sources",
    "weir.rules.matching.native", "weir.testfs._mount", "weir.testfs._stats",
)  # fmt: skip
_READS = (
    "importlib.readers", "numpy.ma", "weir.advise.advise", "weir.compare.page",
    "weir.compare.table", "weir.report.html.page", "weir.report.json", "weir.report.render",
    "weir.trace", "weir.tune.claim", "weir.tune.keep", *_STARTS,
)  # fmt: skip
_QUERIES = (
    "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet", "duckdb", "weir.export",
    "weir.query",
)  # fmt: skip
_READING = ("advise", "compare", "doctor", "report", "scaling")
_QUERYING = ("export", "query")
ONE_RANK = "weir_one_rank.py"


def can_fork(env: Mapping[str, str | None] | None) -> bool:
    return not any(name.startswith(_OF_INTERPRETERS) for name in env or ())


class Forks:
    """``forks(arguments, timeout=..., env=..., cwd=..., input=...)``: as weir_process.run.

    The command: that of weir, or ONE_RANK in its directory."""

    def __init__(self, command: Path):
        self._command = command
        self._servers: dict[str, tuple[socket.socket, subprocess.Popen]] = {}

    def _server_for(self, arguments: tuple[str, ...]) -> socket.socket:
        kind = _kind_of(self._command, arguments)
        if kind not in self._servers:
            self._servers[kind] = _started(kind)
        return self._servers[kind][0]

    def __call__(
        self, *arguments: str, timeout: float, env=None, cwd=None, input: str | None = None
    ) -> Completed:
        command = [str(self._command), *arguments]
        directory = str(cwd or os.getcwd())
        request = {"arguments": command, "env": clean_environment(env), "cwd": directory}
        answer, out, err = (os.pipe() for _ in range(3))
        passed = [_with_text(input), out[1], err[1], answer[1]]
        socket.send_fds(self._server_for(arguments), [json.dumps(request).encode()], passed)
        for fd in passed:
            os.close(fd)
        with contextlib.ExitStack() as stack:
            ends = [stack.enter_context(os.fdopen(end[0], "rb", 0)) for end in (answer, out, err)]
            answered, *output = _read_all(ends, command, limit(timeout))
        return Completed(tuple(command), int(answered.split()[1]), *map(_as_text, output))

    def close(self) -> None:
        for requests, server in self._servers.values():
            requests.close()
            server.wait()


def _kind_of(command: Path, arguments: tuple[str, ...]) -> str:
    if command.name == ONE_RANK:
        return ONE_RANK
    verb = arguments[0] if arguments else ""
    return "queries" if verb in _QUERYING else "reads" if verb in _READING else "starts"


def _started(kind: str) -> tuple[socket.socket, subprocess.Popen]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here, number = str(Path(__file__).parent), theirs.fileno()
    load = f"import sys; sys.path.insert(0, {here!r}); import weir_forks"
    code = f"{load}; weir_forks.serve({number}, {kind!r})"
    # One thread: a fork takes no other along.
    environment = {**clean_environment(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-c", code], pass_fds=[number], env=environment,
        stdin=subprocess.DEVNULL, start_new_session=True, **signals_by_default(),
    )  # fmt: skip
    theirs.close()
    return ours, server


def _with_text(text: str | None) -> int:
    """A descriptor from which the text is read; without one, nothing."""
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    fd = os.memfd_create("stdin")
    os.write(fd, text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _as_text(data: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace").read()


def _read_all(ends: list, command: list[str], timeout: float) -> list[bytes]:
    """All that comes out of the ends, of which the first has the lines of ``_run``. As with
    subprocess, the time limit begins with the process, and holds until the last one that has
    inherited an end has closed it."""
    texts = {end: b"" for end in ends}
    begun, until = None, time.monotonic() + limit(_START_S)
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(max(0, until - time.monotonic())):
                read = key.fileobj.read(1 << 16)
                texts[key.fileobj] += read
                if not read:
                    selector.unregister(key.fileobj)
            if begun is None and b"\n" in texts[ends[0]]:
                begun, until = int(texts[ends[0]].split()[0]), time.monotonic() + timeout
            assert begun or ends[0] in (key.fileobj for key in selector.get_map().values()), (
                "the process from which the commands are forked has ended")
            if time.monotonic() < until:
                continue
            assert begun, f"no process was forked within {limit(_START_S)} s"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(begun, signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, timeout)
    return list(texts.values())


def serve(number: int, kind: str) -> None:
    """Fork a process for each request, and answer with its id and, at its end, its exit status;
    until the other end is closed."""
    sys.path.remove("")
    main = _main_of_one_rank() if kind == ONE_RANK else _main_of_weir(kind)
    gc.freeze()
    requests = socket.socket(fileno=number)
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    replies: dict[int, int] = {}
    while True:
        ready = select.select([requests, woken], [], [])[0]
        if woken in ready:
            woken.recv(1 << 12)
            _answer_for_ended(replies)
        if requests not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(requests, _PACKET, 4)
        if not message:
            os._exit(0)
        *streams, reply = fds
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (requests.detach(), woken.detach(), wake.detach(), reply, *replies.values()):
                os.close(fd)
            _run(main, json.loads(message), streams)
        for fd in streams:
            os.close(fd)
        replies[pid] = reply
        os.write(reply, b"%d\n" % pid)


def _main_of_weir(kind: str) -> Callable[[], int]:
    """Import what commands need, and make what they make once: a child has it then."""
    app = importlib.import_module("weir.cli._app")
    importlib.import_module("weir.cli._main")
    if kind == "queries":
        with contextlib.suppress(importlib.import_module("weir").UsageError):
            importlib.import_module("weir.query._arrow").pyarrow_without_pandas()
    wanted = {"starts": _STARTS, "reads": _READS, "queries": (*_READS, *_QUERIES)}[kind]
    for module in (*wanted, *(f"weir.cli.{name.replace('-', '_')}_command" for name in
            app.COMMANDS)):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    command_of = importlib.import_module("typer.main").get_command
    command_of(app.app_for([]))
    verbs = [name for name in app.COMMANDS if _kind_of(Path("weir"), (name,)) == kind]
    made = {name: command_of(app.app_for([name])) for name in verbs}
    app_for = app.app_for
    app.app_for = lambda words: made[words[0]] if words and words[0] in made else app_for(words)
    if kind != "starts":
        importlib.import_module("weir._native").load_reader()
        importlib.import_module("weir.report.waits.ready_made")._expressions()
    if kind == "reads":
        section = importlib.import_module("weir.report.frame.section")
        for asset in files("weir.report.html").joinpath("assets").iterdir():
            if asset.name.endswith(".j2"):
                section._environment().get_template(asset.name)
    return importlib.import_module("weir.cli").main


def _main_of_one_rank() -> Callable[[], int]:
    """The library of weir is loaded by the child, which has the environment that chooses it, and
    ends with what libraries do at exit."""
    sys.modules["mpi4py"] = None  # type: ignore[assignment]
    module = importlib.import_module("weir_one_rank")
    libc = ctypes.CDLL(None)

    def main() -> int:
        try:
            module.main()
        except BaseException:
            traceback.print_exc()
            return 1
        sys.stdout.flush()
        libc.exit(0)
        raise AssertionError("exit returns to nobody")

    return main


def _answer_for_ended(replies: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            reply = replies.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):  # it took too long for the one who asked
                os.write(reply, b"%d\n" % os.waitstatus_to_exitcode(ended[1]))
            os.close(reply)


def _run(main: Callable[[], int], request: dict, streams: list[int]) -> NoReturn:
    """Be the command."""
    os.setsid()
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
    status = main()
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(status)  # what an interpreter does at its end would copy all that it has imported
