# SPDX-License-Identifier: Apache-2.0
"""The goals of the output library, each with the runs that it needs beside the table of writers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir._errors import Error
from weir.bench._process import RunFailed, run
from weir.bench._statistics import Spread
from weir.bench.wrf import BY_NAME, Bench, Row, Run, Way, cores, rated, spreads

MB = 1e6
POINTS = (1_000_000, 10_000_000)
PLAN_RANKS = 64


@dataclass(frozen=True)
class Goal:
    """`least`: the figure must not be below `limit`, otherwise not above. `value` None: not
    measured, `why` says why."""

    what: str
    unit: str
    limit: float
    least: bool
    value: float | None = None
    why: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.least else self.value <= self.limit


def of(what: str, unit: str, limit: float, least: bool, value: float | None, why: str = "") -> Goal:
    return Goal(what, unit, limit, least, value, why
        or ("" if value is not None else "a row is missing"))


class Goals:
    """Measures all of them. A goal whose runs fail says so; the others go on."""

    def __init__(self, bench: Bench, rows: Sequence[Row]):
        self.bench, self.lab, self.options = bench, bench.lab, bench.options
        self.rows = {row.way.name: row for row in rows}
        self.alone = max(1, cores() - 1)  # ranks that have a core each beside a server's

    def all(self) -> list[Goal]:
        groups: list[tuple[str, Callable[[], list[Goal]]]] = [
            ("put", self.put),
            ("overlap", self.overlap),
            ("one server", self.rates),
            ("disk", self.disk),
            ("memory", self.memory),
            ("plan", self.plan),
            ("messages", self.messages),
        ]
        found: list[Goal] = []
        for name, measure in groups:
            self.lab.note(f"goals: {name}")
            try:
                found += measure()
            except (Error, OSError, subprocess.SubprocessError) as error:
                found.append(Goal(name, "", 0, True, None, str(error)))
        return found

    def repeated(self, once: Callable[[], Run]) -> dict[str, Spread]:
        return spreads([once() for _ in range(self.options.repeat)])

    def _servers(self, ranks: int, servers: int = 1, **more: object) -> Run:
        with self.lab.fresh() as directory:
            return self.lab.call(BY_NAME["servers"], ranks, servers, directory, **more)

    def put(self) -> list[Goal]:
        """With a sleeping model and a core for each rank: what is timed is the copy."""
        steps = {"steps": self.options.steps, "every": self.options.every,
            "sleep_us": round(1e6 * self.options.interval_s / self.options.every)}
        copied = self.repeated(lambda: per_copy(self._servers(self.alone, **steps)))
        lent = self.repeated(lambda: self._servers(self.alone, lend=1, **steps))
        return [
            of("put / one warm memcpy of the data", "x", 1.15, False, copied["ratio"].median),
            of("put of a zero-copy buffer, a field", "us", 20, False, lent["put_us"].median),
        ]

    def overlap(self) -> list[Goal]:
        """Processor seconds of the computing itself: others on the machine do not count, memory and
        caches shared with a server do."""
        passes = round(self.bench.passes_per_s() * self.options.interval_s / self.options.every)
        steps = {"steps": self.options.steps, "every": self.options.every, "spin": max(1, passes)}
        without, beside = [], []
        for _ in range(self.options.repeat):
            without.append(self.lab.call(Way("none", "", "none"), self.alone,
                **steps)["compute_cpu_s"])
            beside.append(self._servers(self.alone, **steps)["compute_cpu_s"])
        # Differences of a per cent are judged by the quickest run of each side: others on the
        # machine only ever add to one.
        return [of("computing slower while servers write, quickest runs", "%", 1, False,
            100 * (min(beside) / min(without) - 1))]

    def rates(self) -> list[Goal]:
        """Back to back, from the table; servers by core."""
        rate = {name: row.rate() for name, row in self.rows.items()}
        servers = rate.get("servers")
        per_server = servers / self.options.servers if servers else None
        return [
            of("a server / ADIOS2 BP4", "x", 1.5, True, quotient(per_server, rate.get("adios2"))),
            of("a server / PnetCDF", "x", 2, True, quotient(per_server, rate.get("pnetcdf"))),
            of("a server, tmpfs", "MB/s", 1900, True, per_server),
            # 1.9 GB/s was set where pwrite does 2.9: the same on any machine.
            of("a server, tmpfs / plain pwrite by as many", "x", 0.65, True,
                quotient(servers, rate.get("plain"))),
            of("collective / PnetCDF", "x", 2, True,
                quotient(rate.get("collective"), rate.get("pnetcdf"))),
        ]

    def disk(self) -> list[Goal]:
        """Each frame on the disk before the next, beside a plain program that does no more; and the
        last frame of a run that computes long enough for those before it to be written, beside a
        frame of as many plain ones: one alone would find the pages that have just been freed, where
        the others have theirs from the host."""
        frames = 3
        quick: list[float] = []
        drain: list[float] = []
        for _ in range(self.options.repeat):
            plain = rated(self._on_disk(BY_NAME["plain"], self.options.servers,
                self.options.frames))
            weir = rated(self._on_disk(BY_NAME["servers"], self.options.ranks, self.options.frames))
            few = rated(self._on_disk(BY_NAME["plain"], self.options.servers, frames))
            last = self._on_disk(BY_NAME["servers"], self.options.ranks, frames,
                sleep_us=round(10e6 * few["total_s"] / frames))
            quick.append(weir["mb_s"] / plain["mb_s"])
            drain.append(last["bytes"] / frames / last["final_s"] / MB / few["mb_s"])
        return [
            of("on disk with fsync / plain pwrite and fsync", "x", 0.9, True,
                Spread.of(quick).median),
            of("final drain, on disk with fsync / plain", "x", 0.9, True, Spread.of(drain).median),
        ]

    def _on_disk(self, way: Way, ranks: int, frames: int, **more: object) -> Run:
        with self.lab.fresh("files", self.lab.disk) as directory:
            os.sync()  # else the disk is busy with removing what the run before has written
            return self.lab.call(way, ranks, self.options.servers if way.mode else 0, directory,
                sync=True, steps=frames, bare=1, **more)

    def memory(self) -> list[Goal]:
        """A frame three times as large as the table's as well."""
        large = self._servers(self.options.ranks, self.options.servers,
            scale=3 * self.options.scale, steps=2, bare=1)
        seen = [large["server_bytes"]]
        for name in ("servers", "servers+parallel"):
            if name in self.rows and self.rows[name].model:
                seen += [runs["server_bytes"].high
                    for runs in (self.rows[name].model, self.rows[name].burst)]
        frame = large["bytes"] / large["frames"] / MB
        return [of(f"memory of a server, frames of up to {frame:,.0f} MB", "MB",
            (48 << 20) / MB + (256 << 20) / MB, False, max(seen) / MB)]

    def plan(self) -> list[Goal]:
        """What a job waits for: one rank's share of the ranks' work, and an owner that learns
        everybody's part."""
        program = self.lab.build / "native" / "output" / "weir-plan-time"
        if not program.exists():
            return [of("plan", "s", 1, False, None, f"{program.name} is not built")]

        def once() -> Run:
            texts = {n: run([str(program), str(n), str(PLAN_RANKS)], self.lab.environment,
                self.lab.place, self.options.timeout_s) for n in POINTS}
            return {f"{kind} {n}": seconds for n, text in texts.items()
                for kind, seconds in plan_seconds(text, PLAN_RANKS).items()}

        found = self.repeated(once)
        small, large = (found[f"scattered {points}"].median for points in POINTS)
        label = f"plan of 10^7 points x {PLAN_RANKS} ranks"
        return [
            of(f"{label}, blocks", "s", 1, False, found[f"block {POINTS[1]}"].median),
            of(f"{label}, scattered", "s", 1, False, large),
            of("plan of 10^7 / of 10^6 points, scattered", "x", 12.5, False, large / small),
        ]

    def messages(self) -> list[Goal]:
        """Counted by a simulation that is one of the native tests: it passes or it does not."""
        what, limit = "messages of a frame, 10,000 ranks and 64 ranks, of at most", 10_126
        program = self.lab.build / "native" / "output" / "output_engine_server_test"
        if not program.exists():
            return [of(what, "", limit, False, None, f"{program.name} is not built")]
        text = run([str(program), "--gtest_filter=*messages_for_their_sum*"], self.lab.environment,
            self.lab.place, self.options.timeout_s)
        if "[  PASSED  ] 1 test" not in text:
            raise RunFailed(f"{program.name} has no such test")
        return [of(what, "", limit, False, limit)]


