# SPDX-License-Identifier: Apache-2.0
"""Golden files: a trace in words, questions, and the answers of `weir report` to them.

    # text                              what the file shows
    step NAME [wall=SECONDS] [status=N] starts a step; with wall, its job.json says so; cwd is
                                        /scratch/an
    node NAME [level=N]                 starts a trace file; one tick is 1 ns, times count from its
                                        making
    process pid=N [rank=N ranks=N] ...  starts a process; further words are fields of the process
                                        chunk
    thread N                            what follows is of this thread
    OP [PATH] at=NS for=NS [bytes=N] [x=N] [unit=N] [offset=N] [error=N] [layer=N] [below] [nested]
                                        a record; x=N: N of them, one after the other, `every` ns
                                        apart (default: `for`)
    counter OP [PATH] calls=N bytes=N for=NS at=NS
                                        a counter
    sync N ranks=N at=NS                a barrier left
    ? ARGUMENTS                         weir report RUN ARGUMENTS; its output follows, `status N`
                                        last when it is not 0
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from weir.trace._synthetic import UNKNOWN_OFFSET, ProcessWriter, TraceWriter, counter, event, sync

STARTED_NS = 1_700_000_000 * 10**9


class GoldenTrace:
    """Writes the trace part of a golden file into a run directory."""

    def __init__(self, run: Path):
        self.run, self.steps = run, 0
        self.directory = run
        self.writer: TraceWriter | None = None
        self.process: ProcessWriter | None = None
        self.thread = 1
        self.records: dict[tuple[int, int], list[np.ndarray]] = {}

    def line(self, text: str) -> None:
        first, *words = shlex.split(text)
        plain = [word for word in words if "=" not in word]
        given = dict(word.split("=", 1) for word in words if "=" in word)
        values = {key: int(value) if value.lstrip("-").isdigit() else value
            for key, value in given.items()}
        getattr(self, f"_{first}", self._record)(first, plain, values)

    def _step(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        self._end_file()
        self.directory = self.run / plain[0]
        self.directory.mkdir(parents=True)
        begin = STARTED_NS + self.steps * 10**12
        self.steps += 1
        if "wall" in values:
            job = {"format": 1, "step": plain[0], "command": ["./job"], "cwd": "/scratch/an",
                "level": "trace",
                   "started_realtime_ns": begin, "ended_realtime_ns": begin
                   + round(float(values["wall"]) * 1e9),
                   "exit_status": values.get("status", 0)}  # fmt: skip
            (self.directory / "job.json").write_text(json.dumps(job))

    def _node(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        self._end_file()
        begin = STARTED_NS + (self.steps - 1) * 10**12
        self.writer = TraceWriter(self.directory / f"{plain[0]}.weir", plain[0],
            created_realtime_ns=begin, **values)

    def _process(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        if "command" in values:
            values["command"] = str(values["command"]).split()
        assert self.writer is not None
        for key in ("io_start", "io_last"):
            if key in values:
                values[key] = [int(word) for word in values[key].split(",")] + [0, 0]
        for key in ("start_ticks", "end_ticks", "last_ticks"):
            if key in values:
                values[key] += self.writer.created_ticks
        self.process, self.thread = self.writer.process(**values), 1

    def _thread(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        self.thread = int(plain[0])

    def _sync(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        self._keep(sync(self._ticks(values["at"]), int(plain[0]), values["ranks"]))

    def _counter(self, _: str, plain: list[str], values: dict[str, Any]) -> None:
        assert self.process is not None
        name, *path = plain
        begin = self._ticks(values["at"])
        last = begin + values["for"] * values["calls"]
        file = self.process.name(path[0]) if path else 0
        self.process.counters(counter(name, values["calls"], values["bytes"], values["for"], begin,
            last, file=file))

    def _record(self, name: str, plain: list[str], values: dict[str, Any]) -> None:
        assert self.process is not None
        paths = [word for word in plain if word not in ("below", "nested")]
        file = self.process.name(paths[0]) if paths else 0
        offset = values.get("unit", values.get("offset", UNKNOWN_OFFSET))
        error = values.get("error", 0)
        times = self._ticks(values["at"]) + np.arange(values.get("x", 1)) * values.get("every",
            values["for"])
        self._keep(
            event(
                name, times, values["for"], file=file, size=values.get("bytes", 0), offset=offset,
                error=error,
                flags=int(error != 0), below="below" in plain, nested="nested" in plain,
                layer=values.get("layer"),
            )
        )  # fmt: skip

    def _ticks(self, ns: int) -> int:
        assert self.writer is not None
        return self.writer.created_ticks + ns

    def _keep(self, records: np.ndarray) -> None:
        assert self.process is not None
        self.records.setdefault((id(self.process), self.thread), []).append(records)
        self._last = self.process

    def _end_file(self) -> None:
        if self.writer is None:
            return
        for process in self.writer.processes:
            for (owner, thread), parts in self.records.items():
                if owner == id(process):
                    process.events(np.concatenate(parts), thread=thread)
        self.records.clear()
        self.writer.close()
        self.writer = None

    def close(self) -> None:
        self._end_file()


def answer(run: Path, arguments: str) -> str:
    """What `weir report RUN ARGUMENTS` prints, and its status."""
    from typer.testing import CliRunner

    from weir.cli._app import app_for

    words = ["report", str(run), *shlex.split(arguments)]
    result = CliRunner().invoke(app_for(words), words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    text = result.output.replace(str(run), "RUN")
    return text + (f"status {result.exit_code}\n" if result.exit_code else "")


def answered(path: Path, run: Path) -> str:
    """The whole golden file with its answers renewed."""
    made, trace, is_answer = [], GoldenTrace(run), False
    lines = path.read_text().splitlines()
    for line in lines:
        if line.startswith("? "):
            trace.close()
            made += ["", line, *answer(run, line[2:]).rstrip("\n").split("\n")]
            is_answer = True
        elif not is_answer:
            if line.strip() and not line.startswith("#"):
                trace.line(line)
            made.append(line)
    while "" in made and (at := _double_blank(made)) is not None:
        del made[at]
    return "\n".join(made) + "\n"


def _double_blank(lines: list[str]) -> int | None:
    """Blank lines before a question, but for one."""
    for at in range(len(lines) - 2):
        if lines[at] == "" and lines[at + 1] == "" and lines[at + 2].startswith("? "):
            return at
    return None
