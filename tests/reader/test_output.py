# SPDX-License-Identifier: Apache-2.0
"""Figures of output, from traces written here record by record: whose time counts, what is in no
total, what is advised."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from weir.report import build, render_text, report_json
from weir.report.frame.kind import ALL, Options
from weir.report.notes import notes
from weir.report.output.compute import all_outputs
from weir.trace._synthetic import TraceWriter, event
from weir.trace.ops import ERROR, NESTED, OF_OUTPUT

MS = 10**6
FRAME = 48_000
COMPUTE, SERVERS = (0, 1), (2, 3)


def write_run(directory, *, wait_ms=0, final_ms=1, servers=True, killed=False, refused=0):
    """Four frames of 'h', one of 'r': each compute rank puts 10 ms a frame (rank 1: 12), a server
    writes 20 ms; 1 s in all."""
    (directory / "s").mkdir(parents=True)
    with TraceWriter(directory / "s" / "n.weir") as writer:
        t0 = writer.created_ticks

        def output(process, op, at, ms, name="", **fields):
            process.events(event("output_" + op, t0 + at * MS, round(ms * MS),
                file=process.name("output:" + name), **fields))

        processes = {rank: writer.process(100 + rank, rank, 4)
            for rank in range(4 if servers else 2)}
        for rank in COMPUTE:
            process = processes[rank]
            process.events(event("stat", t0, 1))
            output(process, "define", 1, 5, ":servers" if rank == 0 else "")
            for frame in range(5):
                stream = "r" if frame == 4 else "h"
                output(process, "wait", 10 + 100 * frame, wait_ms / 5, stream)
                output(process, "put", 50 + 100 * frame, 10 + 2 * rank, stream + ":ta",
                    size=FRAME // 2)
                output(process, "agree", 64 + 100 * frame, 1, flags=NESTED)
                if rank == 0 and not servers:
                    output(process, "frame", 63 + 100 * frame, 1, stream + ":/scratch/h.nc",
                        flags=NESTED)
                output(process, "end_step", 63 + 100 * frame, 2)
            output(process, "finalize", 900, final_ms)
            process.events(event("close", t0 + 1000 * MS - 1, 1))
        for group, rank in enumerate(SERVERS if servers else ()):
            process = processes[rank]
            file = process.name("/scratch/.h.nc.weir-part")
            for frame in range(group, 5, 2):
                stream = "r" if frame == 4 else "h"
                output(process, "transpose", 100 * frame, 4, stream, size=FRAME, flags=NESTED)
                output(process, "write", 100 * frame + 4, 15, stream, size=FRAME, flags=NESTED)
                process.events(event("pwrite", t0 + (100 * frame + 5) * MS, 10 * MS, file=file,
                    size=FRAME, offset=0, flags=OF_OUTPUT))
                failed = frame < refused
                output(process, "frame", 100 * frame, 20, stream + ":/scratch/h.nc",
                    flags=NESTED | (ERROR if failed else 0), error=9 * failed)
            if not killed:
                output(process, "serve", 0, 990, f":group {group}")
    return directory


def numbers(ranks) -> tuple[int, ...]:
    return tuple(one.rank for one in ranks)


@pytest.fixture
def run(tmp_path):
    return lambda **options: build(write_run(tmp_path / "run", **options))


def test_compute_ranks_count_by_the_one_that_lost_most_and_writers_by_the_busiest(run):
    (one,) = all_outputs(run(wait_ms=50))
    assert [numbers(ranks) for ranks in (one.model_ranks, one.servers, one.writers)] == [
        COMPUTE, SERVERS, SERVERS]
    assert (one.groups, one.how) == (2, "servers")
    assert (
        one.put_ns == 5 * 12 * MS
        and one.wait_ns == 50 * MS
        and one.end_step_ns == 5 * 2 * MS
        and one.agree_ns == 5 * MS
    )
    assert (
        one.seen_ns == one.put_ns + one.wait_ns + one.end_step_ns
        and one.mean_seen_ns == one.seen_ns - 5 * MS
    )
    assert one.output_ns == one.seen_ns + 1 * MS and one.share(one.output_ns) == pytest.approx(
        0.121, rel=1e-3)
    assert one.busy_ns == {"2": 60 * MS,
        "3": 40 * MS} and one.write_ns == 60 * MS and one.alive_ns == 990 * MS
    assert one.put_bytes == one.written_bytes == 5 * FRAME and one.frames == 5
    h, r = one.streams
    assert (h.stream, h.frames, h.puts, h.put_ns, h.write_ns) == ("h", 4, 8, 48 * MS, 40 * MS)
    assert (r.stream, r.frames, r.puts, r.written_bytes, r.transpose_ns) == ("r", 1, 2, FRAME,
        4 * MS)


def test_servers_that_were_killed_are_servers(run):
    (one,) = all_outputs(run(killed=True))
    assert [numbers(ranks) for ranks in (one.model_ranks, one.servers)] == [COMPUTE, SERVERS]
    assert (one.frames, one.alive_ns, one.groups) == (5, 0, 1)


def test_what_libweir_does_is_in_no_total_and_its_calls_count_once(run):
    report = run()
    (one,) = all_outputs(report)
    assert (
        report.all.calls == 2 * 2 + 5
        and report.all.bytes == 5 * FRAME
        and report.all.ns == 5 * 10 * MS + 4
    )
    assert (one.system_writes, one.system_written_bytes, one.system_calls, one.system_ns) == (5,
        5 * FRAME, 5, 50 * MS)
    assert report.active_ns == 50 * MS + 2


def test_json_has_the_same_figures_and_one_rank_its_own(run, tmp_path):
    report = run()
    made = report_json(report)["output"][0]
    assert made["put_bytes"] == 5 * FRAME and made["effective_s"] == pytest.approx(
        0.07) and made["busy_s"] == {"2": 0.06, "3": 0.04}
    alone = all_outputs(build(tmp_path / "run", rank=2))[0]
    assert not [sentence for sentence in notes(build(tmp_path / "run", rank=0))
        if "output" in sentence]
    assert alone.model_ranks == () and alone.seen_ns == 0 and alone.busy_ns == {"2": 60 * MS}


def test_waiting_for_a_free_group_is_reported_and_what_would_help(run):
    report = run(wait_ms=200, final_ms=90)
    said = [sentence for sentence in notes(report) if "output" in sentence or "group" in sentence
        or "final write" in sentence]
    assert said == [
        "step s: compute ranks wait 0.2 s (20% of the run) for a free group; the busiest of 2 is "
        "busy 6 % of its life: "
        "frames come in bursts: one more group, or streams that are due at other steps, would "
        "avoid these waits",
        "step s: the final write, 0.1 s (9% of the run), overlaps with no computing: mode "
        "servers+parallel would shorten it",
    ]


def test_ranks_that_write_themselves_are_advised_to_use_servers(run):
    report = run(servers=False)
    assert numbers(all_outputs(report)[0].writers) == (0,)
    assert any("because they write themselves: with mode servers they would only" in sentence
        for sentence in notes(report))


def test_nothing_is_advised_where_nothing_is_lost(run):
    assert not [sentence for sentence in notes(run()) if "group" in sentence
        or "final write" in sentence]


def test_frames_that_were_refused_are_counted_apart(run):
    report = run(refused=2)
    (one,) = all_outputs(report)
    assert (one.frames, one.streams[0].refused) == (3, 2)
    assert ("step s: 2 frames were not written (streams: h): the library returned the reason to "
        "the program") in notes(report)


def test_the_tables_are_there_only_with_output(run, tmp_path):
    text = StringIO()
    render_text(run(wait_ms=50), text, Options((ALL,)))
    assert "Output of s: ranks 0-1 compute, ranks 2-3 serve in 2 groups" in text.getvalue()
    assert "  wait for a free group  0.050    5%" in text.getvalue()
    assert "5, of which 5 writes of 0.240 MB" in " ".join(text.getvalue().split())
    (tmp_path / "other" / "s").mkdir(parents=True)
    with TraceWriter(tmp_path / "other" / "s" / "n.weir") as writer:
        writer.process(1, 0, 1).events(event("stat", writer.created_ticks, 10))
    other, plain = build(tmp_path / "other"), StringIO()
    render_text(other, plain, Options((ALL,)))
    assert "Output of" not in plain.getvalue() and json.loads(json
        .dumps(report_json(other)))["output"] == []
