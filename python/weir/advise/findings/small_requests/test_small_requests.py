# SPDX-License-Identifier: Apache-2.0
"""Finding small-requests: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import sys

import pytest
from advised import KIB, MS, US, advised, names, stream, the
from wait_trace import WaitTrace

from weir.advise.frame.facts import Facts
from weir.advise.frame.grouping import groups
from weir.report import build


def test_small_requests_have_bufa_and_a_saving_near_their_time(tmp_path):
    report = advised(tmp_path, stream(2000, 8 * KIB, 300))
    one = the(report, "small-requests")
    assert one.rule.stack == "bufa:1MiB:4" and one.rule.path == "/scratch/an/out.*"
    assert one.what == "out.<N>" and len(one.paths) == 2
    assert "4,000 writes of 8.19 kB" in one.sentence.replace("\u00a0", " ")
    # 2 x 0.6 s of I/O; both ranks at the same time, so 0.6 s of the run
    assert 0.55 < one.saving.io.low < one.saving.io.high < 1.21
    assert 0.25 < one.saving.critical.low < one.saving.critical.high < 0.61
    assert 3900 < one.saving.requests <= 4000


@pytest.mark.parametrize(("count", "size", "us"), [
    (90, 8 * KIB, 300),  # too few
    (2000, 512 * KIB, 1400),  # large enough
    (5000, 8 * KIB, 2),  # from the page cache
    (510, 8 * KIB, 21),  # less than 2 % of the run
])
def test_requests_that_are_not_small_many_and_slow_are_left(tmp_path, count, size, us):
    assert "small-requests" not in names(advised(tmp_path, stream(count, size, us)))


@pytest.mark.parametrize(("op", "times", "is_found"), [
    ("dup2", 1, False), ("mmap", 1, False), ("freopen", 1, False), ("fcntl", 3, True),
    ("fcntl", 4, False)])
def test_a_file_that_layers_bypass_has_no_rule(tmp_path, op, times, is_found):
    """By a second descriptor, a map, or more calls of fcntl than queries for flags: locks."""

    def program(trace: WaitTrace) -> None:
        for _ in range(times):
            trace.io(0, US, "/scratch/an/out.0", op, 0)
        stream(2000, 8 * KIB, 300, ranks=1)(trace)

    assert ("small-requests" in names(advised(tmp_path, program))) == is_found


def pieces(trace: WaitTrace, rank: int, path: str, at: int) -> None:
    for number in range(1500):
        trace.io(rank, 300 * US, path, "pwrite", 8 * KIB, at + number * 8 * KIB)


@pytest.mark.parametrize(("case", "stack"), [
    ("two ranks", "global:1MiB:4"), ("twice in a process", "global:1MiB:4"),
    ("one after the other", "bufa:1MiB:4"), ("two nodes", "bufa:1MiB:4"),
    ("never written", "bufa:1MiB:4")])
def test_a_written_file_that_is_open_twice_at_a_time_has_a_layer_that_openings_share(tmp_path, case,
        stack):
    """Layers for one process bypass such a file (bypassed: conflict)."""
    path, size = "/scratch/an/all", 1500 * 8 * KIB

    def program(trace: WaitTrace) -> None:
        ranks = [0, 0] if case in ("twice in a process", "never written") else [0, 1]
        for rank in ranks:
            trace.io(rank, 10 * US, path, "open")
            if case == "one after the other":
                pieces(trace, rank, path, rank * size)
                trace.io(rank, 10 * US, path, "close")
                trace.barrier()
        if case == "never written":
            for number in range(3000):
                trace.io(0, 300 * US, path, "pread", 8 * KIB, number * 8 * KIB)
        elif case != "one after the other":
            for rank in set(ranks):
                pieces(trace, rank, path, rank * size)
        if case != "one after the other":
            for rank in ranks:
                trace.io(rank, 10 * US, path, "close")

    one = the(advised(tmp_path, program, nodes=2 if case == "two nodes" else 1), "small-requests")
    assert one.rule.stack == stack
    assert ("open more than once at a time" in one.sentence) == stack.startswith("global")
    assert one.saving.critical.low > 0.1


@pytest.mark.parametrize("is_local", [False, True])
def test_files_on_a_local_disk_are_left_to_the_kernel(tmp_path, monkeypatch, is_local):
    monkeypatch.setattr(Facts, "is_local", lambda self, path: is_local)
    found = names(advised(tmp_path, stream(2000, 8 * KIB, 300)))
    assert ("small-requests" in found) == (not is_local)


def test_a_write_for_each_fsync_may_remain(tmp_path):
    def program(trace: WaitTrace) -> None:
        stream(2000, 8 * KIB, 300, ranks=1)(trace)
        for _ in range(syncs):
            trace.io(0, 100 * US, "/scratch/an/out.0", "fsync", 0)

    ranges = []
    for syncs in (0, 500):
        one = the(advised(tmp_path / str(syncs), program), "small-requests")
        ranges.append(one.saving.io)
    few, many = ranges
    assert many.high == pytest.approx(few.high + 500 * 100e-6), "all I/O of the file"
    assert few.low - many.low == pytest.approx(0.85 * 500 * 300e-6, rel=0.05)


def test_one_call_that_took_long_may_be_chance(tmp_path):
    def program(trace: WaitTrace) -> None:
        stream(2000, 8 * KIB, 300, ranks=1)(trace)
        trace.io(0, 600 * MS, "/scratch/an/out.0", "pwrite", 8 * KIB, 2000 * 8 * KIB)

    one = the(advised(tmp_path, program), "small-requests")
    assert 0.25 < one.saving.io.low < 0.45 and one.saving.io.high > 1.1


@pytest.mark.parametrize(("op", "seek_is_saved"), [("fwrite", True), ("fread", False)])
def test_seeks_of_a_stream_that_is_written_write_its_buffer(tmp_path, op, seek_is_saved):
    """As zip goes back to the header of each member: 600 x 1 ms, and as long in the seeks."""

    def program(trace: WaitTrace) -> None:
        trace.io(0, MS, "/scratch/an/all.zip", "fopen", 0)
        for at in range(600):
            trace.io(0, MS, "/scratch/an/all.zip", op, 4096, at * 4096)
            trace.io(0, MS, "/scratch/an/all.zip", "fseek", 0)
        trace.io(0, MS, "/scratch/an/all.zip", "fclose", 0)

    saving = sum((one.saving.io.high for one in advised(tmp_path, program).advices
        if one.finding == "small-requests"), 0.0)
    assert (saving > 1) == seek_is_saved and saving < 1.3


def test_output_that_is_renamed_has_a_rule_for_the_name_that_is_opened(tmp_path, weir):
    """As ncks and rsync do, with the number of a process in it."""
    program = ("import os; f = os.open('out.pid98765.tmp', os.O_WRONLY | os.O_CREAT)\n"
        "for _ in range(3000): os.write(f, bytes(100))\nos.rename('out.pid98765.tmp', 'out')")
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    (group,) = groups(facts, [one for one in facts.bare if one.write.bytes])
    assert (group.paths, group.pattern) == ((str(tmp_path / "out"),),
        str(tmp_path / "out.pid*.tmp"))


@pytest.mark.parametrize(("first", "last", "rule"), [
    ("__db.out.db", "out.db", "*out.db"), ("out.db.new", "out.db", "out.db*")])
def test_a_file_that_is_renamed_and_opened_again_has_a_rule_for_both_names(tmp_path, weir, first,
        last, rule):
    """As Berkeley DB does."""
    program = (f"import os; f = os.open({first!r}, os.O_WRONLY | os.O_CREAT); os.write(f, b'x')\n"
        f"os.close(f); os.rename({first!r}, {last!r}); f = os.open({last!r}, os.O_WRONLY)\n"
        "for _ in range(3000): os.write(f, bytes(100))")
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    (group,) = groups(facts, [one for one in facts.bare if one.write.bytes])
    assert (group.paths, group.pattern) == ((str(tmp_path / last),), str(tmp_path / rule))


def test_a_rule_for_a_renamed_file_matches_no_file_of_another_use(tmp_path, weir):
    """As zip writes an archive: no pattern is for both of its names alone."""
    program = ("import os; os.mkdir('tree')\nfor n in range(20):\n"
        "    with open(f'tree/{n}', 'w') as f: f.write('x')\n"
        "f = os.open('zifxT9on', os.O_WRONLY | os.O_CREAT)\n"
        "for _ in range(3000): os.write(f, bytes(100))\n"
        "os.close(f); os.rename('zifxT9on', 'all.arc'); os.close(os.open('all.arc', os.O_RDWR))")
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    (group,) = groups(facts, [one for one in facts.bare if one.write.calls > 1])
    assert (group.paths, group.pattern, group.others) == ((str(tmp_path / "all.arc"),),
        str(tmp_path / "zi*"), ())


@pytest.mark.parametrize(("name", "rule"), [
    ("sortaB3xYz", "sort*"), ("tmpq2x9_abc", "tmp*"), (".out.nc.Zx81qp", ".out.nc.*"),
    ("part.0123abcd-0123-4567-89ab-0123456789ab.partial", "part.*.partial"),
    ("scratch.netcdf", "scratch.netcdf")])
def test_names_of_files_that_a_run_removes_may_differ_in_the_next(tmp_path, weir, name, rule):
    program = (f"import os; f = os.open({name!r}, os.O_WRONLY | os.O_CREAT)\n"
        f"os.write(f, bytes(100))\nos.unlink({name!r})")
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    (group,) = groups(facts, [one for one in facts.bare if one.write.bytes])
    assert group.pattern == str(tmp_path / rule)


@pytest.mark.parametrize(("us", "is_found"), [(600, True), (0, False)])
def test_calls_on_streams_are_counted_in_pages(tmp_path, us, is_found):
    """32 calls of 128 bytes fill a page; the last of them writes it, or copies it to the kernel."""

    def program(trace: WaitTrace) -> None:
        for _ in range(600):
            for _ in range(31):
                trace.io(0, 100, "/scratch/an/out", "fwrite", 128)
            trace.io(0, us * US + 3 * US, "/scratch/an/out", "fwrite", 128)

    report = advised(tmp_path, program, ranks=1, compute_s=0)
    assert ("small-requests" in names(report)) == is_found
    if is_found:
        one = the(report, "small-requests")
        assert 590 <= one.saving.requests <= 600
        assert 0.2 < one.saving.io.low < 0.3 < one.saving.io.high < 0.4


@pytest.mark.parametrize("reads", [1, 2])
def test_a_buffer_merges_nothing_where_each_open_has_one_request(tmp_path, reads):
    """As cp -r and tar do: a read, and one that finds the end of the file."""

    def program(trace: WaitTrace) -> None:
        for number in range(1000):
            path = f"/scratch/an/in/f{number}"
            trace.io(0, 10 * US, path, "open")
            for at in range(reads):
                trace.io(0, 300 * US, path, "read", 444 * (at == 0))
            trace.io(0, 300 * US, f"/scratch/an/out/f{number}", "creat")
            trace.io(0, 300 * US, f"/scratch/an/out/f{number}", "write", 444)

    assert "small-requests" not in names(advised(tmp_path, program))


@pytest.mark.parametrize(("writes", "is_found"), [(12, True), (8, False)])
def test_openings_with_few_writes_have_no_rule(tmp_path, writes, is_found):
    """As pyarrow writes many small Parquet files: to begin to write behind takes as long."""

    def program(trace: WaitTrace) -> None:
        for number in range(200):
            path = f"/scratch/an/out/f{number}"
            trace.io(0, 300 * US, path, "open", 0)
            for at in range(writes):
                trace.io(0, 600 * US, path, "write", 300, at * 300)
            trace.io(0, 300 * US, path, "close", 0)

    assert ("small-requests" in names(advised(tmp_path, program))) == is_found


def test_reads_at_random_places_have_no_rule_with_read_ahead(tmp_path):
    def program(trace: WaitTrace) -> None:
        for number in range(2000):
            trace.io(0, 300 * US, "/scratch/an/in", "pread", 8 * KIB,
                (number * 7919 % 2003) * 64 * KIB)

    assert "small-requests" not in names(advised(tmp_path, program))


@pytest.mark.parametrize(("op", "path", "words"), [
    ("pwrite", "/scratch/an/out.{rank}", "a buffer of 1 MiB."),
    ("fwrite", "/scratch/an/out.{rank}", "(setvbuf)."),
    ("pwrite", "/scratch/an/{rank}.nc", "(the chunk size of nc__open and nc__create).")])
def test_words_on_buffers_are_of_the_library_that_makes_the_calls(tmp_path, op, path, words):
    report = advised(tmp_path, stream(2000, 8 * KIB, 300, path, op))
    one = the(report, "small-requests")
    assert one.change.endswith(words)


def test_lines_that_a_program_flushes_one_by_one_are_small_requests(tmp_path):
    """The time is in the flushes, however little the writes into the stream's buffer take."""
    def program(trace: WaitTrace) -> None:
        for _ in range(1000):
            trace.io(0, 300, "/scratch/an/model.log", "fwrite", 8)
            trace.io(0, MS, "/scratch/an/model.log", "fflush")

    one = the(advised(tmp_path, program), "small-requests")
    assert "300 us, and 1,000 flushes 1 s" in one.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert one.saving.requests == 999 and one.saving.io.low > 0.75


