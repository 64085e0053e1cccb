# SPDX-License-Identifier: Apache-2.0
"""The tables of ``weir bench olam`` and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from weir.bench.nersc_tables import machine
from weir.bench.olam import Measured, Options
from weir.bench.olam_contention import STATE_MB, Order, Rate, best_cores
from weir.bench.olam_techniques import Found
from weir.bench.olam_techniques import table as techniques
from weir.report.frame.figures import percent
from weir.report.frame.table import Table, text_lines
from weir.report.render import screen_width
from weir.scaling.compute import Curve
from weir.scaling.table import scaling_json, scaling_tables


def header(options: Options, mpi: str) -> str:
    work = "8exec does nothing (I/O only)" if options.io_only or not options.exec_s else (
        f"8exec sleeps {options.exec_s:g} s divided by the ranks, so it scales on any machine")
    return (f"{500 * options.scale:g} MB of maps, read by each rank; 0.2 MB of plots and 0.5 MB of "
            f"results for each rank, 2 MB of history; {work}; {mpi}; medians of {options.repeat}")


def text(one: Measured) -> str:
    """Curves, seconds by phase, and what neighbours on a node cost at the largest number of ranks.
    """
    title = f"{one.configuration.title} ({one.system.title})"
    if one.found is None:
        return f"{title}\nfailed: {one.error}\n"
    shown = replace(one.found, crowding=one.found.crowding[-1:])
    tables = ("\n".join(text_lines(table, screen_width(), is_split=False))
        for table in scaling_tables(shown))
    return "\n\n".join([title, *tables]) + "\n"


def summary(found: Sequence[Measured]) -> Iterator[Table]:
    """All curves side by side; then the requests that reached the file systems."""
    curves = [(one, curve) for one in found if one.found for curve in one.found.curves]
    if not curves:
        return
    ranks = sorted({point.run.ranks for _, curve in curves for point in curve.points})
    heads = tuple(f"{n}" for n in ranks)
    rows = tuple((_name(one, curve), *_speedups(curve, ranks), _stop(curve))
        for one, curve in curves)
    yield Table("Speed-up by ranks", ("<Configuration", *heads, "stops scaling at"), rows)
    for key, title in (("metadata_requests", "Metadata requests"), ("data_requests",
            "Read and write requests"), ("moved", "MB moved")):
        rows = tuple((_name(one, curve), *_counts(one, curve, ranks, key))
            for one, curve in curves if _is_counted(one))
        if rows:
            yield Table(f"{title} at the file system, by ranks", ("<Configuration", *heads), rows)


def _name(one: Measured, curve: Curve) -> str:
    return one.configuration.name + (f", {curve.placement}" if curve.placement else "")


def _speedups(curve: Curve, ranks: Sequence[int]) -> Iterator[str]:
    at = {point.run.ranks: point.speedup for point in curve.points}
    return (f"{at[n]:.2f}" if n in at else "" for n in ranks)


def _stop(curve: Curve) -> str:
    if curve.stop is None:
        return "does not stop"
    return f"{curve.stop.before.ranks} rank" + "s" * (curve.stop.before.ranks != 1)


def _is_counted(one: Measured) -> bool:
    return any("moved" in each for each in one.counted.values())


def _counts(one: Measured, curve: Curve, ranks: Sequence[int], key: str) -> Iterator[str]:
    at = {point.run.ranks: one.counted[point.run.ranks, point.run.nodes][key]
        for point in curve.points}
    scale = 1e6 if key == "moved" else 1
    return (f"{at[n] / scale:,.0f}" if n in at else "" for n in ranks)


def tables(found: Sequence[Measured], order: Sequence[Order], rates: Sequence[Rate],
        small: Sequence[Found] = ()) -> Iterator[Table]:
    """Of all configurations together, and what was measured beside them."""
    yield from summary(found)
    if order:
        yield interleaving(order)
    if rates:
        yield memory(rates)
    if small:
        yield techniques(small)


def interleaving(found: Sequence[Order]) -> Table:
    rows = tuple((one.group, str(one.ranks), str(one.nodes), f"{one.calls:,}",
        percent(one.of_rank, one.calls), percent(one.of_node, one.calls)) for one in found)
    return Table("Calls that begin where the one before ended, Lustre", ("<Files", "ranks", "nodes",
        "calls", "of the rank", "of the node"), rows)


def memory(found: Sequence[Rate]) -> Table:
    """Strong scaling of 8exec alone; the sentence for a colleague who plans a job."""
    rows = tuple((str(one.cores), f"{one.gb_s:.1f}", f"{one.gb_s / one.cores:.1f}", "-"
        if one.gain is None else percent(one.gain, 1)) for one in found)
    best = best_cores(list(found))
    cores = f"{best} core" + "s" * (best != 1)
    remark = (f"8exec stops scaling at {cores}: more of a node wait for its memory"
        if best < found[-1].cores else f"8exec does not stop scaling on this machine's {cores}; "
        f"what more cores of a node do to its memory is not to be seen here")
    return Table(f"8exec alone, {STATE_MB} MB in memory", ("cores", "GB/s", "GB/s a core",
        "gain of ideal"), rows, remarks=(remark,))


def as_data(options: Options, mpi: str, found: Sequence[Measured], order: Sequence[Order] = (),
        rates: Sequence[Rate] = (), small: Sequence[Found] = ()) -> dict[str, Any]:
    return {
        "machine": machine(), **asdict(options), "mpi": mpi,
        "interleaving": [asdict(one) for one in order], "memory": [asdict(one) for one in rates],
        "techniques": [asdict(one) for one in small],
        "configurations": [
            {
                "name": one.configuration.name, "title": one.configuration.title,
                "file_system": one.system.title, "rules": dict(one.configuration.rules),
                "error": one.error or None,
                "scaling": one.found and scaling_json(one.found),
                "counted": [{"ranks": ranks, "nodes": nodes, **counts}
                    for (ranks, nodes), counts in one.counted.items()],
            }
            for one in found
        ],
    }  # fmt: skip
