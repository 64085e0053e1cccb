# SPDX-License-Identifier: Apache-2.0
"""Access patterns: the figures of a walk over the records, and Darshan's counters of runs of IOR.

The layouts are those of IOR 4 (options -t transfer, -b block, -s segments) with 4 ranks and one
shared file; the counters are what darshan-parser printed of these runs.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from weir.report import build, report_json
from weir.report.patterns.compute import patterns_by_rank, patterns_of
from weir.trace._synthetic import TraceWriter, event

FILE, RANKS = "/scratch/ior.out", 4
Call = tuple[str, int, int]  # operation, offset, bytes


def write_run(run: Path, calls: dict[int, list[Call]], threads: int = 1, names=(FILE,)) -> Path:
    """Each rank makes its calls one after the other, on as many threads in turn."""
    (run / "main").mkdir(parents=True)
    with TraceWriter(run / "main" / "n.weir") as writer:
        for rank, made in calls.items():
            process = writer.process(100 + rank, rank, len(calls))
            file, at = process.name(names[rank % len(names)]), writer.created_ticks + 1000 * rank
            logs: list[list] = [[] for _ in range(threads)]
            for number, (op, offset, size) in enumerate(made):
                log = logs[number % threads]
                if op == "open":
                    log.append(event("open", at, 5, file=file))
                elif op == "fwrite":
                    log.append(event("fwrite", at, 5, file=file, size=size))
                else:
                    log.append(event(op, at, 10 + rank, file=file, size=size, offset=offset))
                at += 100
            for thread, log in enumerate(logs, 1):
                if log:
                    process.events(log, thread=thread, chunk_bytes=4096)
    return run


def ior(transfer: int, block: int, segments: int, shuffle: bool = False) -> dict[int, list[Call]]:
    found = {}
    for rank in range(RANKS):
        places = [
            (segment * RANKS + rank) * block + at
            for segment in range(segments)
            for at in range(0, block, transfer)
        ]
        if shuffle:
            random.Random(rank).shuffle(places)
        found[rank] = [("open", 0, 0)] + [("pwrite", place, transfer) for place in places]
        found[rank] += [("open", 0, 0)] + [("pread", place, transfer) for place in places]
    return found


@pytest.mark.parametrize(
    ("layout", "counters"),
    [  # CONSEC_WRITES, SEQ_WRITES, STRIDE1_STRIDE, its writes, FILE_NOT_ALIGNED of writes, mixed
        ((64 << 10, 1 << 20, 1), (60, 63, (), 0, 0)),
        ((32 << 10, 32 << 10, 32), (0, 127, ("98304x124",), 0, 4)),
        ((1000, 10000, 20), (720, 799, ("30000x76",), 798, 4)),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_counters_are_darshan_s_of_ior(tmp_path, layout, counters, threads):
    rows = patterns_of(build(write_run(tmp_path / "run", ior(*layout), threads)))
    assert {row["way"] for row in rows} == {"read", "write"} and len(rows) == 2
    calls = RANKS * layout[1] // layout[0] * layout[2]
    for row in rows:
        found = tuple(row[key] for key in ("consecutive", "sequential", "strides", "off_block",
            "interleaved"))
        assert found == counters
        assert row["sizes"] == (f"{layout[0]}x{calls}",) and row["switches"] == RANKS
        assert (row["calls"], row["ranks"], row["first"]) == (calls, RANKS, RANKS)
        assert row["random"] == row["unknown"] == row["again"] == 0
        assert row["adjacent"] + row["strided"] + row["first"] == calls
        assert (row["begin"], row["end"]) == (0, calls * layout[0])
        assert (row["fastest_rank"].rank, row["slowest_rank"].rank) == (0, RANKS - 1)
        assert row["slowest_ns"] == calls // RANKS * (10 + RANKS - 1)


def test_random_access_has_no_strides_by_chance(tmp_path):
    rows = patterns_of(build(write_run(tmp_path / "run", ior(4096, 1 << 20, 1, shuffle=True))))
    for row in rows:
        assert row["random"] > 0.9 * row["calls"] and row["strided"] < 0.02 * row["calls"]


def test_a_backward_sweep_is_no_random_access(tmp_path, weir):
    """A file that is read from its end to its beginning, and one with a stride by chance."""
    sweep = [("pread", 4096 * at, 4096) for at in reversed(range(64))]
    chance = [("pread", 4096 * at, 4096) for at in (5, 90, 7, 300, 1)]
    run = write_run(tmp_path / "run", {0: sweep, 1: chance}, names=("/scratch/a", "/scratch/b"))
    rows = {row["file"]: row for row in patterns_of(build(run))}
    one = rows["/scratch/a"]
    parts = ("first", "adjacent", "strided", "backward", "random", "unknown")
    assert [one[part] for part in parts] == [1, 0, 0, 63, 0, 0]
    assert one["strides"] == ("-8192x63",)
    other = rows["/scratch/b"]
    assert other["backward"] == other["strided"] == 0 and other["random"] == 4
    lines = weir("report", run, "--tables", "patterns").ok().stdout.splitlines()
    strides = [line.split()[line_of(lines, "stride")] for line in lines if "/scratch/" in line]
    assert "-8192" in strides and "-" in strides  # none is shown where no access is strided


def line_of(lines: list[str], heading: str) -> int:
    """The place of a column among the words of a line."""
    return next(line.split().index(heading) for line in lines if heading in line.split())


def walk(calls: list[Call]) -> dict[str, Counter]:
    """Darshan's definitions, one call after the other."""
    found = {"read": Counter(), "write": Counter()}
    last, before, switches = {"read": 0, "write": 0}, None, 0
    for op, offset, size in calls:
        if op == "open":
            last = {"read": 0, "write": 0}
            continue
        way = "read" if "read" in op else "write"
        one = found[way]
        one["calls"] += 1
        one["bytes"] += size
        switches += before not in (None, way)
        before = way
        if op == "fwrite":
            one["unknown"] += 1
            continue
        one["sequential"] += offset > last[way]
        one["consecutive"] += offset == last[way] + 1
        one["off_block"] += offset % 4096 != 0
        last[way] = offset + size - 1
    for one in found.values():
        one["switches"] = switches
    return found


