# SPDX-License-Identifier: Apache-2.0
"""The tables of ``weir bench scales``, its curves, goals, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from weir.bench import scales_goals
from weir.bench._journal import TimeOver
from weir.bench.nersc_tables import machine
from weir.bench.scales import PUBLISHED, Bench, Options, Peer, Row
from weir.bench.scales_beside import NodeRow, Profile, Windows, on_nodes, tracing
from weir.bench.scales_beside import profile as profile_run
from weir.bench.scales_beside import windows as window_runs
from weir.bench.scales_goals import RowGoal
from weir.report.frame.figures import percent
from weir.report.frame.table import Table, text_lines
from weir.report.render import screen_width
from weir.scaling.compute import RunTimes, Scaling, scaling


MOST_NAMED = 6  # rows in a remark


@dataclass
class Found:
    """All that was measured. tracing: by pair of runs, the share that it added; left: why there is
    no more."""

    rows: list[Row] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    windows: list[Windows] = field(default_factory=list)
    nodes: list[NodeRow] = field(default_factory=list)
    tracing: list[float] = field(default_factory=list)
    left: str = ""

    def is_short(self) -> bool:
        """Something that is installed did not run."""
        return bool(self.left) or any(one.error and not one.error.startswith("left out")
            for one in [*self.rows, *self.nodes])


# Of the time that --minutes gives: rates of all places, then the rest.
RATES_PART = 0.7


def measure(bench: Bench, rates_only: bool) -> Found:
    """Rates in each place; then, in the first one, a profile of each method on 4 PEs and on most,
    as the reference has them, windows and nodes; before them the cost of tracing."""
    found = Found()
    rates_part = 1.0 if rates_only else RATES_PART
    for number, (place, directory) in enumerate(bench.places(), 1):
        bench.journal.until(rates_part * number / len(bench.options.places))
        bench.choose_steps(directory)
        found.rows += bench.rows(place, directory)
        found.peers += bench.peers(place, directory)
    if rates_only:
        return found
    bench.journal.until(1)
    with closing(bench.places()) as places:
        _, directory = next(places)
        try:
            _measure_beside(bench, directory, found)
        except TimeOver as error:
            found.left = f"{', '.join(_not_reached(bench, found))}: {error}"
    return found


def _profiled(bench: Bench) -> list[tuple[Method, int]]:
    return [(method, pes) for method, pes in bench.chosen()
        if method.is_single or pes in (4, max(bench.options.pes))]


def _measure_beside(bench: Bench, directory: Path, found: Found) -> None:
    found.tracing += tracing(bench, directory, max(3, bench.options.repeat))
    for method, pes in _profiled(bench):
        found.profiles.append(profile_run(bench, method, pes, directory))
    found.windows += window_runs(bench, directory)
    found.nodes += on_nodes(bench, directory, 4, (2, 4))


def _not_reached(bench: Bench, found: Found) -> Iterator[str]:
    """What of `_measure_beside` the time did not allow."""
    if not found.tracing:
        yield "cost of tracing"
    profiles, asked = len(found.profiles), len(_profiled(bench))
    if profiles < asked:
        yield f"{asked - profiles} of {asked} profiles"
    if not found.windows:
        yield "windows"
    if not found.nodes:
        yield "nodes"


def header(options: Options, mpi: str, steps: int, found: Found) -> str:
    volume = next((row.encoding["bytes"].median for row in found.rows if row.encoding), 0)
    return (f"{options.variables} variables of unequal size on {2 * options.nlat} x {options.nlat} "
            f"points in {options.files} files, {steps} steps, {volume / 1e6:,.0f} MB of GRIB, "
            f"encoded by {options.encoder}; {mpi}; "
            f"{_repetitions(found.rows)}; published: 1 node of IBM, GPFS, 47 GB")


def about(options: Options, mpi: str, steps: int, found: Found) -> str:
    """Which runs a page shows, and where they were made."""
    on = machine()
    return (f"{header(options, mpi, steps, found)}. {on['cores']} cores, {on['system']} "
            f"{on['release']}, {date.today():%Y-%m-%d}.")


def _repetitions(rows: Sequence[Row]) -> str:
    """How many there are: what is left out, or not reached, has fewer."""
    counts = [len(row.writing["mb_s"].values) for row in rows if row.writing]
    if not counts:
        return "no runs"
    low, high = min(counts), max(counts)
    if high == 1:
        return "one run of each row"
    return f"medians of {low} to {high} runs" if low < high else f"medians of {high} runs"


def text(options: Options, mpi: str, steps: int, found: Found) -> str:
    """All that is printed."""
    texts = ("\n".join(text_lines(table, screen_width(), is_split=False))
        for table in tables(found))
    return "\n\n".join([header(options, mpi, steps, found), *texts, *ending(found)])


def ending(found: Found) -> list[str]:
    """What was not reached, and why the exit status is 1."""
    missed = sum(goal.met is False for goal in goals(found))
    short = "some runs are missing (the lines below each table name them)"
    why = [short] if found.is_short() else []
    if missed:
        why.append(f"{missed} rows missed a goal")
    return [*([found.left] if found.left else []),
        *([f"exit status 1: {' and '.join(why)}"] if why else [])]


def tables(found: Found) -> Iterator[Table]:
    for place in dict.fromkeys(row.place for row in found.rows):
        yield rates([row for row in found.rows if row.place == place],
            [peer for peer in found.peers if peer.place == place], place)
    yield from map(profile, found.profiles)
    if found.windows:
        yield windows(found.windows)
    if found.nodes:
        yield nodes(found.nodes)
    if found.rows:
        yield scales_goals.table(goals(found))


def rates(rows: Sequence[Row], peers: Sequence[Peer], place: str) -> Table:
    """The reference's table of rates, with what it published."""
    serial = next((rate(row) for row in rows if row.method.is_single), None)
    cells = [_cells(row, serial) for row in rows if row.encoding and row.writing]
    for peer in peers:
        if peer.figures:
            is_floor = peer.name == "pwrite"
            mb_s = f"{peer.figures['mb_s'].median:,.0f}"
            cells.append((peer.title, str(peer.pes), "", "", "" if is_floor else mb_s, "", "", "",
                f"{peer.figures['cpu_s_per_gb'].median:.2f}", mb_s if is_floor else "", ""))
    return Table(f"Rates, files in {'memory' if place == 'memory' else 'a directory on disk'}",
        ("<write method", "PEs", "collectors", "writers", "MB/s", "x serial", "published",
            "x serial, published", "CPU s/GB", "MB/s", "of pwrite"), tuple(cells),
        groups=(("", 4), ("encoding and writing", 5), ("writing alone", 2)),
        remarks=(*_without_all(rows, peers), *_refused(rows)))


