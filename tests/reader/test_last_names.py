# SPDX-License-Identifier: Apache-2.0
"""Bytes of files that are renamed stand under the name that the file had last: in the table of
files, in JSON, in SQL."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from renaming_runs import one_action, possible, trace, write_run

import weir as weir_package
from weir.analysis.names import NameTable
from weir.report import build
from weir.report.files.compute import FileTotals, files_of, files_of_rank
from weir.report.files.naming import Files, Naming

LEVELS = ["trace", "detail"]


def by_name(run: Path) -> dict[str, FileTotals]:
    return {Path(one.file).name: one for one in files_of(build(run))}


def also(one: FileTotals) -> list[str]:
    return sorted(Path(name).name for name in one.also)


def model(made: list[dict]) -> dict[str, list[int]]:
    """Last name -> bytes read and written, of renames and exchanges."""
    file_of: dict[str, object] = {}
    last: dict[object, str] = {}
    moved: dict[object, list[int]] = defaultdict(lambda: [0, 0])

    def file(name: str) -> object:
        if name not in file_of:
            file_of[name] = object()
            last[file_of[name]] = name
        return file_of[name]

    for one in made:
        old, new = one["old"], one["new"]
        if one["what"] in ("write", "read"):
            moved[file(old)][one["what"] == "write"] += one["size"]
        elif old != new:
            of_old, of_new = file(old), file(new)
            file_of[new], last[of_old] = of_old, new
            if one["what"] == "exchange":
                file_of[old], last[of_new] = of_new, old
            else:
                del file_of[old]
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for of, (read, written) in moved.items():
        found[last[of]][0] += read
        found[last[of]][1] += written
    return dict(found)


def without_links(made: list[dict]) -> list[dict]:
    return possible([{**one, "through": None} for one in made
        if one["what"] not in ("link", "symlink")])


@settings(max_examples=100)
@given(st.lists(one_action, max_size=14).map(without_links))
def test_bytes_are_those_of_a_small_file_system(made):
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), made)
        report = build(directory)
        found = {Path(one.file).name: [one.bytes_read, one.bytes_written]
            for one in files_of(report) if one.bytes}
        calls, ns = (sum(getattr(one, key) for one in files_of(report)) for key in ("calls", "ns"))
        assert (calls, ns) == (report.all.calls, report.all.ns)
        assert {one.file: one.calls for one in files_of_rank(report, 0)}.keys() <= {one.file
            for one in files_of(report)}
    assert found == model(made)


@pytest.mark.parametrize("level", LEVELS)
def test_a_temporary_name_of_python_and_one_of_a_chain(weir, tmp_path, level):
    script = """
import os, tempfile
with tempfile.NamedTemporaryFile("wb", dir=".", prefix="part", delete=False) as one:
    one.write(b"x" * 5000)
os.replace(one.name, "out.nc")
with open("a", "wb") as one:
    one.write(b"x" * 300)
os.rename("a", "b")
os.rename("b", "c")
"""
    run = tmp_path / "run"
    weir("trace", "--level", level, "-o", run, "--", sys.executable, "-c", script,
        cwd=tmp_path).ok()
    found = by_name(run)
    assert found["out.nc"].bytes_written == 5000 and [name[:4]
        for name in also(found["out.nc"])] == ["part"]
    assert found["c"].bytes_written == 300 and also(found["c"]) == ["a", "b"]
    assert not any(name in ("a", "b") or name.startswith("part") for name in found)


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_that_is_moved_away_keeps_its_bytes(weir, tmp_path, level):
    run = tmp_path / "run"
    trace(weir, run, "s",
        "echo 1 > out; echo 333 > tmp; mv out out.old; mv tmp out; bash -c 'echo 55555 > tmp'",
        level)
    found = by_name(run)
    assert {name: found[name].bytes_written for name in ("out", "out.old")} == {"out": 4,
        "out.old": 2}
    assert also(found["out"]) == ["tmp"] and also(found["out.old"]) == ["out"]
    assert found["tmp"].bytes_written == 6 and also(found["tmp"]) == []


def test_files_that_have_one_name_after_the_other_share_its_line(weir, tmp_path):
    (tmp_path / "restart").write_text("1234567")
    trace(weir, tmp_path / "run", "s",
        "cat restart; for i in 1 2 3; do echo $i > restart.tmp; mv restart.tmp restart; done")
    found = by_name(tmp_path / "run")
    assert (found["restart"].bytes_read, found["restart"].bytes_written) == (7, 6)
    assert "restart.tmp" not in found


def test_one_process_that_uses_a_name_again_and_again(weir, tmp_path):
    """Records part what one row of the counters has together; without them it counts where it
    began, and nothing is lost."""
    script = """
