# SPDX-License-Identifier: Apache-2.0
"""Output through libweir: the reference's figures as tables and as JSON, and what a forecaster should do about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weir.report.frame.build import Report
from weir.report.frame.figures import megabytes, percent, rate, spans
from weir.report.frame.kind import TableKind
from weir.report.frame.table import Table
from weir.report.output.compute import StepOutput, StreamOutput, all_outputs

LOST_SHARE = 0.05  # of the run: worth a sentence
BUSY_SHARE = 0.5  # of the servers' life: more of them, or faster ones, would help


def output_tables(report: Report) -> Iterator[Table]:
    """Two tables for each step that wrote through libweir."""
    for one in all_outputs(report):
        yield _cost_table(one)
        if one.streams:
            yield _stream_table(one)


def _do(ranks: tuple[int, ...], verb: str) -> str:
    return f"rank {ranks[0]} {verb}s" if len(ranks) == 1 else f"ranks {spans(ranks)} {verb}"


def _who(one: StepOutput) -> str:
    groups = f" in {one.groups} groups" if one.groups > 1 else ""
    said = [
        _do(one.model_ranks, "compute") if one.model_ranks else "",
        _do(one.servers, "serve") + groups if one.servers else _do(one.writers, "write") if one.writers else "",
    ]
    return ", ".join(filter(None, said))


def _cost_table(one: StepOutput) -> Table:
    def line(what: str, ns: int, remark: str = "") -> tuple[str, ...]:
        return what, f"{ns / 1e9:.3f}", percent(ns, one.wall_ns), remark

    waited = "wait for a free group" if one.servers else "wait for buffers"
    lines = [
        line("effective write time", one.seen_ns, f"seen by compute ranks; mean of them {one.mean_seen_ns / 1e9:.3f}"),
        line("  put", one.put_ns, f"{megabytes(one.put_bytes):.3f} MB of all ranks"),
        line(f"  {waited}", one.wait_ns),
        line("  end of step", one.end_step_ns, f"of it {one.agree_ns / 1e9:.3f} for other compute ranks" if one.agree_ns else ""),
        line("final write", one.final_ns, "not overlapped"),
        line("output in all", one.output_ns),
        line("actual write time", one.write_ns, f"of the busiest of {len(one.writers)} that write: {_speed(one.written_bytes, one.write_ns)}"),
    ]
    lines += [line("definitions", one.define_ns, "once, the servers' set-up included")] if one.define_ns else []
    lines += [line("reading back", one.get_ns)] if one.get_ns else []
    system = (
        f"the system's calls of libweir, in the tables of I/O too: {one.system_calls}, of them {one.system_writes} writes of "
        f"{megabytes(one.system_written_bytes):.3f} MB; {one.system_ns / 1e9:.3f} sec of all ranks"
    )
    title = f"Output of {one.step}: {_who(one)}"
    return Table(title, ("<", "sec", "%run", "<"), tuple(lines), remarks=(system, *([one.how] if one.how else [])))


def _speed(count: int, ns: int) -> str:
    return f"{megabytes(count):.3f} MB, {rate(count, ns):.0f} MB/s"


def _stream_table(one: StepOutput) -> Table:
    def cells(of: StreamOutput) -> tuple[str, ...]:
        return (
            of.stream, str(of.frames), str(of.puts), *_seconds(of.put_ns, of.wait_ns), f"{megabytes(of.written_bytes):.3f}",
            *_seconds(of.write_ns), f"{rate(of.written_bytes, of.write_ns):.0f}",
            *_seconds(of.fetch_ns, of.transpose_ns, of.encode_ns), str(of.refused) if of.refused else "",
        )  # fmt: skip

    total = (
        "TOTAL", str(one.frames), str(sum(of.puts for of in one.streams)), *_seconds(one.put_ns, one.wait_ns),
        f"{megabytes(one.written_bytes):.3f}", *_seconds(one.write_ns), f"{rate(one.written_bytes, one.write_ns):.0f}",
        *_seconds(*(sum(getattr(of, key) for of in one.streams) for key in ("fetch_ns", "transpose_ns", "encode_ns"))),
        str(one.refused or ""),
    )  # fmt: skip
    columns = ("<Stream", "frames", "puts", "put", "wait", "MB", "sec", "MB/s", "fetch", "transp", "encode", "refused")
    groups = (("", 2), ("compute ranks", 3), ("busiest writer", 3), ("all writers, sec", 3), ("", 1))
    return Table(f"Streams of {one.step}", columns, tuple(map(cells, one.streams)), groups, (total,))


def _seconds(*lengths: int) -> tuple[str, ...]:
    return tuple(f"{ns / 1e9:.3f}" for ns in lengths)


def output_findings(one: StepOutput) -> Iterator[str]:
    """Sentences on what output cost the run, and what would cost less."""
    if one.servers and one.share(one.wait_ns) >= LOST_SHARE:
        busy = max(one.busy_ns.values(), default=0) / (one.alive_ns or one.wall_ns or 1)
        more = "one more group, or mode servers+parallel," if len(one.writers) <= one.groups else "one more group"
        yield (
            f"compute ranks wait {one.wait_ns / 1e9:.1f} s ({percent(one.wait_ns, one.wall_ns)} of the run) for a free group; "
            f"the busiest of {one.groups} is busy {100 * busy:.0f} % of its life: "
            + (f"{more} would take it off them" if busy >= BUSY_SHARE else "frames come in bursts: one more group, or streams that are due at other steps, would")
        )
    elif one.writers and not one.servers and one.share(one.seen_ns) >= LOST_SHARE:
        yield (
            f"compute ranks spend {one.seen_ns / 1e9:.1f} s ({percent(one.seen_ns, one.wall_ns)} of the run) in output, writing themselves: "
            "mode servers would leave them the copy"
        )
    if one.servers and one.share(one.final_ns) >= LOST_SHARE:
        faster = "mode servers+parallel" if len(one.writers) <= one.groups else "more ranks in a group"
        yield (
            f"the final write, {one.final_ns / 1e9:.1f} s ({percent(one.final_ns, one.wall_ns)} of the run), is overlapped by nothing: "
            f"{faster} would shorten it"
        )
    if one.refused:
        names = ", ".join(of.stream for of in one.streams if of.refused)
        what = "frame was" if one.refused == 1 else "frames were"
        yield f"{one.refused} {what} not written (streams: {names or 'not known'}): the program got the reason"


def output_json(one: StepOutput) -> dict[str, Any]:
    """The same figures; seconds of compute ranks are those of the one that lost most, of writers those of the busiest."""
    return {
        "step": one.step, "how": one.how, "compute_ranks": list(one.model_ranks), "servers": list(one.servers),
        "writers": list(one.writers), "groups": one.groups, "effective_s": one.seen_ns / 1e9,
        "effective_mean_s": one.mean_seen_ns / 1e9, "put_s": one.put_ns / 1e9, "wait_s": one.wait_ns / 1e9,
        "end_step_s": one.end_step_ns / 1e9, "agree_s": one.agree_ns / 1e9, "final_s": one.final_ns / 1e9,
        "output_s": one.output_ns / 1e9, "share_of_run": one.share(one.output_ns), "define_s": one.define_ns / 1e9,
        "get_s": one.get_ns / 1e9, "frames": one.frames, "refused": one.refused, "put_bytes": one.put_bytes, "written_bytes": one.written_bytes,
        "write_s": one.write_ns / 1e9, "close_s": one.close_ns / 1e9, "server_life_s": one.alive_ns / 1e9,
        "busy_s": {str(rank): ns / 1e9 for rank, ns in one.busy_ns.items()},
        "system": {
            "calls": one.system_calls, "writes": one.system_writes, "written_bytes": one.system_written_bytes,
            "seconds": one.system_ns / 1e9,
        },
        "streams": [
            {
                "stream": of.stream, "frames": of.frames, "refused": of.refused, "puts": of.puts, "put_bytes": of.put_bytes,
                "put_s": of.put_ns / 1e9, "wait_s": of.wait_ns / 1e9, "write_s": of.write_ns / 1e9,
                "written_bytes": of.written_bytes, "fetch_s": of.fetch_ns / 1e9, "transpose_s": of.transpose_ns / 1e9,
                "encode_s": of.encode_ns / 1e9,
            }
            for of in one.streams
        ],
    }  # fmt: skip


OUTPUT = TableKind(
    name="output",
    heading="Output through libweir",
    short_heading="Output",
    shows="what output through libweir cost the ranks of the model",
    tables=lambda report, _: output_tables(report),
    why_empty="nothing was written through libweir",
    json=lambda report, _: {"output": [output_json(one) for one in all_outputs(report)]},
    has_rows=lambda report: bool(all_outputs(report)),
)
