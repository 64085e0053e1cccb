# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own messages read what weir export writes; slices put together from begins and ends
are the records."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_runs import TWO_STEPS, one_read, write_run

from weir.export._slices import marker_order, nested

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    reason="needs the test extra, on Python 3.11 or newer")
Trace, TracePacket, TrackEvent = proto.Trace, proto.TracePacket, proto.TrackEvent


class Read:
    """A trace as a reader has it: interned names, tracks, and slices put together on a stack for
    each track."""

    def __init__(self, data: bytes):
        self.trace = Trace.FromString(data)
        names: dict[tuple[str, int], str] = {}
        self.processes, self.threads, self.parents, self.uuids = {}, {}, {}, []
        packets = list(self.trace.packet)
        assert packets[0].sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        assert {packet.trusted_packet_sequence_id for packet in packets} == {1}
        events = []
        for packet in packets:
            for kind in ("event_names", "event_categories", "debug_annotation_names"):
                names |= {(kind, one.iid): one.name for one in getattr(packet.interned_data, kind)}
            names |= {("text", one.iid): one.str.decode()
                for one in packet.interned_data.debug_annotation_string_values}
            if packet.HasField("track_descriptor"):
                self.describe(packet.track_descriptor)
            if packet.HasField("track_event"):
                assert packet.track_event.track_uuid in self.uuids, (
                    "a track is described before it is used"
                )
                events.append((packet.timestamp, packet.track_event))
        self.slices = self.put_together(sorted(events, key=lambda one: one[0]), names)

    def describe(self, track) -> None:
        assert track.uuid not in self.uuids
        self.uuids.append(track.uuid)
        if track.HasField("process"):
            assert track.process.pid not in self.processes
            self.processes[track.process.pid] = track.process.process_name
        elif track.HasField("thread"):
            self.threads[track.uuid] = (track.thread.pid, track.thread.tid)
        else:
            self.parents[track.uuid] = track.parent_uuid

    def put_together(self, events, names) -> list[tuple]:
        stacks, found = {}, []
        for at, event in events:
            stack = stacks.setdefault(event.track_uuid, [])
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack.append((at, event))
                continue
            assert event.type == TrackEvent.TYPE_SLICE_END
            begin, opened = stack.pop()
            details = {}
            for one in opened.debug_annotations:
                value = names["text", one.string_value_iid] if one.HasField(
                    "string_value_iid") else one.int_value
                details[names["debug_annotation_names", one.name_iid]] = value
            found.append((
                opened.track_uuid, begin, at - begin, names["event_names", opened.name_iid],
                names["event_categories", opened.category_iids[0]], details,
            ))  # fmt: skip
        assert not any(stacks.values())
        return found

    def process_of(self, uuid: int) -> str:
        return self.processes[self.threads[self.parents.get(uuid, uuid)][0]]


def exported(weir, run, out) -> Read:
    weir("export", run, "--to", "perfetto", "-o", out).ok()
    return Read(out.read_bytes())


def expected(run) -> Counter:
    import weir

    with weir.open(run) as opened:
        return Counter(
            (row["start_ns"], row["duration_ns"], row["op"], row["layer"], row["file"],
                row["offset_bytes"], row["bytes"], row["error"])
            for row in opened.events.to_arrow().to_pylist()
        )


def printed(read: Read) -> Counter:
    return Counter(
        (begin, length, op, layer, d.get("file"), d.get("offset"), d["bytes"], d.get("error"))
        for _, begin, length, op, layer, d in read.slices
    )


def test_slices_are_the_records_and_tracks_their_threads(weir, tmp_path):
    run = write_run(tmp_path / "run", TWO_STEPS)
    read = exported(weir, run, tmp_path / "trace.pftrace")
    assert printed(read) == expected(run)
    assert sorted(read.processes.values()) == sorted([
        "traj0: rank 0, model on n1", "traj0: rank 1, model on n1", "traj0: no rank, mpirun on n2",
        "traj0: no rank, cp on n2",
    ])  # fmt: skip
    assert 10 in read.processes and 11 in read.processes, "processes keep their numbers"
    writes = [(read.process_of(uuid), details["file"])
        for uuid, _, _, op, _, details in read.slices if op == "write"]
    assert Counter(writes) == {("traj0: rank 0, model on n1", file): n
        for file, n in (("/data/a", 3), ("/data/f", 1), ("pipe:[7]", 1))}
    statement = next(one for one in read.slices if one[3] == "fortran_write")
    within = next(one for one in read.slices if one[5].get("file") == "/data/f"
        and one[3] == "write")
    assert statement[0] == within[0] and statement[1] < within[1]


