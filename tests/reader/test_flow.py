# SPDX-License-Identifier: Apache-2.0
"""Data flow, on traces written here: against a model that goes record by record, and against the
table of files."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from golden_trace import GoldenTrace
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.report import build, report_json
from weir.report.flow.table import flow_json, flow_tables, graph_json, reads_json, report_flow
from weir.trace._synthetic import TraceWriter, event

RANKS, STEPS = 3, 3
FILES = ("a1", "a2", "a3", "b", "d/c")
OPS = {"pread": "r", "read": "r", "fread": "r", "pwrite": "w", "fwrite": "w", "open": "",
    "stat": ""}
SETTINGS = settings(max_examples=60)
record = st.fixed_dictionaries(
    {
        "op": st.sampled_from(sorted(OPS)),
        "file": st.integers(0, len(FILES) - 1),
        "rank": st.integers(-1, RANKS - 1),
        "step": st.integers(0, STEPS - 1),
        "size": st.integers(0, 20),
        "offset": st.integers(0, 30),
        "failed": st.sampled_from([False, False, False, True]),
    }
)


def write_run(run: Path, made: list[dict]) -> None:
    """Record k of the list lasts 5 ns from 10 * k ns; a step's clock begins where the one before
    ended."""
    for step in range(STEPS):
        directory = run / f"s{step}"
        directory.mkdir(parents=True)
        with TraceWriter(directory / "n.weir", created_realtime_ns=10**18 + step
                * 10**12) as writer:
            ranks = {rank: writer.process(100 + rank, rank, RANKS, cwd="/scratch/an")
                for rank in range(-1, RANKS)}
            for number, one in enumerate(made):
                if one["step"] != step:
                    continue
                process = ranks[one["rank"]]
                fields = {"offset": one["offset"]} if one["op"].startswith("p") else {}
                failed = {"flags": 1, "error": 5} if one["failed"] else {}
                at = writer.created_ticks + 10 * number
                process.events(event(one["op"], at, 5,
                    file=process.name(f"/scratch/an/{FILES[one['file']]}"), size=one["size"],
                    **fields, **failed))


def moved(made: list[dict], way: str) -> list[tuple[int, dict]]:
    return [(number, one) for number, one in enumerate(made) if OPS[one["op"]] == way
        and one["size"] and not one["failed"]]


def began(made: list[dict], way: str) -> dict:
    """(file, step, rank) -> when its first call was made of an operation that moved bytes: (step,
    number of the record)."""
    moves = {(one["file"], one["step"], one["rank"], one["op"]) for _, one in moved(made, way)}
    first: dict = {}
    for number, one in enumerate(made):
        if (one["file"], one["step"], one["rank"], one["op"]) in moves:
            first.setdefault((one["file"], one["step"], one["rank"]), (one["step"], number))
    return first


def model_edges(made: list[dict]) -> dict:
    """(file, step that wrote or None, its writers, step, reader) -> bytes: of each read, the step
    whose writing began last before it."""
    writings, writers, edges = {}, defaultdict(set), defaultdict(int)
    for (file, step, rank), when in began(made, "w").items():
        writings[file, step] = min(writings.get((file, step), when), when)
        writers[file, step].add(rank)
    for number, one in moved(made, "r"):
        file, step = one["file"], one["step"]
        before = sorted((wrote, by) for (of, by), wrote in writings.items() if of == file
            and wrote < (step, number))
        came = before[-1][1] if before else None
        edges[file, came, tuple(sorted(writers[file, came])) if before else (), step,
            one["rank"]] += one["size"]
    return edges


@SETTINGS
@given(st.lists(record, max_size=40))
def test_matrix_and_edges_are_those_of_a_walk_over_the_records(made):
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), made)
        report = build(directory)
        found = report_flow(report)
        figures, graph = report_json(report), graph_json(report)
    use = {(file.text, step): one for row in found.rows for file in row.files
        for step, one in enumerate(file.uses) if one is not None}
    for way, key in (("r", "read"), ("w", "written")):
        model = defaultdict(int)
        for _, one in moved(made, way):
            model[FILES[one["file"]], one["step"], one["rank"]] += one["size"]
        assert {(file, step, found.names[rank].rank): n for (file, step), one in use.items()
            for rank, n in getattr(one, key).items()} == model
    rank_of = {number: found.names[number].rank for ranks in found.ranks for number in ranks}
    edges = {(FILES.index(f.text), e.from_step, tuple(sorted(rank_of[one] for one in e.writers)),
        e.to_step, rank_of[e.reader]): e.bytes
        for row in found.rows for f in row.files for e in f.edges}
    assert edges == model_edges(made)
    assert sum(one["bytes"] for one in graph["edges"]) == sum(edges.values()) == sum(
        file["bytes_read"] for file in figures["files"])
    agrees_with_the_files(figures, found)


def agrees_with_the_files(figures: dict, found) -> None:
    """Bytes and seconds of the flow are those of the table of files, of all files whose bytes
    moved."""
    listed = {file["file"]: (file["bytes_read"], file["bytes_written"],
        round(file["seconds"] * 1e9)) for file in figures["files"]}
    for row in found.rows:
        for file in row.files:
            uses = [use for use in file.uses if use is not None]
            sums = tuple(sum(getattr(use, key) for use in uses)
                for key in ("bytes_read", "bytes_written", "ns"))
            assert listed.pop(file.file) == sums
    assert all(read == written == 0 for read, written, _ in listed.values())


@SETTINGS
@given(st.lists(record, max_size=40))
def test_distinct_bytes_are_those_of_a_set(made):
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), made)
        report = build(directory)
        reads = reads_json(report)
    of_rank, of_step, totals = defaultdict(set), defaultdict(set), defaultdict(int)
    unknown = set()
    for _, one in moved(made, "r"):
        key = (one["file"], one["step"], one["rank"])
        totals[key] += one["size"]
        if one["op"] != "pread":
            unknown |= {key, key[:2]}
        place = range(one["offset"], one["offset"] + one["size"])
        of_rank[key].update(place)
        of_step[key[:2]].update(place)
    again = [key for key in totals if key not in unknown and len(of_rank[key]) < totals[key]]
    listed = [one for one in reads["again"] if one["distinct_bytes"] is not None]
    assert sum(one["bytes"] for one in listed) == sum(totals[key] for key in again)
    assert sum(one["distinct_bytes"] for one in listed) == sum(len(of_rank[key]) for key in again)
    shared = [key for key in of_step if all(totals[(*key, rank)] for rank in range(RANKS))]
    assert sum(len(one["files"]) for one in reads["by_all"]) == len(shared)
    known = [key for key in shared if key not in unknown]
    if len(known) == len(shared):
        assert sum(one["distinct_bytes"] for one in reads["by_all"]) == sum(len(of_step[key])
            for key in known)


def step(step: int, *records: tuple) -> list[dict]:
    return [
        {"op": op, "file": FILES.index(file), "rank": rank, "step": step, "size": size, "offset": 0,
            "failed": False} for op, file, rank, size in records
    ]


@pytest.fixture
def run(tmp_path) -> Path:
    """a1-a3: each rank writes one in step 0, another rank reads it in step 1. b: read by all in
    each step, twice by rank 0 in step 2. d/c: rank 0 writes it, updates it in step 1 and leaves it.
    """
    made = step(0, *(("pwrite", f"a{rank + 1}", rank, 20) for rank in range(3)),
        *(("pread", "b", rank, 7) for rank in range(3)), ("fwrite", "d/c", 0, 5))
    made += step(1, *(("pread", f"a{rank + 1}", (rank + 1) % 3, 20) for rank in range(3)),
        ("fread", "d/c", 0, 5), ("fwrite", "d/c", 0, 6))
    made += step(2, ("pread", "b", 0, 7), ("pread", "b", 0, 7), ("open", "b", 1, 0))
    write_run(tmp_path / "run", made)
    return tmp_path / "run"


def test_rows_roles_and_passages_of_a_known_flow(run):
    made = flow_json(build(run))
    rows = {row["pattern"]: row for row in made["rows"]}
    assert {name: row["role"] for name, row in rows.items()} == {"a<N>": "carried", "b": "input",
        "d/c": "updated"}
    assert rows["a<N>"]["numbers"] == [{"letter": "N", "least": "1", "most": "3", "count": 3}]
    assert [(use["step"], use["direction"], use["readers"], use["writers"])
        for use in rows["a<N>"]["uses"]] == [("s0", "w", "", "all"), ("s1", "r", "all", "")]
    assert rows["a<N>"]["passages"] == [{"from": "s0", "to": "s1", "writers": "0-2",
        "readers": "0-2", "files": 3, "bytes": 60}]
    assert [(one["from"], one["to"], one["bytes"]) for one in rows["d/c"]["passages"]] == [("s0",
        "s1", 5)]
    assert [one["from"] for one in rows["b"]["passages"]] == [None, None]
    carried = made["carried"]
    assert (carried["files"], carried["bytes_written"], carried["bytes_read"]) == (3, 60, 60)
    assert round(carried["write_s"] * 1e9) == round(carried["read_s"] * 1e9) == 15


def test_the_graph_goes_from_the_writing_rank_to_the_reading_one(run):
    made = graph_json(build(run))
    (edge,) = (one for one in made["edges"] if one["file"].endswith("/a2"))
    assert (edge["from"], edge["to"], edge["bytes"]) == (["s0:1"], [{"id": "s1:2", "bytes": 20}],
        20)
    ids = {node["id"] for node in made["nodes"]}
    assert {end for one in made["edges"]
        for end in (*one["from"], *(to["id"] for to in one["to"]))} <= ids
    assert all(one["bytes"] == sum(to["bytes"] for to in one["to"]) for one in made["edges"])


def test_what_is_read_by_all_and_what_is_read_again(run):
    made = reads_json(build(run))
    (by_all,) = made["by_all"]
    assert (by_all["step"], by_all["pattern"], by_all["ranks"], by_all["bytes"],
        by_all["distinct_bytes"]) == ("s0", "b", "0-2", 21, 7)
    (again,) = made["again"]
    assert (again["step"], again["pattern"], again["ranks"], again["bytes"],
        again["distinct_bytes"]) == ("s2", "b", "0", 14, 7)


def test_names_that_change_are_said(tmp_path):
    with_rename = step(0, ("fwrite", "b", 0, 9)) + [{**step(1, ("stat", "b", 0, 0))[0],
        "op": "rename"}]
    write_run(tmp_path / "run", with_rename)
    made = flow_json(build(tmp_path / "run"))
    assert [row["role"] for row in made["rows"]] == ["renamed"]
    assert [Path(name).name for name in made["renamed"]] == ["b"]


def test_the_command_prints_the_tables_and_their_json(weir, run):
    text = weir("report", run, "--tables", "flow,graph,reads").ok().stdout
    assert (
        "a<N>" in text
        and "all ->" in text
        and "-> all" in text
        and "Only carried from step to step" in text
    )
    made = json.loads(weir("report", run, "--tables", "flow,graph,reads", "--json").ok().stdout)
    assert {"flow", "graph", "reads"} <= set(made)
    assert [row["pattern"] for row in made["flow"]["rows"]] == ["a<N>", "b", "d/c"]
    chosen = json.loads(weir("report", run, "--json", "--file", "b").ok().stdout)["flow"]
    assert [row["pattern"] for row in chosen["rows"]] == ["b"]
    for more in ((), ("--json",), ("--tables", "flow")):
        none = weir("report", run, "--file", "no-such-name", *more)
        assert none.returncode == 3 and not none.stdout
        assert "--file no-such-name: no path contains this word" in none.stderr


def words(run: Path, *lines: str) -> Path:
    trace = GoldenTrace(run)
    for line in lines:
        trace.line(line)
    trace.close()
    return run


def test_counters_of_level_detail_tell_the_flow_but_not_what_is_read_again(tmp_path):
    run = words(
        tmp_path / "run",
        "step a wall=1", "node n level=2", "process pid=1 rank=0 ranks=1",
        "counter write /scratch/an/f calls=2 bytes=10 for=5 at=0",
        "step b wall=1", "node n level=2", "process pid=1 rank=0 ranks=1",
        "counter pread /scratch/an/f calls=4 bytes=10 for=5 at=0",
        "counter open /scratch/an/f calls=2 bytes=0 for=5 at=0",
    )  # fmt: skip
    (row,) = flow_json(build(run))["rows"]
    assert [(one["from"], one["to"], one["bytes"]) for one in row["passages"]] == [("a", "b", 40)]
    assert [(one["bytes"], one["distinct_bytes"], one["opens"])
        for one in reads_json(build(run))["again"]] == [(40, None, 2)]


@pytest.mark.parametrize(
    ("calls", "role"),
    [
        ("write 0 100, pread 0 50, pwrite 0 50, write 100 100", "output"),  # fills a block, goes on
        ("write 0 100, pread 0 50, pwrite 0 50, write 100 100, unlink 0 0", "scratch"),
        ("write 0 100, pread 0 100", "scratch"),  # the last call reads
        # reads more than it writes, as classic netCDF with blocks larger than its puts
        ("write 0 100, pread 0 100, pread 0 100, write 100 10", "output"),
        ("write 0 100", "output"),
    ],
)
def test_a_file_that_its_writer_reads_back_to_append_is_no_scratch_file(tmp_path, calls, role):
    lines = [
        f"{op} /data/f at={1000 * at} for=5 bytes={size} offset={offset}"
        for at, (op, offset, size) in enumerate(call.split() for call in calls.split(", "))
    ]
    run = words(tmp_path / "run", "step a wall=1", "node n", "process pid=1 rank=0 ranks=1", *lines)
    (row,) = flow_json(build(run))["rows"]
    assert row["role"] == role


@pytest.mark.parametrize(("reads", "role"), [((100, 300), "output"), ((300,), "scratch")])
def test_a_log_that_others_read_while_it_grows_is_output(tmp_path, reads, role):
    run = words(tmp_path / "run", "step a wall=1", "node n", "process pid=1",
        *[f"write /data/log at={at} for=5 bytes=10" for at in (0, 200)], "process pid=2 exe=tail",
        *[f"read /data/log at={at} for=5 bytes=10" for at in reads])
    (row,) = flow_json(build(run))["rows"]
    assert row["role"] == role


def test_files_of_one_pattern_with_different_roles_have_a_line_each(tmp_path):
    """Each is written and read by the only process: one to fill blocks, the other when it is
    complete."""
    run = words(tmp_path / "run", "step a wall=1", "node n", "process pid=1 rank=0 ranks=1",
        "write /data/o3.nc at=0 for=5 bytes=10", "read /data/o3.nc at=10 for=5 bytes=20",
        "write /data/o3.nc at=20 for=5 bytes=10", "write /data/o4.nc at=30 for=5 bytes=10",
        "read /data/o4.nc at=40 for=5 bytes=10")
    assert {row["pattern"]: row["role"] for row in flow_json(build(run))["rows"]} == {
        "/data/o3.nc": "output", "/data/o4.nc": "scratch"}


def test_level_summary_has_no_flow_and_says_so(tmp_path):
    run = words(tmp_path / "run", "step a wall=1", "node n level=1", "process pid=1 rank=0 ranks=1",
        "counter write calls=2 bytes=10 for=5 at=0")
    report = build(run)
    assert flow_json(report)["rows"] == []
    (table,) = flow_tables(report)
    assert "level summary" in table.remarks[0]


def test_one_rank_alone_and_processes_that_are_no_rank(tmp_path):
    run = words(
        tmp_path / "run",
        "step a wall=1", "node n", "process pid=1 rank=0 ranks=2",
        "write /scratch/an/f at=0 for=5 bytes=10", "process pid=2 rank=1 ranks=2",
        "write /scratch/an/g at=0 for=5 bytes=10", "process pid=3",
        "read /scratch/an/f at=100 for=5 bytes=10", "write /scratch/an/g at=100 for=5 bytes=10",
    )  # fmt: skip
    uses = {row["pattern"]: row["uses"][0] for row in flow_json(build(run))["rows"]}
    assert (uses["f"]["writers"], uses["f"]["readers"], uses["f"]["reading_ranks"]) == ("0",
        "model", "model")
    assert (uses["g"]["writers"], uses["g"]["writing_ranks"]) == ("1+model", "1,model")
    (alone,) = flow_json(build(run, rank=1))["rows"]
    assert (alone["pattern"], alone["uses"][0]["writers"], alone["bytes_written"]) == ("g", "1", 10)


def test_names_cannot_break_the_table(tmp_path):
    run = words(tmp_path / "run", "step a wall=1", "node n", "process pid=1 rank=0 ranks=1",
        "write '/scratch/an/x\x1b[2Jy' at=0 for=5 bytes=10")
    (table,) = (one for one in flow_tables(build(run)) if one.title.startswith("Data flow"))
    assert table.rows[0][0] == r'"x\x1b[2Jy"'
