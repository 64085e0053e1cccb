# SPDX-License-Identifier: Apache-2.0
"""Traces that are cut, damaged or made up: reading never crashes or hangs, says place and reason,
and gives what is whole.

Each case reads in this process: a crash of the library would end the test run.
"""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.report import build, render_text, report_json, trace_lines
from weir.report.files.compute import files_of
from weir.report.frame.kind import ALL, Options
from weir.report.processes.compute import is_complete
from weir.trace import DamagedFile, TraceFile
from weir.trace._synthetic import TraceWriter, counter, event, records, sync
from weir.trace.ops import ops

NATIVE = Path(__file__).parents[2] / "native"
FEW, MANY = (settings(max_examples=number) for number in (8, 80))


def write_small(path: Path) -> None:
    """Something of everything: two processes, names, events of all layers, markers, counters."""
    with TraceWriter(path) as writer:
        t = writer.created_ticks
        for rank in range(2):
            process = writer.process(100 + rank, rank, 2)
            a, b, c = (process.name(n) for n in ("/scratch/an/a", "pipe:[3]", "/scratch/an/f.61"))
            process.events([sync(t + 10 * i, i, 2) for i in range(3)])
            process.events([
                event("open", t + 100, 10, file=a), event("read", t + 200, 50, file=a, size=10),
                event("write", t + 300, 5, file=b, size=8),
                event("write", t + 400, 20, file=c, size=100, below=True, nested=True),
                event("fortran_write", t + 390, 40, file=c, size=90, offset=61),
                event("pread", t + 500, 2**34, file=a, size=2**33, error=5, flags=1),
                records(0, 0, 0),
            ])  # fmt: skip
            process.counters(counter("write", 3, 5000, 10, t, t + 60, file=a),
                counter("stat", 1, 0, 10, t, t + 60))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "n.weir"
    write_small(path)
    return path.read_bytes()