def test_calls_that_cross_get_a_track_of_their_own(weir, tmp_path):
    run = write_run(tmp_path / "run", """
        step s
        node n
        process pid=7
        thread 8
        fread /a at=0 for=1000 bytes=1
        read /a at=100 for=300 bytes=2 below nested
        aio_write /b at=500 for=5000000 bytes=3
        read /a at=600 for=100 bytes=4 below nested
        read /a at=2000 for=0 bytes=5
        read /a at=2000 for=10 bytes=6
        read /a at=2010 for=10 bytes=7
    """)
    read = exported(weir, run, tmp_path / "t")
    assert printed(read) == expected(run)
    (uuid,) = read.threads
    assert read.threads[uuid] == (7, 8)
    assert [(one[0] in read.parents, one[5]["bytes"]) for one in sorted(read.slices,
        key=lambda one: one[5]["bytes"])] == [
        (number == 3, number) for number in range(1, 8)
    ]


def test_a_long_run_in_batches_is_whole(weir, tmp_path):
    run = write_run(tmp_path / "run",
        "step s\nnode n\nprocess pid=7\nread /a at=0 for=5 bytes=300 offset=70000 x=66000")
    read = exported(weir, run, tmp_path / "t")
    assert len(read.slices) == 66_000
    assert printed(read) == expected(run)


@pytest.mark.parametrize("name", ["</script>", "a\nb", "ü" * 2000])
def test_any_name_passes(weir, tmp_path, name):
    one_read(tmp_path / "run", f"/{name}")
    assert printed(exported(weir, tmp_path / "run", tmp_path / "t")) == expected(tmp_path / "run")


spans = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 12)), max_size=25)


@settings(max_examples=300)
@given(spans, st.integers(0, 3))
def test_what_is_left_on_a_track_nests_and_begins_and_ends_in_order(drawn, slack):
    track, start, length = (np.array(column, np.int64)
        for column in (zip(*drawn) if drawn else ((), (), ())))
    slices = nested(track, start, start + length, slack)
    assert (np.where(slices.crosses, start + length, slices.end) <= start + length).all()
    assert (start + length - slices.end <= slack).all()
    kept = ~slices.crosses
    track, start, end = track[kept], start[kept], slices.end[kept]
    for a in range(len(start)):
        for b in range(len(start)):
            if track[a] == track[b] and start[a] < start[b] < end[a]:
                assert end[b] <= end[a], "two intervals cross"
    stacks: dict[int, list[int]] = {}
    last = {}
    for marker in marker_order(track, start, end).tolist():
        at, is_end = marker % len(start), marker >= len(start)
        time = int(end[at] if is_end else start[at])
        assert last.get(int(track[at]), -1) <= time
        last[int(track[at])] = time
        stack = stacks.setdefault(int(track[at]), [])
        if is_end:
            assert stack.pop() == at
        else:
            stack.append(at)
    assert not any(stacks.values())


@settings(max_examples=200)
@given(spans)
def test_what_nests_already_is_left_as_it_is(drawn):
    """Intervals of a stack machine: pushes and pops."""
    track, start, end, open_ones, now = [], [], [], [], 0
    for _, gap, depth in drawn:
        now += gap
        while open_ones and len(open_ones) > depth % 4:
            end[open_ones.pop()] = now
        open_ones.append(len(start))
        track.append(0)
        start.append(now)
        end.append(-1)
    for at in open_ones:
        end[at] = now + 100
    track, start, end = (np.array(column, np.int64) for column in (track, start, end))
    slices = nested(track, start, end, 0)
    assert not slices.crosses.any() and (slices.end == end).all()
