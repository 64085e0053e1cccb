# SPDX-License-Identifier: Apache-2.0
"""weir assign, as a user calls it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from weir_process import clean_environment

NO_OTHERS = {"FILENV": None, "IOBUF_PARAMS": None, "MPICH_MPIIO_HINTS": None}


@pytest.fixture
def assign(weir, tmp_path):
    """``assign("-F", "bufa", "f:x")`` in a directory of its own."""

    def call(*arguments, env=None, **keywords):
        return weir("assign", *arguments, cwd=tmp_path, env={**NO_OTHERS, **(env or {})},
            **keywords)

    return call


def test_what_is_assigned_is_shown_as_it_was_written(assign, tmp_path):
    assign("-F", "bufa:256:2", "f:trajgrid*").ok()
    assign("-F", "event | cos:48", "u:61", "g:su").ok()
    assert assign("-V").ok().stdout == (
        "assign -F bufa:256:2 'f:trajgrid*'\nassign -F 'event | cos:48' u:61\nassign -F 'event | "
        "cos:48' g:su\n"
    )
    assert assign("-V", "u:61").ok().stdout == "assign -F 'event | cos:48' u:61\n"
    assert (tmp_path / ".assign").read_text() == assign("-V").stdout
    assert [p.name for p in tmp_path.iterdir()] == [".assign"]


def test_a_new_assignment_replaces_and_an_incremental_one_adds(assign):
    assign("-F", "bufa:256:2", "--mode", "read", "f:x").ok()
    assign("-I", "--ranks", "0-3", "f:x").ok()
    assert assign("-V").stdout == "assign -F bufa:256:2 --mode read --ranks 0-3 f:x\n"
    assign("-I", "-F", "cos:48", "--mode", "write", "f:x").ok()
    assert assign("-V").stdout == "assign -F cos:48 --mode write --ranks 0-3 f:x\n"
    assign("-O", "-F", "bufa", "f:x").ok()
    assert assign("-V").stdout == "assign -F bufa f:x\n"


def test_what_is_removed_is_gone(assign):
    assign("-F", "bufa", "f:x", "f:y", "u:1").ok()
    assign("-R", "f:x", "u:1").ok()
    assert assign("-V").stdout == "assign -F bufa f:y\n"
    assign("-R").ok()
    assert assign("-V").ok().stdout == ""


@pytest.mark.parametrize("variable", ["WEIR_ASSIGN_FILE", "FILENV"])
def test_the_file_is_where_the_environment_says(assign, tmp_path, variable):
    env = {variable: str(tmp_path / "mine")}
    assign("-F", "bufa", "f:x", env=env).ok()
    assert (tmp_path / "mine").read_text() == "assign -F bufa f:x\n" and not (tmp_path
        / ".assign").exists()
    assert assign("-V", env={"WEIR_ASSIGN_FILE": str(tmp_path / "mine"),
        "FILENV": "/nowhere/x"}).ok().stdout.endswith("f:x\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-F", "buffa:256:2", "f:x"], "assign:1:11: there is no layer 'buffa'"),
        (["-F", "bufa", "g:sx"], "assign:1:18: there is no g:sx"),
        (["-F", "bufa", "u:x"], "'x' is not a number or a range of units"),
        (["-F", "bufa"], "name an object"),
        (["f:x"], "give layers"),
        (["-I", "f:x"], "give layers"),
        (["-I", "--mode", "read", "f:x"], "f:x has no layers"),
        (["-R", "f:nothing"], "nothing is assigned to f:nothing"),
        (["-V", "f:nothing"], "nothing is assigned to f:nothing"),
        (["-I", "-O", "-F", "bufa", "f:x"], "choose one"),
        (["-V", "-R"], "one at a time"),
        (["-V", "-F", "bufa"], "one at a time"),
        (["-F", "bufa", "--ranks", "5-1", "f:x"], "the range ends before it begins"),
        (["--convert", "json"], "there is no such form"),
        (["--convert", "toml", "f:x"], "leave objects and conditions out"),
        (["--explain", "x", "--ranks", "1"], "--ranks does not describe an open"),
        (["--explain", "x", "--unit", "1-2"], "has one unit"),
        (["--explain", "x", "--mode", "raed"], "did you mean read?"),
        (["--explain", "x", "f:y"], "one file at a time"),
        (["--rank", "1", "-F", "bufa", "f:x"], "describe the open of --explain"),
        (["--rules", "x", "-F", "bufa", "f:x"], "--rules is used with"),
        (["--rules", "absent.toml", "--convert", "toml"], "there is no such file of rules"),
        (["-a", "other", "f:x"], "-a"),
    ],
)
def test_mistakes_are_said_and_change_nothing(assign, tmp_path, arguments, text):
    done = assign(*arguments)
    assert done.returncode == (3 if "absent.toml" in arguments else 2), done.stderr
    assert text in done.stderr and "Traceback" not in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_mistake_is_not_touched(assign, tmp_path):
    (tmp_path / ".assign").write_text("assign -F bufa f:x\nnonsense\n")
    done = assign("-F", "bufa", "f:y")
    assert (
        done.returncode == 2
        and ".assign:2:1: a line of assignments begins with the word assign" in done.stderr
    )
    assert (tmp_path / ".assign").read_text() == "assign -F bufa f:x\nnonsense\n"


def test_a_directory_that_cannot_be_written_is_said(assign, tmp_path):
    done = assign("-F", "bufa", "f:y",
        env={"WEIR_ASSIGN_FILE": str(tmp_path / "no" / "such" / "file")})
    assert (
        done.returncode == 3
        and "the assignments cannot be written: No such file or directory" in done.stderr
    )


def test_assignments_made_at_the_same_time_are_all_kept(tmp_path):
    weir = Path(sys.executable).parent / "weir"
    env = {k: v for k, v in clean_environment().items() if k not in NO_OTHERS}
    running = [subprocess.Popen([weir, "assign", "-F", "bufa", f"u:{n}"], cwd=tmp_path, env=env)
        for n in range(8)]
    assert [p.wait(timeout=600) for p in running] == [0] * 8
    lines = (tmp_path / ".assign").read_text().splitlines()
    assert sorted(lines) == [f"assign -F bufa u:{n}" for n in range(8)]


RULES = """[[rule]]
name = "traj*"
ranks = "1-3"
stack = "cos:48"

