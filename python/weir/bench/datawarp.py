# SPDX-License-Identifier: Apache-2.0
"""``weir bench datawarp``: the comparison of the WRF reference, 3 nodes of a burst buffer against 3
and 16 stripes of Lustre, for output and input; its job script with #DW lines, unmodified."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from weir._errors import UsageError
from weir.bench._process import RunFailed, numbers, run
from weir.bench._programs import Mpi, choose_mpi, clean_environment, weir_command
from weir.bench._scratch import scratch
from weir.bench.datawarp_place import BURST_NODES, OSTS, Rates, Servers, open_servers

SMALL_FILES, SMALL_BYTES = 200, 2048
FRAME_MB = 6500  # of both domains, and somewhat more


@dataclass(frozen=True)
class Options:
    """scale: of the reference's two domains; ranks: those that write, a multiple of 3."""

    scale: float = 0.01
    ranks: int = 18
    frames: int = 2
    ost_mb: float = 20
    burst_mb: float = 60
    mpi: str | None = None
    directory: str | None = None
    timeout_s: float = 600


def check(options: Options) -> Options:
    """Raises UsageError for what cannot be run."""
    if options.ranks < BURST_NODES or options.ranks % BURST_NODES:
        raise UsageError(f"--ranks {options.ranks}: expected a multiple of {BURST_NODES}, as many "
                         f"ranks for each private directory")
    if not 0 < options.scale <= 1 or not 1 <= options.frames <= 16:
        raise UsageError("--scale: expected a number above 0, at most 1; --frames: 1 to 16")
    if options.ost_mb <= 0 or options.burst_mb <= 0:
        raise UsageError("--ost-mb and --burst-mb: expected MB/s above 0")
    return options


@dataclass(frozen=True)
class Step:
    """seconds: what the program waits for; moved: bytes read and written at each server."""

    seconds: float
    bytes: float = 0.0
    moved: dict[str, tuple[int, int]] = field(default_factory=dict)
    requests: int = 0


@dataclass(frozen=True)
class Row:
    """steps: output, stage_out, stage_in, input, as far as there are such."""

    name: str
    title: str
    steps: dict[str, Step] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Way:
    name: str
    title: str
    stripes: int = 0
    access: str = ""


WAYS = (
    Way("lustre-3", "Lustre, 3 stripes", stripes=3),
    Way("lustre-16", "Lustre, 16 stripes", stripes=OSTS),
    Way("striped", "DataWarp, 3 nodes, striped", access="striped"),
    Way("private", "DataWarp, 3 nodes, private", access="private"),
)
_JOB = """#!/bin/sh
#DW jobdw type=scratch access_mode={access} capacity={capacity}MB
#DW stage_in type=directory source={source} destination=$DW_JOB_{upper}/input
#DW stage_out type=directory source=$DW_JOB_{upper}/output destination={target}
set -e
date +begin=%s.%N
mkdir "$DW_JOB_{upper}/output"
{commands}
date +end=%s.%N
"""


class Bench:
    """All ways on one set of servers. Methods raise RunFailed."""

    def __init__(self, options: Options, build: Path, note: Callable[[str], None]):
        self.options, self.note = options, note
        program = build / "bench" / "wrf" / "{mpi}" / "wrf-read"
        self.mpi: Mpi = choose_mpi(options.mpi, program)
        self.programs = Path(str(program).format(mpi=self.mpi.name)).parent
        self.environment = {**clean_environment(), **self.mpi.environment}

    def rows(self) -> Iterator[Row]:
        rates = Rates(self.options.ost_mb, self.options.burst_mb)
        with scratch(self.options.directory) as place, open_servers(place, rates) as servers:
            job = _Jobs(self, servers, place)
            for way in WAYS:
                self.note(way.title)
                try:
                    yield Row(way.name, way.title, job.lustre(way) if way.stripes
                        else job.datawarp(way))
                except RunFailed as error:
                    yield Row(way.name, way.title, error=str(error))
            self.note("node B")
            try:
                yield Row("node-b", "read on another node", job.node_b())
            except RunFailed as error:
                yield Row("node-b", "read on another node", error=str(error))


