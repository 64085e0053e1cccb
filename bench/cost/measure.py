# SPDX-License-Identifier: Apache-2.0
"""Runs loops under tools, interleaved, and takes differences."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .tools import BARE, Tool
from .trace_facts import TraceFacts, read_facts


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    program: Path
    count: int
    op: str  # the operation its calls are
    besides: int  # calls of that operation that the program makes outside the loop
    records_per_call: int


# name: title, program, calls of a full run, operation, calls of it outside the loop, records of a
# call
LOOPS = {
    "fread": ("fread 1 byte", "loops", 4_000_000, "fread", 0, 1),
    "fwrite": ("fwrite 8 bytes", "loops", 4_000_000, "fwrite", 0, 1),
    "read": ("read 1 byte", "loops", 1_000_000, "read", 0, 1),
    "pwrite": ("pwrite 4 KiB", "loops", 500_000, "pwrite", 256, 1),
    "open": ("open + close", "loops", 100_000, "open", 1, 2),
    "write": ("Fortran WRITE of one real", "statements", 1_000_000, "fortran_write", 1, 1),
}
# Calls of MPI by one rank: instructions alone are counted, as MPI's start takes longer than any
# loop.
MPI_LOOPS = {
    "barrier": "MPI_Barrier", "allreduce": "MPI_Allreduce", "exchange": "MPI_Irecv, Isend, Waitall",
    "write_at": "MPI_File_write_at of 8 bytes and its pwrite",
}  # fmt: skip
MPI = "mpi"  # all of them, for --only
QUICK_SHARE = 0.02


def mpi_cases(programs: Path, only: str | None) -> list[Case]:
    """Each call with each MPI that its program was built for."""
    if only and MPI not in only.split(","):
        return []
    return [
        Case(name, f"{title} of one rank, {program.name.removeprefix('mpi-')}", program, 0, "", 0,
            1)
        for program in sorted(programs.glob("mpi-*"))
        for name, title in MPI_LOOPS.items()
    ]


def cases(programs: Path, quick: bool, only: str | None) -> list[Case]:
    names = [name for name in only.split(",") if name != MPI] if only else list(LOOPS)
    found = []
    for name in names:
        if name not in LOOPS:
            return []
        title, program, count, *rest = LOOPS[name]
        if (programs / program).exists():
            found.append(Case(name, title, programs / program,
                int(count * (QUICK_SHARE if quick else 1)), *rest))
    return found


@dataclass(frozen=True)
class Run:
    """One program under one tool. Nanoseconds; `tree_cpu` is of the program and all that the tool
    started for it."""

    wall: int
    cpu: int
    tree_wall: int
    tree_cpu: int
    facts: TraceFacts | None
    written: int


class Bench:
    """Directories for the time of a bench: for data, and for what tools write on disk and in
    memory."""

    def __init__(self, directory: Path, quick: bool):
        directory.mkdir(parents=True, exist_ok=True)
        self.quick = quick
        self.disk = Path(tempfile.mkdtemp(dir=directory))
        shm = Path("/dev/shm")
        self.memory = Path(tempfile.mkdtemp(dir=shm, prefix="weir-bench-")) if os.access(shm,
            os.W_OK) else None
        self.data = (self.memory or self.disk) / "data"
        self.data.mkdir()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for directory in (self.disk, self.memory):
            if directory is not None:
                shutil.rmtree(directory, ignore_errors=True)

    def room_of(self, tool: Tool) -> Path:
        """An empty directory for what the tool writes."""
        room = (self.memory if tool.in_memory and self.memory else self.disk) / "out"
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir()
        return room

    def execute(self, tool: Tool, command: Sequence[str], room: Path,
            output: int | None = None) -> tuple[int, int]:
        """Wall and CPU nanoseconds of the whole tree of processes, as the kernel accounts them when
        it has ended."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")
            and k != "LD_PRELOAD"}
        line = [*tool.prefix(room), *command]
        program = shutil.which(line[0]) or line[0]
        actions = [(os.POSIX_SPAWN_DUP2, output, 1)] if output is not None else []
        start = time.perf_counter_ns()
        pid = os.posix_spawn(program, line, {**environment, **tool.environment(room)},
            file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter_ns() - start
        if status != 0:
            raise RuntimeError(
                f"{' '.join(map(str, line))} under {tool.name} ended with "
                f"{os.waitstatus_to_exitcode(status)}")
        return wall, int((usage.ru_utime + usage.ru_stime) * 1e9)

    def loop(self, tool: Tool, program: Path, name: str, count: int) -> Run:
        room = self.room_of(tool)
        with tempfile.TemporaryFile() as output:
            tree_wall, tree_cpu = self.execute(tool,
                [str(program), name, str(count), str(self.data)], room, output.fileno())
            output.seek(0)
            wall, cpu = (int(word) for word in output.read().split()[-2:])
        traces = list(room.glob("*.weir")) if tool.is_weir else []
        facts = read_facts(traces[0]) if traces else None
        written = sum(p.stat().st_size for p in room.rglob("*") if p.is_file())
        return Run(wall, cpu, tree_wall, tree_cpu, facts, written)

    def run(self, cases: Sequence[Case], tools: Sequence[Tool], repeat: int) -> dict:
        floors: list[float] = []
        runs: dict[tuple[str, str], list[tuple[Case, int, Run, Run]]] = {}
        starts: dict[str, list[tuple[int, int]]] = {}
        loops = cases[0].program.parent / "loops"
        for repetition in range(repeat):
            floors.append(self.floor(loops))
            for case in cases:
                bare = self.loop(tools[0], case.program, case.name, case.count)
                for tool in tools[1:]:
                    if tool.share < 1 and repetition >= 3:
                        continue
                    count = max(1000, int(case.count * tool.share))
                    run = self.loop(tool, case.program, case.name, count)
                    runs.setdefault((case.name, tool.name), []).append((case, count, bare, run))
            self.start_and_finish(loops, tools, starts, 3 if self.quick else 10)
            print(f"\rrepetition {repetition + 1} of {repeat}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        floor = statistics.median(floors)
        return {
            "repeat": repeat,
            "floor_ns": spread(floors),
            "calls": [self.row(tools, name, rows, floor) for (_, name), rows in runs.items()],
            "processes": [process_row(name, rows, starts[BARE]) for name, rows in starts.items()
                if name != BARE],
        }

    def floor(self, loops: Path) -> float:
        count = 200_000 if self.quick else 10_000_000
        bare = Tool(BARE)
        return (self.loop(bare, loops, "floor", count).cpu - self.loop(bare, loops, "empty",
            count).cpu) / count

    def start_and_finish(self, program: Path, tools: Sequence[Tool], into: dict,
            times: int) -> None:
        """A program that does nothing; the first row of weir's makes the trace file, the second
        finds it made."""
        for _ in range(times):
            for tool in tools:
                room = self.room_of(tool)
                into.setdefault(tool.name, []).append(self.execute(tool, [str(program)], room))
                if tool.is_weir and not tool.in_memory:
                    into.setdefault(f"{tool.name}, second process",
                        []).append(self.execute(tool, [str(program)], room))

    def row(self, tools: Sequence[Tool], name: str, rows: list, floor: float) -> dict:
        tool = next(t for t in tools if t.name == name)
        case = rows[0][0]
        added, tree, outside = [], [], []
        for _, count, bare, run in rows:
            tree.append(run.tree_cpu / count - bare.tree_cpu / case.count)
            added.append(tree[-1] if tool.beside else run.cpu / count - bare.cpu / case.count)
            outside.append((run.tree_cpu - run.cpu - (bare.tree_cpu - bare.cpu)) / 1e6)
        _, count, bare, last = rows[-1]
        row = {
            "loop": case.name,
            "title": case.title,
            "tool": name,
            "calls": count,
            "bare_ns": spread([b.cpu / case.count for _, _, b, _ in rows]),
            "added_ns": spread(added),
            "tree_added_ns": spread(tree),
            "floors": statistics.median(added) / case.records_per_call / floor,
            "outside_added_ms": None if tool.beside or tool.share < 1 else spread(outside),
            "written_bytes": last.written,
        }
        if last.facts is not None:
            row |= weir_figures(case, count, last.facts, tool.fields["level"])
        return row


def weir_figures(case: Case, count: int, facts: TraceFacts, level: str) -> dict:
    """`unseen`: calls made less calls in the trace. Bytes for an event: of the file, and of chunks
    as far as they are filled."""
    lost = facts.lost_events + (sum(facts.counted.values()) if level == "trace" else 0)
    unseen = count + case.besides - facts.calls(case.op)
    figures = {"events": facts.events, "unseen": unseen, "lost_events": lost,
        "failures": facts.failures}
    if level == "trace":
        figures["bytes_per_event"] = facts.file_bytes / facts.events
        figures["filled_bytes_per_event"] = facts.event_bytes / facts.events
    return figures


def process_row(name: str, rows: list[tuple[int, int]], bare: list[tuple[int, int]]) -> dict:
    """Milliseconds added to a process that does nothing. Medians of each side: runs this short have
    no pairs."""

    def middle(pairs: list[tuple[int, int]], which: int) -> float:
        return statistics.median(pair[which] for pair in pairs) / 1e6

    return {
        "tool": name,
        "runs": len(rows),
        "added_wall_ms": middle(rows, 0) - middle(bare, 0),
        "added_cpu_ms": middle(rows, 1) - middle(bare, 1),
    }


def spread(values: Sequence[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


