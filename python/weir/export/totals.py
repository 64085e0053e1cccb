# SPDX-License-Identifier: Apache-2.0
"""Totals of each rank and file under Darshan's names, as lines of the form that darshan-parser
prints.

Source of names and meanings: the Darshan-util documentation, "Guide to darshan-parser output". As
there, failed calls do not count, and syncs are part of the time of writing. Counters that need more
than totals (strides, common sizes, alignment) are not printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import TextIO

import numpy as np

from weir.analysis.columns import Columns, starts
from weir.analysis.names import NO_NAME
from weir.analysis.ranks import FIRST_NAMED, RankName
from weir.report.frame.build import Report, StepReport
from weir.trace.ops import MPI_IO, POSIX, STDIO, op_named, ops

_HEAD = """\
# description of columns:
#   <module>: module responsible for this I/O record.
#   <rank>: MPI rank.
#   <record id>: hash of the record's file path
#   <counter name> and <counter value>: statistical counters.
#   <file name>: full file path for the record.
#   <mount pt>: mount point that the file resides on.
#   <fs type>: type of file system that the file resides on.
"""
_COLUMNS = (
    "#<module>\t<rank>\t<record id>\t<counter>\t<value>\t<file name>\t<mount pt>\t<fs type>\n"
)
_UNKNOWN = "UNKNOWN\tUNKNOWN"  # where files lay when the job ran is not in the trace


@dataclass(frozen=True)
class _Module:
    """A module of Darshan: its name, what its counters begin with, and which operations each of
    them counts.

    Operations are a class (one letter) or names. syncs: those whose time is time of writing.
    """

    name: str
    prefix: str
    layer: int
    calls: dict[str, str]
    syncs: str
    reads: str = "R"
    writes: str = "W"
    opens: str = "O"
    closes: str = "C"

    def chosen(self, columns: Columns, what: str) -> np.ndarray:
        """Mask of the rows of these operations."""
        if len(what) == 1:
            return columns.by_code(what)
        return np.isin(columns.op, [op_named(name).value for name in what.split()])


def _mpi_calls(direction: str) -> dict[str, list[str]]:
    """The MPI_File_read family by Darshan's kinds; of split calls, the one that begins."""
    kinds: dict[str, list[str]] = {"INDEP": [], "COLL": [], "SPLIT": [], "NB": [], "": []}
    for op in ops().values():
        name = op.name.removeprefix("MPI_File_")
        if op.layer != MPI_IO or not name.removeprefix("i").startswith(direction):
            continue
        is_collective = "_all" in name or "_ordered" in name
        is_split = name.endswith(("_begin", "_end"))
        kind = "NB" if name.startswith(
            "i") else "SPLIT" if is_split else "COLL" if is_collective else "INDEP"
        if not name.endswith("_end"):
            kinds[kind].append(op.name)
        kinds[""].append(op.name)
    return kinds


@cache
def _modules() -> tuple[_Module, ...]:
    reads, writes = _mpi_calls("read"), _mpi_calls("write")
    of_mpi = {f"{kind}_{what}": " ".join(calls[kind]) for what, calls in (("READS", reads),
        ("WRITES", writes)) for kind in calls if kind}
    of_mpi |= {"SYNCS": "MPI_File_sync", "VIEWS": "MPI_File_set_view"}
    stats = "stat lstat fstat fstatat statx"
    return (
        _Module(
            "POSIX", "POSIX", POSIX,
            {"OPENS": "O", "READS": "R", "WRITES": "W", "SEEKS": "lseek", "STATS": stats,
                "MMAPS": "mmap", "FSYNCS": "fsync",
             "FDSYNCS": "fdatasync"},
            "fsync fdatasync",
        ),
        _Module(
            "MPI-IO", "MPIIO", MPI_IO, of_mpi, "MPI_File_sync", " ".join(reads[""]),
            " ".join(writes[""]), "MPI_File_open", "MPI_File_close"
        ),
        _Module("STDIO", "STDIO", STDIO, {"OPENS": "O", "READS": "R", "WRITES": "W",
            "SEEKS": "fseek rewind", "FLUSHES": "fflush"}, "fflush"),
    )  # fmt: skip


def export_totals(report: Report, stream: TextIO) -> None:
    """A part for each step: its head, then the counters of each module, rank and file."""
    for step in report.steps:
        _write_head(step, stream)
        seen = _numbered(step, step.seen)
        ranks = seen.where((seen.rank >= 0) & (seen.name != NO_NAME) & seen.is_file)
        columns = _numbered(step, step.columns)
        left_out = columns.where(columns.rank < 0)
        if len(left_out):
            stream.write(f"# left out: {int(left_out.app_calls.sum())} calls of processes without "
                         f"a rank\n")
        for module in _modules():
            columns = ranks.where(ranks.layer == module.layer)
            if len(columns):
                stream.write(f"\n# {module.name} module data\n{_COLUMNS}")
                _write_module(step, module, columns, stream)
        stream.write("\n")