import os
for number in range(4):
    with open("tmp", "wb") as one:
        one.write(b"x" * (100 + number))
    if number < 3:
        os.rename("tmp", f"out.{number}")
"""
    wanted = {"trace": {"out.0": 100, "out.1": 101, "out.2": 102, "tmp": 103},
        "detail": {"out.0": 406}}
    for level, sizes in wanted.items():
        run = tmp_path / level
        weir("trace", "--level", level, "-o", run, "--", sys.executable, "-c", script,
            cwd=tmp_path).ok()
        assert {name: one.bytes_written for name, one in by_name(run).items()
            if one.bytes_written} == sizes
        report = build(run)
        assert sum(one.calls for one in files_of(report)) == report.all.calls and sum(one.ns
            for one in files_of(report)) == report.all.ns
    opens = {name: op.calls for name, one in by_name(tmp_path / "trace").items() for op in one.ops
        if op.op.startswith("open")}
    assert {name: opens.get(name) for name in wanted["trace"]} == {name: 1
        for name in wanted["trace"]}


ROTATES = """
import os
for number in range(1, 7):
    for kept in (3, 2, 1):
        old = f"restart.{kept - 1}" if kept > 1 else "restart"
        if kept == 3 and os.path.exists("restart.3"):
            os.unlink("restart.3")
        if os.path.exists(old):
            os.rename(old, f"restart.{kept}")
    with open("restart", "wb", 0) as file:
        file.write(bytes(10 ** number))
