# SPDX-License-Identifier: Apache-2.0
"""Rules from a run: what the run removes stays on the tier, what else it makes goes to its place,
the rest is left where it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from weir.report.flow.compute import CARRIED, INPUT, OUTPUT, SCRATCH, UPDATED, FileFlow, Use
from weir.stage.suggest import exactly, fits, narrow_pattern, rules_text, suggestions


def file(name, role, read=0, written=0, removed=False):
    use = Use(read={0: read} if read else {}, written={0: written} if written else {})
    return FileFlow(0, name, (name,), name, (use,), (), role, removed)


def test_each_role_gets_its_rule():
    found = suggestions([file("/s/restart_1.dat", CARRIED, 50, 50, removed=True),
        file("/s/restart_2.dat", CARRIED, 60, 60, removed=True),
        file("/s/wrfout.nc", OUTPUT, 0, 500), file("/s/traj", CARRIED, 20, 20),
        file("/s/work", SCRATCH, 9, 9, removed=True),
        file("/s/kept", SCRATCH, 8, 8), file("/s/input.nc", INPUT, 900),
        file("/s/data.base", UPDATED, 70, 70)], "/s")
    rules = tomllib.loads(rules_text(found, Path("/dev/shm/t"), "RUN"))["rule"]
    drains = {rule["path"]: rule["stack"].removeprefix("stage:tier=/dev/shm/t:drain=")
        for rule in rules}
    assert drains == {"/s/wrfout.nc": "async", "/s/restart_*.dat": "never", "/s/traj": "async",
        "/s/work": "never", "/s/kept": "async"}


def test_a_removed_file_that_had_other_names_is_not_taken_for_scratch():
    moved = FileFlow(0, "/s/a", ("/s/a", "/s/a.part"), "/s/a", (Use(read={0: 5}, written={0: 5}),),
        (), CARRIED, True)
    (one,) = suggestions([moved], "/s")
    assert one.role == CARRIED


def test_a_pattern_that_matches_files_of_another_use_is_no_rule():
    found = suggestions([*(file(f"/s/x{n}.dat", CARRIED, 5, 5, True) for n in (1, 2)),
        file("/s/x.y.dat", UPDATED, 7, 7)], "/s")
    text = rules_text(found, Path("/t"), "RUN")
    assert tomllib.loads(text) == {} and "such as /s/x.y.dat" in text


def test_characters_of_patterns_are_taken_as_they_are():
    (one,) = suggestions([file("/s/a[1]*.dat", CARRIED, 5, 5)], "/s")
    assert one.path == "/s/a[[]1][*].dat"


def test_a_pattern_may_match_files_that_get_the_same_rule():
    found = suggestions([*(file(f"/s/x{n}.dat", CARRIED, 5, 5) for n in (1, 2)),
        file("/s/x.y.dat", OUTPUT, 0, 7)], "/s")
    assert [one.others for one in found] == [(), ()]


STRANGE = ("/s/a[1]*.dat", "/s/a\\b", "/s/a\\", "/s/a\\[1]", '/s/"', "/s/new\nline", "/s/a?",
    "/s/[!x]", "/s/[[:digit:]]", "/s/]", "/s/\u00e4\u2028", "/s/\udcff.dat")


@pytest.mark.parametrize("path", STRANGE)
def test_a_rule_for_any_path_can_be_read_and_matches_it(path):
    (one,) = suggestions([file(path, OUTPUT, 0, 5)], "/s")
    (rule,) = tomllib.loads(rules_text([one], Path("/t"), "a\nb"))["rule"]
    assert rule["path"] == exactly(path) and fits(path, rule["path"])


@pytest.mark.parametrize("path", STRANGE)
def test_a_rule_for_several_paths_matches_them(path):
    paths = [path.replace("/s/", f"/s/{n}") for n in (3, 4)]
    (one,) = suggestions([file(one, OUTPUT, 0, 5) for one in paths], "/s")
    assert all(fits(path, one.path) for path in paths)
    assert not fits("/s/other", one.path)


def test_a_run_without_such_files_is_said():
    assert "No file is written" in rules_text([], Path("/t"), "RUN")


def test_the_rules_of_a_run_can_be_used(weir, tmp_path, tmp_run):
    steps = {"one": "echo mid > mid.dat; echo out > out.dat; echo work > work.dat; cp mid.dat tmp",
        "two": "cat mid.dat tmp > sum.txt; rm tmp work.dat; cat sum.txt; echo again > work.dat"}
    for step, script in steps.items():
        command = f"cd {tmp_path}; {script}"
        weir("trace", "-o", tmp_run, "--step", step, "--", "sh", "-c", command).ok()
    text = weir("stage", "suggest", tmp_run, "--tier", tmp_path / "tier").ok().stdout
    found = {one["path"]: one["stack"].split("=")[-1] for one in tomllib.loads(text)["rule"]}
    assert found == {f"{tmp_path}/mid.dat": "async", f"{tmp_path}/out.dat": "async",
        f"{tmp_path}/sum.txt": "async", f"{tmp_path}/tmp": "never",
        f"{tmp_path}/work.dat": "async"}
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    weir("run", "--rules", rules, "--", "true").ok()


@pytest.mark.parametrize(("paths", "pattern"), [
    (["/s/v1/1.0", "/s/v2/1.ab.partial", "/s/v10/0.11"], "/s/v[0-9]*/[0-9]*"),
    (["/s/air/c/0/0", "/s/lat/c/1/2"], "/s/[!.]*/c/[0-9]*/[0-9]*"),
    (["/s/p10.txt", "/s/p11.txt"], "/s/p[0-9]*.txt"),
    (["/s/a", "/s/ab"], "/s/a*"),
    (["/s/.a", "/s/b"], "/s/*"),
    (["/s/a[1.nc", "/s/a[2.nc"], "/s/a[[][0-9]*.nc"),
    (["/s/a", "/s/t/a"], ""),
])
def test_a_narrow_pattern_says_what_each_part_begins_with(paths, pattern):
    assert narrow_pattern(paths) == pattern
    assert not pattern or all(fits(path, pattern) for path in paths)
