# SPDX-License-Identifier: Apache-2.0
"""Output through libweir: the reference's figures as tables and as JSON, and what a forecaster
should do about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.analysis.ranks import RankName, rank_list
from weir.report.frame.amounts import counted
from weir.report.frame.build import Report
from weir.report.frame.declared import Field, Listing, sums
from weir.report.frame.figures import megabytes, percent, rate, seconds
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.output.compute import StepOutput, all_outputs

LOST_SHARE = 0.05  # of the run: worth a sentence
BUSY_SHARE = 0.5  # of the servers' life: more of them, or faster ones, would help


LISTING = Listing(
    "output",
    "what output through libweir cost each step; times of compute ranks: of the one that lost most",
    (
        Field("step", "text", "", "name of the step"),
        Field("how", "text", "", "mode, buffers, routes"),
        Field("compute_ranks", "ranks", "", "ranks of the model"),
        Field("servers", "ranks", "", "ranks that are servers"),
        Field("writers", "ranks", "", "ranks that write"),
        Field("groups", "int", "", "groups of servers"),
        Field("effective_ns", "int", "ns", "effective write time: put_ns + wait_ns + end_step_ns"),
        Field("effective_mean_ns", "int", "ns", "the same, mean of the compute ranks"),
        Field("put_ns", "int", "ns", "in put, of a compute rank"),
        Field("wait_ns", "int", "ns", "in waits for buffers or a free group, likewise"),
        Field("end_step_ns", "int", "ns", "at the end of steps, likewise"),
        Field("agree_ns", "int", "ns", "of end_step_ns, for other compute ranks"),
        Field("final_ns", "int", "ns", "final write, which nothing overlaps"),
        Field("output_ns", "int", "ns", "effective_ns + final_ns"),
        Field("share_of_run", "real", "1", "output_ns, of the wall time of the step"),
        Field("define_ns", "int", "ns", "definitions, the set-up of the servers included"),
        Field("get_ns", "int", "ns", "reading back"),
        Field("frames", "int", "", "frames written"),
        Field("refused", "int", "", "frames that failed or were not complete"),
        Field("put_bytes", "int", "bytes", "put by all compute ranks"),
        Field("written_bytes", "int", "bytes", "written by all writers"),
        Field("write_ns", "int", "ns", "actual write time: of the busiest writer"),
        Field("close_ns", "int", "ns", "of it after the last frame"),
        Field("server_life_ns", "int", "ns", "life of the servers; 0 in modes without"),
        Field("system_calls", "int", "",
              "system calls of libweir, which the tables of I/O have too", key=None),
        Field("system_writes", "int", "", "writes among them", key=None),
        Field("system_written_bytes", "int", "bytes", "of these", key=None),
        Field("system_ns", "int", "ns", "in system_calls, of all ranks", key=None),
        Field("busy_s", "object", "", "seconds of each writer, by rank"),
        Field("system", "object", "", "calls, writes, written_bytes, seconds: system_calls, ..."),
        Field("streams", "object", "", "figures by stream"),
        Field("fields", "object", "", "fields that were packed, rounded or compressed"),
    ),
    lambda report: [_row(one) for one in all_outputs(report)],
)
STREAMS = Listing(
    "output_streams",
    "streams of output through libweir",
    (
        Field("step", "text", "", "name of the step", key=None),
        Field("stream", "text", "", "name of the stream", "Stream"),
        Field("frames", "int", "", "frames written", "frames"),
        Field("puts", "int", "", "calls of put", "puts", "compute ranks"),
        Field("put_ns", "int", "ns", "of the compute rank that lost most", "put", "compute ranks"),
        Field("wait_ns", "int", "ns", "likewise", "wait", "compute ranks"),
        Field("put_bytes", "int", "bytes", "put by all compute ranks"),
        Field("written_bytes", "int", "bytes", "written by all writers", "MB", "busiest writer"),
        Field("write_ns", "int", "ns", "of the busiest writer", "s", "busiest writer"),
        Field("mb_per_s", "real", "MB/s", "written_bytes by write_ns", "MB/s", "busiest writer",
              key=None),
        Field("fetch_ns", "int", "ns", "of all writers", "fetch", "all writers, s"),
        Field("transpose_ns", "int", "ns", "of all writers", "transp", "all writers, s"),
        Field("encode_ns", "int", "ns", "of all writers, a part of the writing", "encode",
              "all writers, s"),
        Field("refused", "int", "", "frames that failed or were not complete", "refused",
              show=lambda count: str(count or "")),
    ),
    lambda report: [row for one in all_outputs(report) for row in _stream_rows(one)],
)


FIELDS = Listing(
    "output_fields",
    "fields that libweir packed, rounded or compressed",
    (
        Field("step", "text", "", "name of the step", key=None),
        Field("stream", "text", "", "name of the stream", "Stream"),
        Field("field", "text", "", "name of the field", "Field"),
        Field("value_bytes", "int", "bytes", "of its values, in the type of the file", "MB",
              "values"),
        Field("file_bytes", "int", "bytes", "of them in the files", "MB", "in files"),
        Field("share", "real", "1", "file_bytes, of value_bytes", "%", "in files", key=None),
        Field("saved_bytes", "int", "bytes", "value_bytes - file_bytes", "MB", "saved"),
        Field("least_bits", "int", "", "bits kept of each value of a chunk or message; 0: not ours",
              "least", "bits kept", show=lambda bits: str(bits or "")),
        Field("most_bits", "int", "", "likewise", "most", "bits kept",
              show=lambda bits: str(bits or "")),
    ),
    lambda report: [row for one in all_outputs(report) for row in _field_rows(one)],
)


def _row(one: StepOutput) -> dict[str, Any]:
    return vars(one) | {
        "compute_ranks": one.model_ranks, "effective_ns": one.seen_ns,
        "effective_mean_ns": one.mean_seen_ns, "output_ns": one.output_ns,
        "share_of_run": one.share(one.output_ns), "server_life_ns": one.alive_ns,
        "busy_s": {rank: ns / 1e9 for rank, ns in one.busy_ns.items()},
        "system": {
            "calls": one.system_calls, "writes": one.system_writes,
            "written_bytes": one.system_written_bytes, "seconds": one.system_ns / 1e9,
        },
        "streams": STREAMS.json(_stream_rows(one)),
        "fields": FIELDS.json(_field_rows(one)),
    }  # fmt: skip


def _stream_rows(one: StepOutput) -> list[dict[str, Any]]:
    return [
        vars(of) | {"step": one.step, "mb_per_s": rate(of.written_bytes, of.write_ns)}
        for of in one.streams
    ]


def _field_rows(one: StepOutput) -> list[dict[str, Any]]:
    return [
        vars(of) | {"step": one.step, "saved_bytes": of.saved_bytes,
            "share": of.file_bytes / of.value_bytes if of.value_bytes else 0.0}
        for of in one.fields
    ]


def output_tables(report: Report) -> Iterator[Table]:
    """Tables for each step that wrote through libweir."""
    for one in all_outputs(report):
        yield _cost_table(one)
        if one.streams:
            rows = _stream_rows(one)
            total = vars(one) | sums(rows, "puts", "fetch_ns", "transpose_ns", "encode_ns")
            total |= {"stream": "TOTAL", "mb_per_s": rate(one.written_bytes, one.write_ns)}
            yield STREAMS.table(f"Streams of {one.step}", rows, footer=[total])
        if one.fields:
            yield FIELDS.table(f"Fields of {one.step} that were packed, rounded or compressed",
                _field_rows(one))


def _do(ranks: tuple[RankName, ...], verb: str) -> str:
    return f"{ranks[0].title} {verb}s" if len(ranks) == 1 else f"ranks {rank_list(ranks)} {verb}"


def _who(one: StepOutput) -> str:
    groups = f" in {one.groups} groups" if one.groups > 1 else ""
    said = [
        _do(one.model_ranks, "compute") if one.model_ranks else "",
        _do(one.servers, "serve") + groups if one.servers else _do(one.writers, "write")
        if one.writers else "",
    ]
    return ", ".join(filter(None, said))


def _cost_table(one: StepOutput) -> Table:
    def line(what: str, ns: int, remark: str = "") -> tuple[str, ...]:
        return what, seconds(ns), percent(ns, one.wall_ns), remark

    waited = "wait for a free group" if one.servers else "wait for buffers"
    lines = [
        line("effective write time", one.seen_ns,
            f"of the compute rank that lost most; mean {one.mean_seen_ns / 1e9:.3f}"),
        line("  put", one.put_ns, f"{megabytes(one.put_bytes):.3f} MB of all ranks"),
        line(f"  {waited}", one.wait_ns),
        line("  end of step", one.end_step_ns,
            f"of which {one.agree_ns / 1e9:.3f} in waits for other compute ranks"
            if one.agree_ns else ""),
        line("final write", one.final_ns, "not overlapped"),
        line("output in all", one.output_ns),
        line("actual write time", one.write_ns,
            f"of the busiest of {counted(len(one.writers), 'writer')}: "
            f"{_speed(one.written_bytes, one.write_ns)}"),
    ]
    lines += [line("definitions", one.define_ns,
        "once, including the start of the servers")] if one.define_ns else []
    lines += [line("reading back", one.get_ns)] if one.get_ns else []
    system = (
        f"system calls of libweir (the tables of I/O include them): {one.system_calls}, of which "
        f"{one.system_writes} writes of "
        f"{megabytes(one.system_written_bytes):.3f} MB; {one.system_ns / 1e9:.3f} s of all ranks"
    )
    title = f"Output of {one.step}: {_who(one)}"
    return Table(title, ("<", "s", "%run", "<"), tuple(lines),
        remarks=(system, *([one.how] if one.how else [])))


def _speed(count: int, ns: int) -> str:
    return f"{megabytes(count):.3f} MB, {rate(count, ns):.0f} MB/s"


def output_findings(one: StepOutput) -> Iterator[str]:
    """Sentences on what output cost the run, and what would cost less."""
    if one.servers and one.share(one.wait_ns) >= LOST_SHARE:
        busy = max(one.busy_ns.values(), default=0) / (one.alive_ns or one.wall_ns or 1)
        more = "one more group, or mode servers+parallel," if len(
            one.writers) <= one.groups else "one more group"
        yield (
            f"compute ranks wait {one.wait_ns / 1e9:.1f} s ({percent(one.wait_ns, one.wall_ns)} of "
            f"the run) for a free group; "
            f"the busiest of {one.groups} is busy {100 * busy:.0f} % of its life: "
            + (f"{more} would avoid these waits" if busy >= BUSY_SHARE
                else "frames come in bursts: one more group, or streams that are due at other "
                     "steps, would avoid these waits")
        )
    elif one.writers and not one.servers and one.share(one.seen_ns) >= LOST_SHARE:
        yield (
            f"compute ranks spend {one.seen_ns / 1e9:.1f} s ({percent(one.seen_ns, one.wall_ns)} "
            f"of the run) in output, because they write themselves: "
            "with mode servers they would only copy their data"
        )
    if one.servers and one.share(one.final_ns) >= LOST_SHARE:
        faster = "mode servers+parallel" if len(
            one.writers) <= one.groups else "more ranks in a group"
        yield (
            f"the final write, {one.final_ns / 1e9:.1f} s ({percent(one.final_ns, one.wall_ns)} of "
            f"the run), overlaps with no computing: "
            f"{faster} would shorten it"
        )
    if one.refused:
        names = ", ".join(of.stream for of in one.streams if of.refused)
        what = "frame was" if one.refused == 1 else "frames were"
        yield (
            f"{one.refused} {what} not written (streams: {names or 'not known'}): the library "
            f"returned the reason to the program"
        )


OUTPUT = TableKind(
    name="output",
    heading="Output through libweir",
    short_heading="Output",
    shows="what output through libweir cost the ranks of the model",
    tables=lambda report, _: output_tables(report),
    why_empty="nothing was written through libweir",
    json=lambda report, _: {"output": LISTING.json(LISTING.rows(report))},
    has_rows=lambda report: bool(all_outputs(report)),
    listings=(LISTING, STREAMS, FIELDS),
)