print(os.stat("restart").st_size)
"""


def test_older_restart_files_that_are_renamed_each_time_keep_their_bytes(weir, tmp_path):
    """As CP2K keeps its wave functions: each of the same three renames is made again and again."""
    done = weir("trace", "-q", "-o", tmp_path / "run", "--", sys.executable, "-c", ROTATES,
        cwd=tmp_path)
    assert done.stdout == "1000000\n"
    found = {name: one.bytes_written for name, one in by_name(tmp_path / "run").items()
        if one.bytes_written}
    assert found == {"restart": 10**6, "restart.1": 10**5, "restart.2": 10**4,
        "restart.3": 10**3 + 10**2 + 10}


def test_a_link_that_takes_the_place_of_a_temporary_name(weir, tmp_path):
    trace(weir, tmp_path / "run", "s", "echo 12345 > tmp; ln tmp out; rm tmp")
    found = by_name(tmp_path / "run")
    assert found["out"].bytes_written == 6 and also(found["out"]) == ["tmp"]


def test_level_summary_tells_no_files_apart(weir, tmp_path):
    trace(weir, tmp_path / "run", "s", "echo 12345 > tmp; mv tmp out", "summary")
    report = build(tmp_path / "run")
    assert files_of(report) == [] and report.all.bytes >= 6


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", ["sort", "git", "rsync"])
def test_programs_that_write_under_a_temporary_name(weir, tmp_path, program, level):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / "in").write_text("b\na\n" * 500)
    scripts = {
        "sort": "sort -o sorted.tmp in; mv sorted.tmp sorted",
        "git": "git init -q repository; cp in repository; cd repository; git add in",
        "rsync": "rsync in copied",
    }
    trace(weir, tmp_path / "run", "s", scripts[program], level)
    wanted = {"sort": tmp_path / "sorted", "git": tmp_path / "repository" / ".git" / "index",
        "rsync": tmp_path / "copied"}[program]
    found = {one.file: one for one in files_of(build(tmp_path / "run"))}
    assert found[str(wanted)].bytes_written == wanted.stat().st_size
    assert found[str(wanted)].also
    if program == "git":
        written = {name for name, one in found.items() if one.bytes_written
            and "/.git/objects/" in name}
        assert written and all(Path(name).exists() for name in written)


def test_the_table_json_and_sql_say_the_same(weir, tmp_path):
    pytest.importorskip("pyarrow", reason="needs the test extra")
    run = tmp_path / "run"
    trace(weir, run, "s",
        "echo 12345 > out.tmp; mv out.tmp out.nc; echo 1 > out.tmp; for i in 1 2; do echo $i > u; "
        "mv u v$i; done")
    text = weir("report", run, "--tables", "files", cwd=tmp_path).ok().stdout
    assert "out.nc (was out.tmp)" in text
    made = json.loads(weir("report", run, "--json").ok().stdout)
    files = {one["file"]: one for one in made["files"]}
    assert files[str(tmp_path / "out.nc")]["also"] == [str(tmp_path / "out.tmp")]
    with weir_package.open(run) as asked:
        rows = asked.sql(
            "SELECT file, bytes_written, calls, ns, also FROM files WHERE file IS NOT "
            "NULL").to_pylist()
        assert asked.sql(
            "SELECT sum(bytes_written) n FROM files WHERE file LIKE '%out.nc'").to_pylist() == [
            {"n": 6}]
    assert {one["file"]: (one["bytes_written"], one["calls"], one["also"]) for one in rows} == {
        name: (one["bytes_written"], one["calls"], "\n".join(one["also"]) or None)
        for name, one in files.items()
    }


def instructions_of(call) -> int:
    """Number of Python instructions that a call executes, those of the functions that it calls
    among them."""
    count = 0

    def trace_(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace_

    before = sys.gettrace()
    sys.settrace(trace_)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def make_links(links: int) -> Files:
    """One file with many links, each of which is unlinked, the first one first."""
    made = [Naming(at, "link", "/d/file", f"/d/link{at}") for at in range(links)]
    made += [Naming(links + at, "unlink", f"/d/link{at}", "") for at in range(links)]
    return Files(made, [one.new for one in made if one.new], NameTable(), lambda name, at: False)


def test_a_file_with_many_links_is_followed_at_a_cost_in_proportion():
    few, many = (instructions_of(partial(make_links, links)) for links in (100, 800))
    assert many < 10 * few


def last_name_of(made: list[Naming], name: str, at: int) -> str:
    files = Files(made, [one.old for one in made] + [one.new for one in made if one.new],
        NameTable(), lambda name, at: False)
    return files.last_name(files.at(name, at)[0])


def test_a_file_is_called_what_it_was_until_it_loses_that_name():
    made = [Naming(at, "link", "/d/a", name) for at, name in enumerate(("/d/b", "/d/c", "/d/d"))]
    made += [Naming(10, "unlink", "/d/d", ""), Naming(11, "unlink", "/d/b", "")]
    assert last_name_of(made, "/d/c", 20) == "/d/a"
    assert last_name_of([*made, Naming(12, "unlink", "/d/a", "")], "/d/c", 20) == "/d/c"


def test_a_name_that_was_left_and_removed_again_is_no_other_file():
    """Whoever removed it had opened it under this name, by a call that has no record."""
    names = NameTable()
    used = ["/a", "/b", "/other", "/mpi"]
    for name in used:
        names.number(name)
    made = [Naming(1, "rename", "/a", "/b"), Naming(5, "unlink", "/a", "")]
    behind = Files(made, used, names, lambda name, at: False)
    assert behind.last_name(behind.at("/a", 9)[0]) == "/a"
    assert behind.last_name(behind.at("/a", 1)[0]) == "/b"


def test_a_link_to_a_renamed_file_does_not_rename_it():
    made = [Naming(1, "rename", "/d/new", "/d/f"), Naming(2, "link", "/d/f", "/d/h0")]
    assert last_name_of(made, "/d/f", 3) == last_name_of(made, "/d/h0", 3) == "/d/f"
    made.append(Naming(4, "unlink", "/d/h0", ""))
    assert last_name_of(made, "/d/f", 5) == "/d/f"


def test_a_file_whose_name_another_one_takes_is_called_by_its_link():
    """As dpkg replaces files, and rsync and editors with backups."""
    made = [Naming(1, "link", "/d/f", "/d/f.old"), Naming(2, "rename", "/d/f.new", "/d/f")]
    assert last_name_of(made, "/d/f", 3) == "/d/f"
    assert last_name_of(made, "/d/f", 0) == last_name_of(made, "/d/f.old", 3) == "/d/f.old"


LINKERS = {  # what is written, read and removed, and the bytes of each file under its last name
    "renamed, linked, unlinked": ("echo 12345 > t; mv t f; ln f h0; cat f > /dev/null; "
        "echo 678 >> f; rm h0; cat f > /dev/null", {"f": (16, 10)}),
    "delivered as mail": ("mkdir tmp new; echo hello > tmp/1; ln tmp/1 new/1; rm tmp/1; "
        "cat new/1 > /dev/null", {"1": (6, 6)}),
    "replaced with a backup": ("echo old > f; ln f f.old; echo newer > f.new; mv f.new f; "
        "cat f f.old > /dev/null", {"f": (6, 6), "f.old": (4, 4)}),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("script", LINKERS)
def test_programs_that_link_and_unlink(weir, tmp_path, script, level):
    commands, wanted = LINKERS[script]
    trace(weir, tmp_path / "run", "s", commands, level)
    found = {name: (one.bytes_read, one.bytes_written)
        for name, one in by_name(tmp_path / "run").items() if one.bytes}
    assert found == wanted