@pytest.mark.parametrize("seed", range(12))
def test_figures_are_those_of_a_walk_over_the_calls(tmp_path, seed):
    chance = random.Random(seed)
    ops = ("pwrite", "pread", "read", "write", "open", "fwrite")
    calls = {
        rank: [
            (chance.choice(ops), 512 * chance.randrange(20), chance.choice((0, 1, 512, 4096)))
            for _ in range(300)
        ]
        for rank in range(3)
    }
    run = write_run(tmp_path / "run", calls, threads=1 + seed % 3)
    rows = {(row["rank"].rank, row["way"]): row for row in patterns_by_rank(build(run))}
    for rank, made in calls.items():
        for way, expected in walk(made).items():
            row = rows.pop((rank, way))
            assert {key: row[key] for key in expected} == expected, (rank, way)
            parts = ("first", "adjacent", "strided", "backward", "random", "unknown")
            assert sum(row[key] for key in parts) == row["calls"]
    assert not rows


def test_bytes_that_are_moved_again_and_the_totals_of_the_report(tmp_path, weir):
    calls = {0: [("open", 0, 0)] + [("pwrite", 0, 1000), ("pread", 0, 400), ("pread", 0, 400)]}
    calls[1] = [("fwrite", 0, 50), ("pwrite", 3000, 1000)]
    run = write_run(tmp_path / "run", calls, names=("/scratch/a", "/scratch/b"))
    printed = report_json(build(run))
    by_key = {(row["file"], row["way"]): row for row in printed["patterns"]}
    assert by_key["/scratch/a", "read"]["again"] == 400
    assert by_key["/scratch/b", "write"]["again"] == 0  # not known
    assert sum(row["bytes"] for row in printed["patterns"]) == printed["total"]["bytes"] == 2850
    text = weir("report", run, "--tables", "patterns").ok().stdout
    assert "Access patterns by MB" in text and "TOTAL" in text
    one = report_json(build(run, rank=1))["patterns"]
    assert [(row["file"], row["calls"]) for row in one] == [("/scratch/b", 2)]
    alone = weir("report", run, "--tables", "patterns", "--rank", "1").ok().stdout
    assert "-: other ranks than rank 1 are not looked at" in " ".join(alone.split())
    assert "are not looked at" not in text


def test_levels_without_records_have_no_patterns(tmp_path, weir):
    weir("trace", "--level", "detail", "-o", tmp_path / "run", "--", "cat", __file__).ok()
    found = weir("report", tmp_path / "run", "--tables", "patterns").ok().stdout
    assert "patterns: nothing to show; it has no reads or writes at level trace" in found


def test_names_that_are_lost_are_files_of_their_own(tmp_path):
    (tmp_path / "run" / "main").mkdir(parents=True)
    with TraceWriter(tmp_path / "run" / "main" / "n.weir") as writer:
        process = writer.process(5)
        process.events([event("pwrite", writer.created_ticks, 5, file=77, size=10, offset=1)])
    [row] = patterns_of(build(tmp_path / "run"))
    assert row["file"].startswith("(lost name 77") and row["off_block"] == row["calls"] == 1
    assert (row["block"], row["stripe"]) == (4096, None)


def test_a_renamed_file_has_the_name_that_the_table_of_files_has(tmp_path, weir):
    """out.tmp becomes out.nc; log is renamed, and another file gets its name."""
    script = (
        "head -c 9000 /dev/zero > out.tmp; mv out.tmp out.nc; "
        "head -c 7000 /dev/zero > log; mv log log.old; head -c 5000 /dev/zero > log"
    )
    weir("trace", "-o", "run", "--", "sh", "-c", script, cwd=tmp_path).ok()
    printed = report_json(build(tmp_path / "run"))
    written = {Path(row["file"]).name: row["bytes"] for row in printed["patterns"]
        if row["way"] == "write"}
    of_files = {Path(one["file"]).name: one["bytes_written"] for one in printed["files"]
        if one["bytes_written"]}
    assert written["out.nc"] == of_files["out.nc"] == 9000 and "out.tmp" not in written
    assert written["log"] == 12000 and (of_files["log"], of_files["log.old"]) == (5000, 7000)


def test_files_that_belong_together_are_added_up(tmp_path, weir):
    """Two steps use the same files: each counts once."""
    names = ("/scratch/part.0", "/scratch/part.1", "/scratch/other")
    calls = {rank: [("pwrite", 10 * at, 10 + rank) for at in range(4)] for rank in range(3)}
    run = write_run(tmp_path / "run", calls, names=names)
    shutil.copytree(run / "main", run / "second")
    printed = report_json(build(run))
    [row] = [row for row in printed["patterns_by_group"] if row["files"].endswith("part.<N>")]
    its = [one for one in printed["patterns"] if "part." in one["file"]]
    assert row["way"] == "write" and row["count"] == 2 and len(its) == 4
    for key in ("calls", "bytes", "adjacent", "random", "off_block"):
        assert row[key] == sum(one[key] for one in its), key
    found = weir("query", run, "SELECT count, calls FROM access_patterns_by_group "
        "WHERE files LIKE '%part%'", "--format", "csv").ok().stdout  # fmt: skip
    assert found.split()[1:] == [f"2,{row['calls']}"]