def test_a_record_that_overwrites_the_end_mark_of_the_one_before_is_in_order(tmp_path):
    """As GDAL writes a dBASE table, which it also looks into once: the seek back by one byte writes
    what the stream holds, and reads a page."""

    def program(trace: WaitTrace) -> None:
        trace.io(0, MS, "/scratch/an/out.dbf", "fopen", 0)
        for at in range(0, 600 * 210, 210):
            trace.io(0, MS, "/scratch/an/out.dbf", "fseek", 0, at)
            trace.io(0, 300, "/scratch/an/out.dbf", "fwrite", 209, at)
            trace.io(0, 300, "/scratch/an/out.dbf", "fwrite", 2, at + 209)
        trace.io(0, 300, "/scratch/an/out.dbf", "fread", 32, 0)
        trace.io(0, MS, "/scratch/an/out.dbf", "fclose", 0)

    one = the(advised(tmp_path, program), "small-requests")
    assert one.rule.stack == "bufa:1MiB:4" and 0.45 < one.saving.io.low < one.saving.io.high < 0.61


def test_lines_flushed_one_by_one_to_a_stream_that_is_also_read_have_the_layer_of_openings(
        tmp_path):
    """As MrBayes reads its trees in between, by a second opening."""

    def program(trace: WaitTrace) -> None:
        for _ in range(2):
            trace.io(0, MS, "/scratch/an/run.t", "fopen", 0)
        for _ in range(1000):
            trace.io(0, 300, "/scratch/an/run.t", "fprintf", 80)
            trace.io(0, MS, "/scratch/an/run.t", "fflush")
        for _ in range(2):
            trace.io(0, MS, "/scratch/an/run.t", "fclose", 0)

    one = the(advised(tmp_path, program), "small-requests")
    assert one.rule.stack == "global:1MiB:4" and 0.75 < one.saving.io.low < one.saving.io.high < 1.1


def test_a_few_hundred_calls_of_a_parallel_file_system_are_many(tmp_path):
    """As ASE writes frames, and genisoimage an image."""
    report = advised(tmp_path, stream(260, 8 * KIB, 650, ranks=1))
    assert the(report, "small-requests").saving.critical.low > 0.06