def _refused(rows: Sequence[Row]) -> tuple[str, ...]:
    """Rows whose writer was to use io_uring and could not."""
    which: dict[str, list[str]] = {}
    for row in rows:
        refused = row.encoding.get("refused")
        if refused is not None and refused.high > 0:
            which.setdefault(row.method.title, []).append(str(row.pes))
    return tuple(f"{title} on {', '.join(pes)} PEs: by pwrite, as io_uring was refused here"
        for title, pes in which.items())


def _without_all(rows: Sequence[Row], peers: Sequence[Peer]) -> tuple[str, ...]:
    """What has no figure, or that of fewer repetitions than were asked for, and why."""
    which: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.error:
            has = "fewer repetitions" if row.encoding and row.writing else "no figure"
            which.setdefault(f"{has}: {row.error}", {}).setdefault(row.method.title, []).append(
                str(row.pes))
    for peer in peers:
        if peer.error:
            has = "fewer repetitions" if peer.figures else "no figure"
            which.setdefault(f"{has}: {peer.error}", {}).setdefault(peer.title, [])
    return tuple(f"{_named(methods)}: {reason}" for reason, methods in which.items())


def _named(methods: dict[str, list[str]]) -> str:
    """Which rows, or how many, when names would fill the screen."""
    count = sum(max(1, len(pes)) for pes in methods.values())
    if count > MOST_NAMED:
        return f"{count} rows"
    return "; ".join(f"{title} on {', '.join(pes)} PEs" if pes else title
        for title, pes in methods.items())


def _cells(row: Row, serial: float | None) -> tuple[str, ...]:
    method, pes = row.method, row.pes
    published, own = PUBLISHED.get((method.name, pes)), rate(row)
    alone = row.writing["mb_s"].median
    return (
        method.title, str(pes), str(1 if method.is_single else method.collectors(pes)),
        str(1 if method.is_single else method.writers(pes)), f"{own:,.0f}",
        _times(own, serial), str(published or ""), _times(published, PUBLISHED["serial", 1]),
        f"{row.encoding['cpu_s_per_gb'].median:.2f}", f"{alone:,.0f}",
        percent(row.writing["of_pwrite"].median, 1),
    )  # fmt: skip