def criteria(rows: Sequence[Row]) -> list[Goal]:
    """Those of the reference for servers, on each number of ranks: the write time of a frame that
    the model sees, the share of output in the run, and the run beside that of the serial writer.
    They depend on how long the model computes between two frames."""
    found = []
    for ranks in sorted({row.ranks for row in rows if row.way.mode}):
        medians = {row.way.name: {key: spread.median for key, spread in row.model.items()}
            for row in rows if row.ranks == ranks and row.model}
        serial = medians.get("serial", {}).get("total_s")
        for name in ("servers", "servers+parallel"):
            one = medians.get(name, {})
            begin = f"{ranks} rank{'s' if ranks > 1 else ''}, {BY_NAME[name].title}"
            found += [
                of(f"{begin}: a frame, seen by the model", "s", 1, False,
                    quotient(one.get("effective_s"), one.get("frames"))),
                of(f"{begin}: share of output", "%", 3, False, one.get("percent")),
                of(f"{begin} / weir serial: whole run", "x", 0.5, False,
                    quotient(one.get("total_s"), serial)),
            ]
    return [goal for goal in found if goal.value is not None]


def plan_seconds(text: str, ranks: int) -> dict[str, float]:
    """By kind of decomposition, from the lines of weir-plan-time: processor seconds of all ranks
    together, and of the owner."""
    lines = re.findall(r"^(\w+) .*ranks ([\d.]+) s, owner ([\d.]+) s", text, re.M)
    if not lines:
        raise RunFailed("weir-plan-time printed no figures")
    return {kind: float(of_all) / ranks + float(owner) for kind, of_all, owner in lines}


def per_copy(result: Run) -> Run:
    """A put's time beside that of one memcpy of the same data."""
    return {**result, "ratio": result["put_s"] / result["copy_s"]}


def quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
