# SPDX-License-Identifier: Apache-2.0
"""Steps with several programs: each has ranks of its own, in every table, on both MPIs."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys

import pytest

C = r"""
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* FILE [COMMAND]: each rank writes FILE.RANK, rank 0 waits in it for its file system; with COMMAND
 * two ranks of that are spawned */
int main(int argc, char **argv) {
  MPI_Comm parent, other = MPI_COMM_NULL;
  char name[256];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (argc > 2)
    MPI_Comm_spawn(argv[2], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
  snprintf(name, sizeof name, "%s.%d", argc > 1 ? argv[1] : "spawned", rank);
  int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  for (int i = 0; i < (rank == 0 ? 5 : 1); ++i)
    if (write(fd, name, sizeof name) != sizeof name) return 1;
  fsync(fd);
  close(fd);
  MPI_Barrier(MPI_COMM_WORLD);
  if (other != MPI_COMM_NULL) MPI_Comm_disconnect(&other);
  if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
"""

SQL_OF_RANKS = " UNION ALL ".join(
    f"SELECT '{table}' AS of, count(*) AS n, list_sort(list(DISTINCT rank_label)) AS labels "
    f"FROM {table}" for table in ("events", "io", "totals"))


@pytest.fixture
def program(mpi):
    """``program(name)``: it, under this name."""
    return lambda name: mpi.cc(C, name=name)


@pytest.fixture
def traced(weir, mpi, tmp_path):
    """``traced(script)``: the run directory of a job script in which `mpirun N` starts N ranks."""

    def run(script: str):
        words = shlex.join(mpi.launch(0)[:-1])
        (tmp_path / "job.sh").write_text(f"mpirun() {{ {words} \"$@\"; }}\n{script}\nwait\n")
        env = {**os.environ, **mpi.env}
        weir("trace", "-o", tmp_path / "run", "sh", tmp_path / "job.sh", env=env,
            cwd=tmp_path, timeout=120).ok()
        return tmp_path / "run"

    return run


def labels(weir, run):
    """Of the report in JSON: the labels of all ranks, by the place that has them."""
    made = json.loads(weir("report", run, "--json").ok().stdout)
    (step,) = made["steps"]
    return made, step, {
        "steps": [row["rank_label"] for row in step["by_rank"] if row["rank"] >= 0],
        "ranks": [row["rank_label"] for row in made["ranks"] if row["rank"] >= 0],
        "wall": [row["rank_label"] for row in made["wall_time_by_rank"]],
    }


def of(program: str, ranks: int) -> list[str]:
    return [f"{program}:{rank}" for rank in range(ranks)]


def of_one_rank_of_a_program(weir, run, made):
    """--rank takes what tables print."""
    for row in made["ranks"]:
        label = row["rank_label"]
        only = json.loads(weir("report", run, "--rank", label, "--json").ok().stdout)
        assert only["ranks"] == [row]
        assert [one["rank_label"] for one in only["wall_time_by_rank"]] == [
            one["rank_label"] for one in made["wall_time_by_rank"] if one["rank_label"] == label]
    both = json.loads(weir("report", run, "--rank", "1", "--json").ok().stdout)
    assert [one["rank_label"] for one in both["ranks"]] == ["pre:1", "model:1"]
    assert "Rank model:1 was in I/O" in weir("report", run, "--rank", "model:1").ok().stdout
    lines = weir("report", run, "--rank", "pre:2", "--trace").ok().stdout.splitlines()
    heads = [one for one in lines if one.startswith("# ")]
    assert len(heads) == 1 and ", rank 2, " in heads[0] and "/pre " in heads[0]
    missing = weir("report", run, "--rank", "model:2")
    assert missing.returncode != 0 and "the run has pre:0-2,model:0-1,job.sh,cat" in missing.stderr


def of_one_rank_in_queries_and_exports(weir, run, tmp_path):
    """--rank of query and export takes what that of report takes, and fails as it does."""
    def rows(*rank):
        text = weir("query", run, *rank, SQL_OF_RANKS, "--format", "json").ok().stdout
        return {row["of"]: row for row in json.loads(text)}

    every = rows()
    for label, labels in (("model:0", ["model:0"]), ("1", ["model:1", "pre:1"])):
        chosen = rows("--rank", label)
        assert {table: row["labels"] for table, row in chosen.items()} == dict.fromkeys(chosen,
            labels)
        assert 0 < chosen["events"]["n"] < every["events"]["n"]
    weir("export", run, "--to", "parquet", "--rank", "1", "-o", tmp_path / "of_1", "--tables",
        "totals,events").ok()
    from pyarrow import dataset, parquet

    events = dataset.dataset(tmp_path / "of_1" / "events").to_table()["rank_label"].to_pylist()
    assert sorted(set(events)) == labels and len(events) == chosen["events"]["n"]
    totals = parquet.read_table(tmp_path / "of_1" / "totals.parquet")
    assert len(totals) == chosen["totals"]["n"]
    totals = weir("export", run, "--to", "totals", "--rank", "model:1").ok().stdout
    assert "# nprocs: 5\n" in totals and "# rank 4: model:1\n" in totals
    assert {line.split("\t")[1] for line in totals.splitlines() if line[:1] != "#" and line} == {
        "4"}
    for asked, rank in (("query", "model:2"), ("export", "7")):
        failed = weir("report", run, "--rank", rank)
        words = ["SELECT 1"] if asked == "query" else ["--to", "totals"]
        same = weir(asked, run, "--rank", rank, *words)
        assert failed.stderr == same.stderr and failed.returncode == same.returncode != 0


@pytest.mark.mpi
def test_programs_one_after_another_have_ranks_of_their_own(weir, program, traced, tmp_path):
    run = traced(f"mpirun 3 {program('pre')} a\nmpirun 2 {program('model')} b\ncat a.0 b.0 > c")
    made, step, found = labels(weir, run)
    expected = of("pre", 3) + of("model", 2)
    assert found == dict.fromkeys(found, expected)
    assert step["ranks"] == 5
    assert [row["ranks"] for row in made["wall_time"]] == [5]
    writes = {row["rank_label"]: row["write_calls"] for row in made["ranks"]}
    assert [writes[label] for label in expected] == [5, 1, 1, 5, 1]
    assert [row["rank"] for row in made["ranks"] if row["rank"] >= 0] == [0, 1, 2, 0, 1]
    of_one_rank_of_a_program(weir, run, made)
    of_one_rank_in_queries_and_exports(weir, run, tmp_path)
    text = weir("report", run, env={**os.environ, "COLUMNS": "80"}).ok().stdout
    assert "3 ranks of pre, 2 ranks of model, 1 process of cat" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    path = [row["rank_label"] for row in made["waits"][0]["critical_path"] if row["rank_label"]]
    assert len(path) == len(set(path)) and {one.partition(":")[0] for one in path} == {"pre",
        "model"}


@pytest.mark.mpi
def test_programs_of_one_name_and_size_side_by_side_have_ranks_of_their_own(weir, program, traced):
    model = program("model")
    run = traced("\n".join(f"mpirun 2 {model} m{one} &" for one in range(3)))
    made, step, found = labels(weir, run)
    expected = of("model", 2) + of("model#2", 2) + of("model#3", 2)
    assert found == dict.fromkeys(found, expected)
    assert [one for one in step["programs"] if one["ranks"]] == [
        {"name": "model", "ranks": 2, "times": 3}]
    # what a rank of one program writes, none of another does
    answer = weir("query", run, "SELECT DISTINCT rank_label, file FROM access_patterns_by_rank "
        "WHERE way = 'write' AND file LIKE '%/m%'", "--format", "json").ok()
    files = {}
    for row in json.loads(answer.stdout):
        files.setdefault(row["rank_label"].partition(":")[0], set()).add(row["file"][-4:-2])
    assert sorted(map(len, files.values())) == [1, 1, 1]
    assert "3 x 2 ranks of model" in " ".join(weir("report", run).ok().stdout.split())


@pytest.mark.mpi
def test_several_programs_of_one_mpirun_are_one_world(weir, program, traced):
    run = traced(f"mpirun 2 {program('ocean')} o : -n 2 {program('model')} m")
    _, step, found = labels(weir, run)
    assert found == dict.fromkeys(found, ["0", "1", "2", "3"]) and step["ranks"] == 4
    assert "1 step, 4 ranks, 1 node" in weir("report", run).ok().stdout


@pytest.mark.mpi
def test_spawned_ranks_are_those_of_another_program(weir, mpi, program, traced):
    if mpi.name == "mpich":
        pytest.skip("MPI_Comm_spawn fails on this system's MPICH, without weir too")
    run = traced(f"mpirun 3 {program('master')} m {program('worker')}")
    _, step, found = labels(weir, run)
    assert found == dict.fromkeys(found, of("master", 3) + of("worker", 2)) and step["ranks"] == 5
    answer = weir("query", run, "SELECT rank_label, sum(calls)::INT AS n FROM io WHERE class = "
        "'write' AND file LIKE '%.%' GROUP BY ALL ORDER BY ALL", "--format", "json").ok()
    assert {row["rank_label"]: row["n"] for row in json.loads(answer.stdout)} == {
        "master:0": 5, "master:1": 1, "master:2": 1, "worker:0": 5, "worker:1": 1}


@pytest.mark.mpi
def test_a_wrapper_and_what_a_rank_starts_are_of_the_rank(weir, program, traced):
    run = traced(f"mpirun 2 sh -c '{program('model')} m; cat m.0 > /dev/null'")
    _, _, found = labels(weir, run)
    assert found == dict.fromkeys(found, ["0", "1"])


@pytest.mark.mpi
def test_programs_of_two_runs_compare_and_show_on_the_page(weir, program, traced, tmp_path):
    run = traced(f"mpirun 2 {program('pre')} a\nmpirun 2 {program('model')} b")
    text = weir("compare", run, run).ok().stdout
    assert re.search(r"(pre|model):[01]", text.partition("busiest")[2])
    weir("report", run, "--html", tmp_path / "page.html").ok()
    page = (tmp_path / "page.html").read_text()
    for label in ("rank pre:0", "rank model:1", "2 ranks of pre"):
        assert label in page.replace("\u00a0", " ")
    head = weir("export", run, "--to", "totals").ok().stdout
    assert "# nprocs: 4" in head and "# rank 3: model:1" in head


SCRIPT = """
for i in 1 2 3; do head -c 100000 /dev/zero > f$i; cp f$i g$i; done
{python} -c 'open("h", "w").write("x" * 70000)'
"""


def test_processes_of_a_script_are_programs(weir, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT.format(python=sys.executable))
    weir("trace", "-o", tmp_path / "run", "sh", script, cwd=tmp_path).ok()
    made = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    rows = {row["rank_label"]: row for row in made["ranks"]}
    assert {"head", "cp", "job.sh"} <= set(rows)
    assert rows["cp"]["processes"] == 3 and rows["cp"]["rank"] == 0
    assert rows["cp"]["write_bytes"] == 300_000
    assert made["steps"][0]["ranks"] == 1
    (wall,), by_rank = made["wall_time"], made["wall_time_by_rank"]
    assert wall["ranks"] == len(by_rank) == 1 and by_rank[0]["rank_label"] == "all"
    # the shell, and all that it started, are one line: its I/O is that of the step
    assert wall["io_s"] <= made["steps"][0]["all"]["seconds"] * 1.001
    assert wall["io_s"] == pytest.approx(made["steps"][0]["active_s"], rel=1e-3)
    text = weir("report", tmp_path / "run").ok().stdout
    # Names of directories that the interpreter read stand in brackets: (reader, ranks, ...).
    assert "rank" not in re.sub(r"\([^()]*, \.\.\.\)", "", text.partition("More tables")[0])
    assert "3 of head" in text and "3 of cp" in text


def test_a_process_that_becomes_another_program_is_counted_once(weir, tmp_path, tmp_run):
    """bash forks a copy of itself, which becomes cat."""
    done = weir("trace", "-o", tmp_run, "--", "bash", "-c", "cat x; cat x; (cat x; true); true",
        cwd=tmp_path)
    assert "weir: 5 processes, " in done.stderr, done.stderr
    said = " ".join(weir("report", tmp_run).stdout.split())
    assert re.search(r"5 processes \((3 of cat, 2 of bash|2 of bash, 3 of cat)\)", said), said