def rate(row: Row) -> float | None:
    return row.encoding["mb_s"].median if row.encoding else None


def _times(value: float | None, of_serial: float | None) -> str:
    return f"{value / of_serial:.2f}" if value and of_serial else ""


def profile(one: Profile) -> Table:
    """As the reference prints it."""
    whole, each = one.total.seconds, one.total.seconds / one.total.pes
    rows = tuple(
        (line.routine, f"{line.seconds:.2f}", percent(line.seconds, whole), str(line.pes),
            f"{line.seconds / line.pes:.3f}", percent(line.seconds / line.pes, each))
        for line in (one.total, *one.lines))
    return Table(f"{one.method.title}, {one.pes} PEs, from its trace", ("<routine", "time s", "%",
        "# PEs", "s a PE", "% of it"), rows)


def windows(found: Sequence[Windows]) -> Table:
    rows = tuple((str(one.windows), f"{one.elapsed_s:.2f}", f"{one.gather_s:.3f}",
        percent(one.slower, 1)) for one in found)
    return Table("RMA windows of a model that computes beside the writer", ("windows", "elapsed s",
        "gathering s", "computing slower"), rows,
        remarks=("computing is bound by memory; slower than without output; quickest runs",
            "a negative figure: other load on the machine, which a repetition may not have"))


def nodes(found: Sequence[NodeRow]) -> Table:
    rows = tuple((one.method.title, str(one.pes), str(one.nodes), f"{one.mb_s:,.0f}",
        f"{one.requests:,.0f}") for one in found if not one.error)
    return Table("On simulated nodes, test file system, preset lustre", ("<write method", "PEs",
        "nodes", "MB/s", "requests"), rows, remarks=tuple(
        f"{one.method.title}, {one.nodes} nodes: {one.error}" for one in found if one.error))


def goals(found: Found) -> list[RowGoal]:
    return scales_goals.judged(found.rows, found.tracing)


def curves(rows: Sequence[Row]) -> dict[str, Scaling]:
    """Elapsed time by PEs of each method that ran on several numbers, the serial writer as the
    beginning of each; files in memory if there are some. Of rows that have enough runs to be
    judged."""
    place = rows[0].place if rows else ""
    there = [row for row in rows if row.place == place and row.encoding
        and len(row.encoding["elapsed_s"].values) >= scales_goals.LEAST_REPETITIONS]
    serial = [_run_times(row) for row in there if row.method.is_single]
    found = {}
    for title in dict.fromkeys(row.method.title for row in there if not row.method.is_single):
        runs = [*serial, *(_run_times(row) for row in there if row.method.title == title)]
        if len({one.ranks for one in runs}) > 1:
            found[title] = scaling(runs)
    return found


def _run_times(row: Row) -> RunTimes:
    wall, encode = row.encoding["elapsed_s"].median, row.encoding["encode_s"].median
    each = min(wall, encode / row.method.collectors(row.pes))
    return RunTimes(f"{row.method.name} {row.pes}", row.pes, 1, round(1e9 * wall),
        {"encoding": round(1e9 * each), "(rest)": round(1e9 * (wall - each))})


def as_data(options: Options, mpi: str, steps: int, found: Found) -> dict[str, Any]:
    def method(one: Row | Profile | NodeRow) -> dict[str, Any]:
        return {"name": one.method.name, "title": one.method.title, "pes": one.pes,
            "collectors": one.method.collectors(one.pes), "writers": one.method.writers(one.pes),
            "error": one.error or None}

    return {
        "machine": machine(), **asdict(options), "mpi": mpi, "steps": steps,
        "tracing": found.tracing,
        "writers": [{**method(row), "place": row.place,
            "published_mb_s": PUBLISHED.get((row.method.name, row.pes)),
            "encoding": {key: asdict(spread) for key, spread in row.encoding.items()},
            "writing": {key: asdict(spread) for key, spread in row.writing.items()}}
            for row in found.rows],
        "peers": [asdict(one) for one in found.peers],
        "profiles": [{**method(one), "total": asdict(one.total),
            "routines": [asdict(line) for line in one.lines]} for one in found.profiles],
        "windows": [asdict(one) for one in found.windows],
        "nodes": [{**method(one), "nodes": one.nodes, "mb_s": one.mb_s, "requests": one.requests}
            for one in found.nodes],
        "goals": scales_goals.as_data(goals(found)),
    }  # fmt: skip