class _Jobs:
    def __init__(self, bench: Bench, servers: Servers, place: Path):
        self.bench, self.servers, self.place = bench, servers, place
        self.options = bench.options

    def model(self, program: str, directory: str, ranks: int, scale: float) -> list[str]:
        """writes (wrf-plain) or reads (wrf-read) the frames."""
        return self.bench.mpi.command(ranks, self.bench.programs / program, ["bare=1",
            f"scale={scale}", f"steps={self.options.frames}", "every=1", f"directory={directory}"])

    def rules(self, name: str, *rules: str) -> Path:
        path = self.place / f"{name}.toml"
        path.write_text("\n".join(rules))
        return path

    def lustre_rule(self, stripes: int = OSTS) -> str:
        return (f'[[rule]]\npath = "{self.servers.names}/*"\n'
                f'stack = "{self.servers.striped("ost", stripes)}"\n')

    def burst_rule(self) -> str:
        return (f'[[rule]]\npath = "{self.servers.burst(0)}/names/*"\n'
                f'stack = "{self.servers.striped("burst", BURST_NODES)}"\n')

    def run(self, command: Sequence[str], rules: Path | None) -> str:
        line = list(command)
        if rules is not None:
            line = weir_command("run", "--rules", rules, "--", *line)
        return run(line, self.bench.environment, self.place, self.options.timeout_s)

    def counted(self, work: Callable[[], tuple[float, float]]) -> Step:
        self.servers.reset()
        seconds, size = work()
        return Step(seconds, size, self.servers.moved(), self.servers.requests())

    def lustre(self, way: Way) -> dict[str, Step]:
        """Written and read in its place."""
        directory = self.servers.names / way.name
        directory.mkdir()
        rules = self.rules(way.name, self.lustre_rule(way.stripes))

        def runs(program: str) -> Callable[[], tuple[float, float]]:
            return lambda: seconds_of(self.run(self.model(program, str(directory),
                self.options.ranks, self.options.scale), rules))

        return {"output": self.counted(runs("wrf-plain")), "input": self.counted(runs("wrf-read"))}

    def datawarp(self, way: Way) -> dict[str, Step]:
        """A job that writes, and one that reads what it has written."""
        parts = BURST_NODES if way.access == "private" else 1
        empty = self.servers.names / "empty"
        empty.mkdir(exist_ok=True)
        steps: dict[str, Step] = {}
        for step, program, place in (("output", "wrf-plain", "output"),
                ("input", "wrf-read", "input")):
            self.servers.reset()
            with ThreadPoolExecutor(parts) as pool:
                found = list(pool.map(lambda part: self.job(way, part, parts, program, place,
                    empty if step == "output" else None), range(parts)))
            moved, requests = self.servers.moved(), self.servers.requests()
            staged = "stage_out" if step == "output" else "stage_in"
            seconds = max(one[0] for one in found)
            size = sum(one[1] for one in found)
            beside = max(one[2 if step == "input" else 3] for one in found)
            steps[step] = Step(seconds, size, moved, requests)
            steps[staged] = Step(beside, size)
        return steps

    def job(self, way: Way, part: int, parts: int, program: str, place: str,
            empty: Path | None) -> tuple[float, float, float, float]:
        """Seconds of the program, its bytes, seconds before and behind the script."""
        staged = self.servers.names / f"{way.name}.{part}"
        unused = self.servers.names / f"{way.name}.{part}.unused"
        variable = f"$DW_JOB_{way.access.upper()}"
        command = " ".join(self.model(program, f'"{variable}/{place}"', self.options.ranks // parts,
            self.options.scale / parts))
        script = self.place / f"{way.name}.{part}.{place}.sh"
        capacity = 1 + int(FRAME_MB * self.options.scale * self.options.frames / parts)
        script.write_text(_JOB.format(access=way.access, upper=way.access.upper(), commands=command,
            source=empty or staged, target=staged if empty else unused, capacity=capacity))
        tier = self.servers.burst(part) / "names"
        tier.mkdir(exist_ok=True)
        rules = [self.lustre_rule(), *([self.burst_rule()] if way.access == "striped" else [])]
        begin = time.time()
        text = self.run(weir_command("stage", "script", "--tier", tier, script),
            self.rules(f"{way.name}.{part}", *rules))
        end = time.time()
        times = dict(line.split("=") for line in text.splitlines()
            if line.startswith(("begin=", "end=")))
        seconds, size = seconds_of(text)
        return seconds, size, float(times["begin"]) - begin, end - float(times["end"])

    def node_b(self) -> dict[str, Step]:
        """A striped file and a container, written by node A, read by node B."""
        directory = self.servers.burst(0) / "names" / "shared"
        small = self.servers.burst(1) / "small"
        for made in (directory, small):
            made.mkdir(parents=True)
        rules = self.rules("node-b", '[[rule]]\nname = "part.*"\nstack = "pack:name=parts.zip"\n',
            self.burst_rule())
        source = self.place / "source"
        source.write_bytes(b"".join(number.to_bytes(4, "big") * (SMALL_BYTES // 4)
            for number in range(SMALL_FILES)))
        self.run(self.model("wrf-plain", str(directory), self.options.ranks, self.options.scale),
            rules)
        self.run(["split", "-a", "4", "-d", "-b", str(SMALL_BYTES), str(source),
            str(small / "part.")], rules)
        if sorted(path.name for path in small.iterdir()) != ["parts.zip"]:
            raise RunFailed(f"{small}: the small files of node A are not in one container")
        on_b = self.servers.on_node_b
        striped = self.counted(lambda: seconds_of(self.run(on_b(self.model("wrf-read",
            str(directory), self.options.ranks, self.options.scale)), rules)))
        packed = self.counted(lambda: (self._compare(on_b, small, source, rules), 0.0))
        shutil.rmtree(directory)
        return {"striped": striped, "container": packed}

    def _compare(self, on_b: Callable[[Sequence[str]], list[str]], small: Path, source: Path,
            rules: Path) -> float:
        begin = time.monotonic()
        self.run(on_b(["sh", "-c", 'cat "$0"/part.* | cmp - "$1"', str(small), str(source)]), rules)
        return time.monotonic() - begin


def seconds_of(text: str) -> tuple[float, float]:
    """Of the program's frames, and their bytes."""
    found = numbers(text, "wrf")
    return found["total_s"], found["bytes"]
