# SPDX-License-Identifier: Apache-2.0
"""Finding aggregators: collective MPI-IO moves a file by too few ranks, by too many, or by ranks
of one node while other nodes have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from weir.advise.frame.facts import Facts, File
from weir.advise.frame.finding import Advice, Finding, Limit
from weir.advise.frame.saving import Range, saved
from weir.advise.frame.speeds import in_blocks
from weir.report.frame.amounts import amount, counted, number, seconds
from weir.report.mpi_io.compute import Access, MpiFile, mpi_files_of

LARGE = Limit("size of what the aggregators move", 16 << 20, "B",
    "chosen: less takes no longer with one aggregator than with many")
SMALL = Limit("mean size of a request of too many aggregators, at most", 256 << 10, "B",
    "a quarter of 1 MiB, the stripe of Lustre: then each has too small a part")
MANY = Limit("aggregators over nodes, or over stripes of the file, more than", 4, "times",
    "chosen: ROMIO itself takes one of each node, or one for each stripe")
BLOCK = 1 << 20


def _wanted(one: MpiFile, nodes: int) -> int:
    """One for each node, or for each stripe where there are more, as ROMIO chooses on Lustre."""
    return min(one.ranks, max(nodes, one.stripes or 0))


def _is_collective(access: Access) -> bool:
    return (access.collective > access.independent and access.system_ranks > 0
        and access.system_bytes >= LARGE.value)


def _hint(wanted: int) -> str:
    return (f"Set the hints cb_nodes = {wanted} and cb_config_list = *:1 (ROMIO), or "
        f"OMPI_MCA_io_ompio_num_aggregators={wanted} (OMPIO).")


def _by_node(one: MpiFile, way: str) -> Counter[str]:
    return Counter(rank.node for rank in one.aggregators
        if (rank.writes if way == "write" else rank.reads))


def _why(facts: Facts, one: MpiFile, access: Access, way: str,
        nodes: int) -> tuple[str, Range] | None:
    """What is wrong, and the part of the time that it costs."""
    have, wanted = access.system_ranks, _wanted(one, nodes)
    by_node = _by_node(one, way)
    used = len(by_node)
    if have > 1 and used < min(nodes, have):
        return (f"{counted(have, 'aggregator')} on {counted(used, 'node')} of {nodes}",
            facts.scaling(one.file, way, used, min(nodes, have)))
    if have < wanted:
        what = "stripe" if (one.stripes or 0) > nodes else "node"
        return (f"{counted(have, 'aggregator')} for {counted(wanted, what)}",
            facts.scaling(one.file, way, have, wanted))
    return None


def _few(facts: Facts, one: MpiFile, access: Access, way: str, nodes: int) -> Iterator[Advice]:
    why = _why(facts, one, access, way, nodes)
    if why is None:
        return
    text, share = why
    file, before_s = facts.files.get(one.file, File(one.file)), access.system_ns / 1e9
    yield Advice(
        "aggregators", facts.shown(one.file), (one.file,),
        f"{text} {way} {amount(access.system_bytes)} for {counted(one.ranks, 'rank')}, in "
        f"{seconds(before_s)}.",
        facts.saving([(file, share.times(before_s))], 0),
        _hint(_wanted(one, nodes)),
    )  # fmt: skip


def _many(facts: Facts, one: MpiFile, access: Access, way: str, nodes: int) -> Iterator[Advice]:
    have, wanted = access.system_ranks, _wanted(one, nodes)
    is_small = access.system_bytes <= SMALL.value * access.system
    if have <= MANY.value * max(nodes, one.stripes or 0) or not is_small:
        return
    file, before_s = facts.files.get(one.file, File(one.file)), access.system_ns / 1e9
    after = in_blocks(access.system, access.system_bytes, before_s / access.system, BLOCK,
        facts.speeds(one.file, way))
    yield Advice(
        "aggregators", facts.shown(one.file), (one.file,),
        f"{number(have)} aggregators on {counted(len(_by_node(one, way)), 'node')} {way} "
        f"{amount(access.system_bytes)} with {number(access.system)} requests of "
        f"{amount(access.system_bytes / access.system)}, in {seconds(before_s)}.",
        facts.saving([(file, saved(before_s, after))],
            access.system - access.system_bytes // BLOCK),
        _hint(wanted),
    )  # fmt: skip


def find(facts: Facts) -> Iterator[Advice]:
    for step in facts.report.steps:
        nodes = step.data.nodes_of_ranks
        for one in mpi_files_of(step):
            for access, way in ((one.reads, "read"), (one.writes, "write")):
                if _is_collective(access):
                    yield from _few(facts, one, access, way, nodes)
                    yield from _many(facts, one, access, way, nodes)


AGGREGATORS = Finding(
    name="aggregators",
    asks="Do too few or too many ranks move the bytes of collective calls, or ranks of too few "
         "nodes?",
    shrinks="I/O",
    limits=(LARGE, SMALL, MANY),
    page="guide/mpi-io.md",
    table="mpi-io",
    cure="",
    find=find,
)
