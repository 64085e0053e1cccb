# SPDX-License-Identifier: Apache-2.0
"""Rules from a run: what travels from step to step stays on the tier, what nobody reads goes to its
place, the rest is left where it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

from weir.report.flow.compute import CARRIED, INPUT, OUTPUT, UPDATED, FileFlow, Use
from weir.stage.suggest import rules_text, suggestions


def file(name, role, read=0, written=0):
    use = Use(read={0: read} if read else {}, written={0: written} if written else {})
    return FileFlow(0, name, (name,), name, (use,), (), role, False)


def test_each_role_gets_its_rule():
    found = suggestions([file("/s/restart_1.dat", CARRIED, 50, 50),
        file("/s/restart_2.dat", CARRIED, 60, 60), file("/s/wrfout.nc", OUTPUT, 0, 500),
        file("/s/input.nc", INPUT, 900), file("/s/data.base", UPDATED, 70, 70)], "/s")
    rules = tomllib.loads(rules_text(found, Path("/dev/shm/t"), "RUN"))["rule"]
    assert rules == [
        {"path": "/s/wrfout.nc", "stack": "stage:tier=/dev/shm/t:drain=async"},
        {"path": "/s/restart_*.dat", "stack": "stage:tier=/dev/shm/t:drain=never"},
    ]


def test_a_pattern_that_matches_files_of_another_use_is_no_rule():
    found = suggestions([*(file(f"/s/x{n}.dat", CARRIED, 5, 5) for n in (1, 2)),
        file("/s/x.y.dat", UPDATED, 7, 7)], "/s")
    text = rules_text(found, Path("/t"), "RUN")
    assert tomllib.loads(text) == {} and "such as /s/x.y.dat" in text


def test_characters_of_patterns_are_taken_as_they_are():
    (one,) = suggestions([file("/s/a[1]*.dat", CARRIED, 5, 5)], "/s")
    assert one.path == "/s/a[[]1][*].dat"


def test_a_run_without_such_files_is_said():
    assert "No file is written" in rules_text([], Path("/t"), "RUN")


def test_the_rules_of_a_run_can_be_used(weir, tmp_path, tmp_run):
    steps = {"one": "echo mid > mid.dat; echo out > out.dat", "two": "cat mid.dat > sum.txt"}
    for step, script in steps.items():
        command = f"cd {tmp_path}; {script}"
        weir("trace", "-o", tmp_run, "--step", step, "--", "sh", "-c", command).ok()
    text = weir("stage", "suggest", tmp_run, "--tier", tmp_path / "tier").ok().stdout
    found = {one["path"]: one["stack"].split("=")[-1] for one in tomllib.loads(text)["rule"]}
    assert found == {f"{tmp_path}/mid.dat": "never", f"{tmp_path}/out.dat": "async",
        f"{tmp_path}/sum.txt": "async"}
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    weir("run", "--rules", rules, "--", "true").ok()