def _ranks(step: StepReport) -> list[int]:
    """Numbers of all ranks of the step, chosen or not, rising."""
    return sorted({one.number for one in step.data.members if one.number >= 0})


def _programs(step: StepReport) -> list[RankName]:
    """Ranks of several parallel programs, in the order of the numbers that they have here."""
    return [step.names.ranks[one] for one in _ranks(step) if one >= FIRST_NAMED]


def _numbered(step: StepReport, columns: Columns) -> Columns:
    """With ranks as this format has them: all of a step count from 0."""
    ranks = step.names.ranks.ranks(columns.rank)
    several = [one for one in _ranks(step) if one >= FIRST_NAMED]
    if several:
        is_rank = columns.rank >= FIRST_NAMED
        ranks[is_rank] = np.searchsorted(several, columns.rank[is_rank])
    return replace(columns, rank=ranks)


def _write_head(step: StepReport, stream: TextIO) -> None:
    job = step.data.step.job
    begin, end = step.started_ns, step.started_ns + step.wall_ns
    exe = " ".join(job.command) if job is not None and job.command else step.name
    stream.write(f"# step: {step.name}\n# exe: {exe.translate({10: ' ', 13: ' '})}\n")
    for name, ns in (("start_time", begin), ("end_time", end)):
        stream.write(f"# {name}: {ns // 10**9}\n# {name}_asci: "
                     f"{time.asctime(time.gmtime(ns // 10**9))}\n")
    for rank, name in enumerate(_programs(step)):
        stream.write(f"# rank {rank}: {name.label}\n")
    ranks = len(_ranks(step)) if step.data.worlds else 1
    stream.write(f"# nprocs: {max(1, ranks)}\n# run time: "
                 f"{step.wall_ns / 1e9:.4f}\n{_HEAD}")


def _write_module(step: StepReport, module: _Module, columns: Columns, stream: TextIO) -> None:
    columns = columns.where(np.lexsort((columns.name, columns.rank)))
    begins = starts(columns.rank, columns.name)
    counters = list(_counters(step, module, columns, begins))
    ids: dict[int, str] = {}
    for row, (rank, name) in enumerate(zip(columns.rank[begins].tolist(),
            columns.name[begins].tolist())):
        file = step.names[name]
        number = ids.setdefault(name, _record_id(file))
        shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode()
            for one in file)
        for counter, values in counters:
            stream.write(
                f"{module.name}\t{rank}\t{number}\t{module.prefix}_{counter}\t{values[row]}\t{shown}\t{_UNKNOWN}\n"
            )


def _record_id(file: str) -> str:
    """64 bits of a name; not the ones that Darshan makes of it."""
    return str(int.from_bytes(blake2b(file.encode("utf-8", "backslashreplace"), digest_size=8)
        .digest(), "big"))


def _counters(step: StepReport, module: _Module, columns: Columns,
        begins: np.ndarray) -> Iterator[tuple[str, list[str]]]:
    """Each counter with its values by group."""

    def summed(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.where(mask, values, 0), begins)

    done = columns.calls - columns.errors
    for counter, what in module.calls.items():
        yield counter, [str(n) for n in summed(done, module.chosen(columns, what)).tolist()]
    reads, writes, opens, closes = (module.chosen(columns, what)
        for what in (module.reads, module.writes, module.opens, module.closes))
    yield "BYTES_READ", [str(n) for n in summed(columns.bytes, reads).tolist()]
    yield "BYTES_WRITTEN", [str(n) for n in summed(columns.bytes, writes).tolist()]
    syncs = module.chosen(columns, module.syncs)
    for name, mask in (("READ", reads), ("WRITE", writes), ("OPEN", opens), ("CLOSE", closes)):
        yield f"F_{name}_START_TIMESTAMP", _timestamps(step, np.minimum,
            np.where(mask, columns.first_ns, 2**62), begins)
        yield f"F_{name}_END_TIMESTAMP", _timestamps(step, np.maximum,
            np.where(mask, columns.last_ns, -1), begins)
    for name, mask in (("READ", reads), ("WRITE", writes | syncs),
            ("META", ~(reads | writes | syncs))):
        yield f"F_{name}_TIME", [f"{ns / 1e9:.6f}" for ns in summed(columns.ns, mask).tolist()]


def _timestamps(step: StepReport, least: np.ufunc, values: np.ndarray,
        begins: np.ndarray) -> list[str]:
    """Seconds since the start of the step; 0 where there was no such call."""
    found = least.reduceat(values, begins).tolist()
    return [f"{(ns - step.started_ns) / 1e9:.6f}" if 0 <= ns < 2**62 else "0.000000"
        for ns in found]
