# SPDX-License-Identifier: Apache-2.0
"""Finding independent-mpi-io: ranks write or read a common file by many small independent calls of
MPI-IO."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Rule
from weir.advise.findings.interleaved_writes.finding import BLOCK, BUFFERS
from weir.advise.findings.small_requests.finding import GATHERED
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.speeds import in_blocks
from weir.advise.frame.finding import Limit
from weir.report.frame.amounts import amount, number, seconds
from weir.report.mpi_io.compute import Access, MpiFile, mpi_files_of
from weir.stage.suggest import exactly

MANY = Limit("independent calls of all ranks", 500, "calls",
    "chosen: as in small-requests, fewer calls of a fast file system take less than 20 ms")
SMALL = Limit("mean size of a call, at most", 256 << 10, "B",
    "a collective call merges these into requests of a stripe and more")


def _is_one(access: Access) -> bool:
    return (access.independent >= MANY.value and access.independent > access.collective
        and access.bytes <= SMALL.value * access.calls and access.independent_ranks > 1)


def _advice(facts: Facts, one: MpiFile, access: Access, way: str) -> Advice:
    file, ranks = facts.files.get(one.file, File(one.file)), access.independent_ranks
    before_s = access.system_ns / 1e9
    speeds = facts.speeds(one.file, way)
    after = in_blocks(access.system, access.bytes, before_s / max(access.system, 1), BLOCK, speeds)
    between_s = access.bytes / speeds.network if facts.nodes > 1 else 0.0
    range_ = saved(before_s, Range(after.low, after.high * min(ranks, GATHERED) + between_s))
    rule = Rule(exactly(one.file), f"global:{BLOCK >> 20}MiB:{BUFFERS}")
    return Advice(
        "independent-mpi-io", facts.shown(one.file), (one.file,),
        f"{ranks} ranks {way} {amount(access.bytes)} by {number(access.independent)} independent "
        f"calls of {amount(access.bytes / access.calls)}: {seconds(access.ns / 1e9)} of all ranks.",
        facts.saving([(file, range_)], access.system - access.bytes // BLOCK),
        f"Set a view and {way} collectively (MPI_File_{way}_all).",
        None if facts.is_local(one.file) else rule,
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        for one in mpi_files_of(step):
            for access, way in ((one.reads, "read"), (one.writes, "write")):
                if _is_one(access):
                    yield _advice(facts, one, access, way)


INDEPENDENT_MPI_IO = Finding(
    name="independent-mpi-io",
    asks="Do ranks move a common file by many small independent calls of MPI-IO?",
    shrinks="I/O",
    limits=(MANY, SMALL),
    page="guide/mpi-io.md",
    table="mpi-io",
    cure="global",
    find=find,
)