def read_everything(raw: bytes):
    """The report of a run whose one trace is these bytes, after all of its tables, lines and JSON
    were made."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "main" / "n.weir"
        path.parent.mkdir(parents=True)
        path.write_bytes(raw)
        report = build(Path(directory) / "run")
        report_json(report)
        render_text(report, io.StringIO())
        render_text(report, io.StringIO(), Options((ALL,)))
        assert sum(1 for _ in trace_lines(report)) >= 0
        return report


def test_the_whole_trace_has_no_problem(whole):
    report = read_everything(whole)
    assert report.problems == []
    assert report.all.calls == 2 * (1 + 1 + 1 + 1 + 3 + 1)


def test_a_record_that_is_missing_before_others_is_noticed(whole):
    written = events_places(whole)[1]
    raw = bytearray(whole)
    raw[written : written + 32] = bytes(32)
    report = read_everything(bytes(raw))
    assert [(one.offset, "missing before others" in one.reason) for one in report.problems] == [
        (written, True)]
    assert not is_complete(report) and report.all.calls == 2 * (1 + 1 + 1 + 1 + 3 + 1) - 1


def events_places(raw: bytes) -> list[int]:
    """Where the records lie in the first chunk of calls."""
    open_code = 1
    for chunk in range(4096, len(raw), 4096):
        magic, kind = struct.unpack_from("<II", raw, chunk)
        if magic == 0x4B484357 and kind == 3 and raw[chunk + 64 + 28] == open_code:
            return [chunk + 64 + 32 * i for i in range(5)]
    raise AssertionError("no chunk of calls")


@pytest.mark.parametrize(("was_killed", "is_said"), [(True, False), (False, True)])
def test_space_taken_by_a_process_that_was_killed_before_the_file_grew_is_no_damage(whole,
        was_killed, is_said):
    raw = bytearray(whole)
    struct.pack_into("<Q", raw, 32, len(raw) + 65536)
    if was_killed:
        struct.pack_into("<I", raw, 4096 + 92, 0)
    reasons = [problem.reason for problem in read_everything(bytes(raw)).problems]
    assert bool(reasons) == is_said and all("the file ends before" in reason for reason in reasons)


def calls_in(path: Path) -> int:
    """Calls of all records that can be read; what cannot must have been said."""
    try:
        file = TraceFile(path).scan()
    except DamagedFile as error:
        assert path.stat().st_size < 4096 and error.offset == path.stat().st_size
        return 0
    problems = file.problems
    assert problems and problems[0].reason and problems[0].offset <= file.header.end_bytes
    return int(file.array("rows")["calls"].sum())


def cut(path: Path, lengths) -> list[int]:
    """The calls that are left at each of these falling lengths."""
    calls = []
    for length in lengths:
        with open(path, "r+b") as stream:
            stream.truncate(length)
        calls.append(calls_in(path))
    return calls


def test_truncation_around_every_structure(whole, tmp_path):
    """Every length near a boundary of a page or header, and a stride over the rest; a longer file
    never has less."""
    path = tmp_path / "n.weir"
    path.write_bytes(whole)
    near = {page + k for page in range(0, len(whole), 4096) for k in (*range(-33, 0), *range(140))}
    lengths = sorted((n for n in near | set(range(0, len(whole), 61)) if 0 <= n < len(whole)),
        reverse=True)
    calls = cut(path, lengths)
    assert calls == sorted(calls, reverse=True)
    assert calls[0] == 20 and calls[-1] == 0


@pytest.mark.parametrize("length", [0, 100, 4096, 8192, 8200, 12288 + 64 + 70, 20000])
def test_a_report_of_a_cut_trace_is_incomplete(whole, length):
    report = read_everything(whole[:length])
    assert not is_complete(report) and report.problems[0].offset is not None


@pytest.mark.campaign
def test_truncation_at_every_single_byte(whole, tmp_path):
    path = tmp_path / "n.weir"
    path.write_bytes(whole)
    calls = cut(path, range(len(whole) - 1, -1, -1))
    assert calls == sorted(calls, reverse=True)


def flipped_bits_and_extreme_words(data):
    raw = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.one_of(st.integers(0, 127), st.integers(0, len(raw) // 4096 - 1)
            .flatmap(
            lambda page: st.integers(page * 4096, page * 4096 + 200)),
            st.integers(0, len(raw) - 9)))  # fmt: skip
        if data.draw(st.booleans()):
            raw[place] ^= 1 << data.draw(st.integers(0, 7))
        else:
            word = data.draw(st.sampled_from([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**63,
                2**64 - 1]))
            raw[place : place + 8] = struct.pack("<Q", word)
    read_everything(bytes(raw))


def bytes_that_are_no_trace(raw, with_header):
    read_everything(WHOLE[:4096] + raw if with_header else raw)


def chunks_that_are_made_up(chunks, version):
    """Well-formed heads over wild contents reach deepest."""
    made = io.BytesIO()
    made.write(WHOLE[: 2 * 4096])
    for kind, entry, used, body in chunks:
        made.write(struct.pack("<IIQIIIIQQQQ", 0x4B484357, kind, 4096, 1, 1, entry, 0, used, 0, 1,
            0) + body.ljust(4032, body[-1:] or b"\0"))
    raw = bytearray(made.getvalue())
    struct.pack_into("<I", raw, 8, version)
    struct.pack_into("<Q", raw, 32, len(raw))
    read_everything(bytes(raw))


CHUNKS = st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 32, 64, 640]),
    st.integers(0, 2**64 - 1), st.binary(max_size=400)), max_size=6)  # fmt: skip
MADE_UP = pytest.mark.parametrize(("check", "of"), [
    (flipped_bits_and_extreme_words, (st.data(),)),
    (bytes_that_are_no_trace, (st.binary(max_size=20000), st.booleans())),
    (chunks_that_are_made_up, (CHUNKS, st.sampled_from([1, 2]))),
], ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip


@MADE_UP
def test_everything_of_what_is_made_up_is_read(check, of):
    FEW(given(*of)(check))()


@pytest.mark.campaign
@MADE_UP
def test_everything_of_much_that_is_made_up_is_read(check, of):
    MANY(given(*of)(check))()


def damaged(raw: bytes, place: int, layout: str, *values) -> list[str]:
    changed = bytearray(raw)
    struct.pack_into(layout, changed, place, *values)
    return [str(problem).split(": ", 1)[1] for problem in read_everything(bytes(changed)).problems]


CHUNK = 8192  # the first events chunk: behind the header page and the process chunk
COUNTED = 16384 + 64  # a histogram, its counter; a histogram, its counter
UNKNOWN_OPERATION = next(number for number in range(1, 256) if number not in ops())


@pytest.mark.parametrize(
    ("place", "layout", "value", "said"),
    [
        (0, "<8s", b"DARSHAN\0", "not a trace of weir: the magic WEIRTRC1 is missing at byte 0"),
        (8, "<I", 4, "trace format 4, this reader knows 1, 2 and 3 at byte 8"),
        (16, "<I", 48, "record size is not 32 at byte 16"),
        (32, "<Q", 1 << 40,
            "the file ends before the space that its header says was taken at byte"),
        (32, "<Q", 8192, "chunk beyond the end that the header gives at byte 8192"),
        (CHUNK, "<I", 7, "neither a chunk nor unwritten space at byte 8192"),
        (CHUNK + 4, "<I", 9, "chunk of a kind that this version does not know at byte 8192"),
        (CHUNK + 8, "<Q", 5000, "chunk whose size is impossible at byte 8192"),
        (CHUNK + 8, "<Q", 1 << 40, "chunk whose size is impossible at byte 8192"),
        (CHUNK + 16, "<I", 0, "chunk that refers to a place where no process can be at byte 8192"),
        (CHUNK + 16, "<I", 3, "process chunk missing or damaged"),
        (CHUNK + 24, "<I", 31, "chunk whose entry size does not fit its kind at byte 8192"),
        (CHUNK + 32, "<Q", 1 << 62,
            "chunk that claims more entries than it has room for at byte 8192"),
        (CHUNK + 4096 + 64 + 28, "<B", UNKNOWN_OPERATION,
            "record of an operation that this version does not know at byte 12352"),
        (CHUNK + 4096 + 64 + 29, "<B", 12, "record of a layer that does not exist at byte 12352"),
        (CHUNK + 4096 + 64, "<Q", 2**63, "record whose time is impossible at byte 12352"),
        (CHUNK + 64, "<Q", 2**63, "record whose time is impossible at byte 8256"),
        (COUNTED + 640 + 4, "<B", 0xFA,
            "counter of an operation or layer that does not exist at byte 17088"),
        (COUNTED + 640 + 40, "<Q", 2**64 - 1,
            "counter whose figures contradict each other at byte 17088"),
        (COUNTED + 4, "<B", 0xFA,
            "counter of an operation or layer that does not exist at byte 16448"),
        (COUNTED, "<I", 2, "counter of an operation or layer that does not exist at byte 16448"),
        (COUNTED + 22 * 64 - 64 + 7, "<B", 1,
            "histogram that its chunk has no room for at byte 17792"),
    ],
)  # fmt: skip
def test_place_and_reason_are_said(whole, place, layout, value, said):
    assert said in "\n".join(damaged(whole, place, layout, value))


def test_the_rest_of_a_damaged_file_is_read(whole):
    changed = bytearray(whole)
    struct.pack_into("<I", changed, CHUNK + 4096, 7)  # the calls of the first process
    report = read_everything(bytes(changed))
    assert report.all.calls == 16 - 4
    assert report.problems and not is_complete(report)


@pytest.mark.parametrize("tail", [64, 127, 4000])
def test_a_file_that_ends_within_a_page_behind_its_header_s_end_is_read_to_its_end(whole, tmp_path,
        tail):
    raw = bytearray(whole[: len(whole) // 4096 * 4096] + bytes(4096) + b"x" + bytes(tail - 1))
    struct.pack_into("<Q", raw, 32, 8192)
    assert not is_complete(read_everything(bytes(raw)))


def test_space_taken_and_never_written_is_no_problem(whole):
    raw = bytearray(whole[:12288] + bytes(4 * 4096) + whole[12288:])
    struct.pack_into("<Q", raw, 32, len(raw))
    for at in range(0, len(raw), 4096):  # the second process moved
        if raw[at : at + 4] == b"WCHK" and struct.unpack_from("<I", raw, at + 16)[0] > 1:
            struct.pack_into("<I", raw, at + 16, struct.unpack_from("<I", raw, at + 16)[0] + 4)
    report = read_everything(bytes(raw))
    assert (report.problems, report.all.calls) == ([], 16)


def test_a_lost_name_keeps_its_bytes(tmp_path):
    (tmp_path / "run" / "main").mkdir(parents=True)
    with TraceWriter(tmp_path / "run" / "main" / "n.weir") as writer:
        process = writer.process(7)
        process.events([event("read", writer.created_ticks, 5, file=3, size=10),
            event("read", writer.created_ticks + 9, 5, file=4, size=1)])
    report = build(tmp_path / "run")
    assert {f.file: f.bytes_read for f in files_of(report)} == {
        "(lost name 3 of process 7 on node0)": 10,
        "(lost name 4 of process 7 on node0)": 1,
    }


def test_one_damaged_node_leaves_the_other(tmp_path, whole):
    step = tmp_path / "run" / "main"
    step.mkdir(parents=True)
    (step / "a.weir").write_bytes(whole)
    (step / "b.weir").write_bytes(b"nonsense")
    (step / "c.weir").write_bytes(b"")
    (step / "job.json").write_text("{not json")
    report = build(tmp_path / "run")
    assert report.all.calls == 16
    assert sorted((Path(p.path).name, p.offset) for p in report.problems) == [("b.weir", 8),
        ("c.weir", 0), ("job.json", None)]


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_the_decoder_under_address_sanitizer(tmp_path, whole, native_build):
    """native/reader/fuzz.cc, made with the sanitizers of gcc, on some thousand damaged copies.
    Compiling takes minutes; the tests above read such copies in this process."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    of_decoder = (path for path in sorted((NATIVE / "reader").glob("*.cc")) if path.stem != "rules")
    sources = [path for path in of_decoder if not path.stem.endswith("_test")]
    program, seed = tmp_path / "fuzz", random.SystemRandom().randrange(2**32)
    includes = [f"-I{NATIVE}", f"-I{native_build / 'declared'}"]
    flags = ["-std=c++20", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
        *includes, "-pthread"]
    subprocess.run([compiler, *flags, *sources, "-o", program], check=True, timeout=600)
    (tmp_path / "whole.weir").write_bytes(whole)
    print("seed", seed)
    done = subprocess.run([program, "--mutate", "1000", str(seed), tmp_path / "whole.weir"],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def _whole() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        write_small(Path(directory) / "n.weir")
        return (Path(directory) / "n.weir").read_bytes()


WHOLE = _whole()
