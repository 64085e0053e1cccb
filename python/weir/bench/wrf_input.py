# SPDX-License-Identifier: Apache-2.0
"""What ``weir bench wrf`` measures beside output: input that one process wrote before, and restarts
that the ranks write and read themselves, in each mode of the library and by plain calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weir.bench._process import RunFailed
from weir.bench._statistics import Spread
from weir.bench.wrf import BY_NAME, WAYS, Laboratory, Run, Way, servers_of, spreads
from weir.report.frame.table import Table

MODES = tuple(way for way in WAYS if way.mode)
PLAIN = Way("plain", "plain pwrite and pread", "plain")
_READ = Way("read", "", "read")
_FRAME = {"steps": 1, "every": 1, "bare": 1}


@dataclass(frozen=True)
class InputRow:
    """Medians and ranges of seconds; compared: values that were read, equal to those written."""

    way: Way
    ranks: int
    servers: int
    figures: dict[str, Spread] = field(default_factory=dict)
    compared: int = 0
    error: str = ""


class Input:
    def __init__(self, lab: Laboratory, ranks: int, servers: int):
        self.lab, self.ranks, self.servers = lab, ranks, servers

    def rows(self) -> list[InputRow]:
        """All modes, interleaved."""
        ways = [way for way in MODES if way.name in self.lab.options.only]
        ways += [PLAIN] if "plain" in self.lab.options.only else []
        runs: dict[str, list[Run]] = {way.name: [] for way in ways}
        failures = {way.name: why for way in ways if (why := self.lab.absent(way))}
        for repetition in range(self.lab.options.repeat):
            for way in ways:
                if way.name in failures:
                    continue
                self.lab.note(f"input: {way.title}, {repetition + 1} of {self.lab.options.repeat}")
                try:
                    runs[way.name].append(self._once(way, repetition == 0))
                except RunFailed as error:
                    failures[way.name] = str(error)
        return [self._row(way, runs[way.name], failures.get(way.name, "")) for way in ways]

    def _row(self, way: Way, runs: Sequence[Run], error: str) -> InputRow:
        servers = servers_of(way, self.servers)
        if error or not runs:
            return InputRow(way, self.ranks, servers, error=error)
        # The first repetition compares the values as well, and is not timed where there are more.
        found = spreads(runs[1:] or runs)
        return InputRow(way, self.ranks, servers, found, round(runs[0]["compared"]))

    def _once(self, way: Way, compares: bool) -> Run:
        servers = servers_of(way, self.servers)
        with self.lab.fresh() as directory:
            written = self.lab.call(way, self.ranks, servers, directory, **_FRAME)
            restart = self._read(way, servers, directory, compares)
        read = restart
        if way.mode:
            with self.lab.fresh() as directory:
                self.lab.call(BY_NAME["serial"], 1, 0, directory, **_FRAME)
                read = self._read(way, servers, directory, compares)
        return {
            "bytes": written["bytes"], "input_s": read["effective_s"],
            "restart_visible_s": written["effective_s"], "restart_written_s": written["total_s"],
            "restart_read_s": restart["effective_s"],
            "input_mb_s": read["bytes"] / max(read["effective_s"], 1e-9) / 1e6,
            "compared": (written["bytes"] / 4 * (2 if way.mode else 0)) if compares else 0,
        }  # fmt: skip

    def _read(self, way: Way, servers: int, directory: Path, compares: bool) -> Run:
        """By the ranks of a model that starts; a wrong value ends the program."""
        return self.lab.call(way if way.mode else _READ, self.ranks, servers, directory, **_FRAME,
            check=1 if compares else 2)


def table(rows: Sequence[InputRow]) -> Table:
    cells = tuple((
        row.way.title,
        f"{row.ranks}+{row.servers}" if row.servers else str(row.ranks),
        *(f"{row.figures[key].median:.3f}" for key in ("input_s", "restart_visible_s",
            "restart_written_s", "restart_read_s")),
        f"{row.figures['input_mb_s'].median:,.0f}",
        f"{row.compared:,}" if row.compared else "",
    ) for row in rows if not row.error)
    return Table("Input and restarts, one frame", ("<mode", "ranks", "input s", "visible s",
        "written s", "read s", "input MB/s", "values compared"), cells,
        groups=(("", 3), ("restart", 3), ("", 2)),
        remarks=tuple(f"{row.way.title}: {row.error}" for row in rows if row.error))


def as_data(rows: Sequence[InputRow]) -> list[dict[str, Any]]:
    return [{"name": row.way.name, "title": row.way.title, "ranks": row.ranks,
        "servers": row.servers, "error": row.error or None, "values_compared": row.compared,
        **{key: asdict(spread) for key, spread in row.figures.items()}} for row in rows]