[[rule]]
unit = 61
form = "unformatted"
stack = "event | bufa:256:2 | event"

[[rule]]
path = "*/out/*"
mode = "write"
stack = "none"

[[hints]]
name = "traj*"
info = "cb_nodes=4:striping_factor=16"
"""


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "r.toml").write_text(RULES)
    return ["--rules", "r.toml"]


def test_the_explanation_names_the_rule_the_reasons_and_what_it_needs(assign, rules):
    said = assign("--explain", "trajgrid", "--unit", "61", "--form", "unformatted",
        *rules).ok().stdout
    assert (
        "  r.toml:1:1  name=traj* ranks=1-3: no, the program has no rank, not one of 1-3\n" in said
    )
    assert "  r.toml:6:1  unit=61 form=unformatted: matches\n" in said
    assert "stack event | bufa:1MiB:2 | event | system\n" in said
    assert (
        "bytes 1,048,576; memory up to 2MiB for each open file, 4MiB if it is read and written"
        in said
    )
    assert "  r.toml:16:1  name=traj*: matches\n  cb_nodes = 4\n  striping_factor = 16\n" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["traj", "--rank", "2"], "stack cos:192KiB | system"),
        (["out/x", "--mode", "write,create"], "stack none: the file has no layers"),
        (["out/x", "--mode", "read"], "it is opened for read, not write"),
        (["other"], "no rule matches: the file has no layers"),
        (["other", "--unit", "61"], "form is formatted, not unformatted"),
        (["r.toml"], f"opened for read; no rank; {len(RULES)} bytes; file system "),
        (["r.toml", "--size", "2MiB", "--fstype", "lustre"], "2,097,152 bytes; file system lustre"),
    ],
)
def test_the_explanation_follows_the_open(assign, rules, arguments, text):
    assert text in assign("--explain", *arguments, *rules).ok().stdout


def test_rules_are_asked_files_first_then_iobuf_params(assign, rules, tmp_path):
    env = {"IOBUF_PARAMS": "*:size=8M"}
    said = assign("--explain", "x", *rules, env=env).ok().stdout
    assert "rules from r.toml, then IOBUF_PARAMS\n" in said and "stack bufa:8MiB:4 | system" in said
    assign("-F", "bufa", "f:x").ok()
    said = assign("--explain", "x", env=env).ok().stdout
    assert (
        "rules from .assign, then IOBUF_PARAMS\n" in said and "stack bufa:1MiB:4 | system" in said
    )
    (tmp_path / "second.toml").write_text('[[rule]]\nname = "x"\nstack = "cos"\n')
    said = assign("--explain", "x", *rules, "--rules", "second.toml").ok().stdout
    assert "rules from r.toml, then second.toml\n" in said and "stack cos:192KiB | system" in said


def test_rules_convert_into_commands_that_make_them_again(assign, tmp_path, weir):
    (tmp_path / "simple.toml").write_text(
        '[[rule]]\nname = "it\'s *"\nmode = "read"\nstack = "bufa:1MiB:8"\n')
    commands = assign("--convert", "assign", "--rules", "simple.toml").ok().stdout
    assert commands.startswith("weir assign -F ")
    for line in commands.splitlines():
        weir(*shlex.split(line)[1:], cwd=tmp_path, env=NO_OTHERS).ok()
    assert assign("--convert",
        "toml").ok().stdout == (
            '[[rule]]\nname = "it\'s *"\nmode = "read"\nstack = "bufa:1MiB:8 | system"\n'
        )
    done = assign("--convert", "iobuf")
    assert (
        done.returncode == 2
        and ".assign:1:1: IOBUF_PARAMS has patterns alone, no mode" in done.stderr
    )


def test_iobuf_params_convert_with_their_warnings(assign):
    done = assign("--convert", "toml",
        env={"IOBUF_PARAMS": "*.nc:size=8M:count=32:prefetch=1"}).ok()
    assert done.stdout == '[[rule]]\nname = "*.nc"\nstack = "bufa:8MiB:32 | system"\n'
    assert done.stderr == (
        "weir: warning: IOBUF_PARAMS:1:23: prefetch has no counterpart: bufa decides how far it "
        "reads ahead, within its buffers\n"
    )
