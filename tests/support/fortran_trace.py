# SPDX-License-Identifier: Apache-2.0
"""Traces of small Fortran programs, and what must hold of each of them."""

from __future__ import annotations

from pathlib import Path

import decode


class Traced:
    """``traced(source, *flags)`` compiles a Fortran program, runs it traced in a directory of its
    own and decodes the trace.

    Its output and exit status are compared with those of a run without the library; both are kept
    in ``done``.
    """

    def __init__(self, fc, execute, preload_env, directory: Path):
        self.fc = fc
        self.execute = execute
        self.preload_env = preload_env
        self.directory = directory
        self.done = None
        self.steps = 0

    def __call__(self, source: str, *flags: str, level: str = "trace", input: str | None = None,
            **env: str) -> decode.Trace:
        program = self.fc(source, *flags)
        self.steps += 1
        runs = []
        for name, variables in (
            ("plain", env),
            ("traced", {**env, **self.preload_env(f"s{self.steps}", level=level,
                WEIR_BUDGET="64M")}),
        ):
            directory = self.directory / f"{name}{self.steps}"
            directory.mkdir(parents=True)
            runs.append(self.execute([program], env=variables, cwd=directory, input=input))
        plain, self.done = runs
        assert (self.done.returncode, self.done.stdout) == (plain.returncode,
            plain.stdout), self.done.stderr
        self.work = directory
        trace = decode.read_trace(variables["WEIR_TRACE_DIR"])
        check(trace)
        return trace


def check(trace: decode.Trace) -> None:
    """Nothing lost; what is NESTED lies within a statement; statements that are not nested do not
    overlap in a thread."""
    assert all(p.lost_events == 0 and p.failures == 0 for p in trace.processes.values())
    for thread in {(r.process, r.thread) for r in trace.records}:
        mine = [r for r in trace.records if (r.process, r.thread) == thread]
        outer = sorted((r.start, r.end) for r in mine if r.layer == "fortran" and not r.nested)
        assert all(a[1] <= b[0] for a, b in zip(outer, outer[1:]))
        for r in mine:
            if r.nested:
                assert any(start <= r.start and r.end <= end for start, end in outer), r
            if r.layer == "fortran":
                assert not r.below, "a statement is the program's own call"


def statements(trace: decode.Trace, file: str | None = None) -> list[tuple]:
    """(operation without fortran_, unit, payload, letters of flags) of each statement in order of
    their beginning."""
    letters = ((decode.ERROR, "E"), (decode.SHORT, "S"), (decode.NESTED, "N"))
    return [
        (r.op.removeprefix("fortran_"), r.offset, r.size,
            "".join(c for bit, c in letters if r.flags & bit))
        for r in trace.of(layer="fortran", file=file)
    ]
