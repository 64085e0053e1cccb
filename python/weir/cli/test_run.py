# SPDX-License-Identifier: Apache-2.0
"""weir run, and --rules of weir trace and weir env, as a user calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from weir_process import run

SHOW = 'printf "%s|" "$WEIR_RULES" "$WEIR_TRACE_DIR" "${LD_PRELOAD##*/}"'
NO_OTHERS = {"FILENV": None, "IOBUF_PARAMS": None, "MPICH_MPIIO_HINTS": None}
RULES = '[[rule]]\nname = "traj*"\nstack = "bufa:256:2"\n'
COMPILED = "weir-rules 1\nrule source=r.toml:1:1 name=traj* stack=bufa:1048576:2|system\n"
TRACED = COMPILED.replace("stack=bufa:1048576:2|", "stack=event|bufa:1048576:2|event|")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "r.toml").write_text(RULES)
    return tmp_path


@pytest.fixture
def call(weir, here):
    def run(*arguments, env=None, **keywords):
        return weir(*arguments, cwd=here, env={**NO_OTHERS, **(env or {})}, **keywords)

    return run


def test_what_is_run_has_the_compiled_rules_and_no_trace(call, here):
    done = call("run", "--rules", "r.toml", "--", "sh", "-c", SHOW).ok()
    assert done.stdout == f"{COMPILED}||libweir-preload.so|" and done.stderr == ""
    assert [p.name for p in here.iterdir()] == ["r.toml"]


def test_with_a_trace_the_layers_are_seen_from_above_and_below(call, here):
    for arguments in (["run", "--trace", "t"], ["trace", "-o", "t", "--step", "again"]):
        done = call(*arguments, "--rules", "r.toml", "--", "sh", "-c", SHOW).ok()
        step = "again" if "again" in arguments else "main"
        assert done.stdout == f"{TRACED}|{here}/t/{step}|libweir-preload.so|"
        assert json.loads((here / "t" / step / "job.json").read_text())["exit_status"] == 0


def test_a_trace_around_a_run_sees_its_layers(call, here):
    call("run", "--rules", "r.toml", "--", "sh", "-c", SHOW, env={"WEIR_TRACE_DIR": str(here)}).ok(
        ).stdout.startswith(TRACED)


def test_where_no_trace_can_be_written_the_layers_are_there_all_the_same(call, here):
    done = call("run", "--trace", "r.toml/x", "--rules", "r.toml", "--", "sh", "-c", SHOW)
    traced = COMPILED.replace("stack=bufa:1048576:2|", "stack=event|bufa:1048576:2|event|")
    assert (done.returncode, done.stdout) == (3, f"{traced}||libweir-preload.so|")
    assert "the program runs without a trace" in done.stderr


@pytest.mark.parametrize(("script", "status"),
    [("exit 0", 0), ("exit 9", 9), ("kill -TERM $$", 143)])
def test_the_commands_exit_status_is_weirs(call, script, status):
    assert call("run", "--rules", "r.toml", "--", "sh", "-c", script).returncode == status


def test_a_command_that_does_not_exist_is_said(call):
    done = call("run", "--rules", "r.toml", "no-such-command")
    assert done.returncode == 127 and "no-such-command" in done.stderr


def test_mistakes_are_said_before_anything_is_started(call, here):
    (here / "bad.toml").write_text('[[rule]]\nname = "x"\nstack = "bufaa"\n')
    (here / "worse.toml").write_text("[[rule]]\n")
    for arguments in (["run"], ["run", "--trace", "t"], ["trace", "-o", "t"], ["env"],
            ["env", "--no-trace"]):
        command = [] if arguments[0] == "env" else ["touch", "made"]
        done = call(*arguments, "--rules", "bad.toml", "--rules", "worse.toml", *command)
        assert done.returncode == 2, done.stderr
        assert (
            "bad.toml:3:10: there is no layer 'bufaa'; did you mean bufa?\n"
            "    stack = \"bufaa\"\n             ^\n" in done.stderr
        )
        assert "worse.toml:1:1: this rule has no stack" in done.stderr
        assert "export" not in done.stdout
    assert sorted(p.name for p in here.iterdir()) == ["bad.toml", "r.toml", "worse.toml"]


def test_without_any_rules_nothing_is_started(call, here):
    done = call("run", "touch", "made")
    assert done.returncode == 2 and "there are no rules: name a file with --rules" in done.stderr
    (here / "empty.toml").write_text("# nothing yet\n")
    done = call("run", "--rules", "empty.toml", "touch", "made")
    assert done.returncode == 2 and "empty.toml: there are no rules" in done.stderr
    assert not (here / "made").exists()


def test_assignments_and_iobuf_params_are_used_without_rules(call, here):
    call("assign", "-F", "cos:48", "f:x").ok()
    done = call("run", "--verbose", "--", "sh", "-c", SHOW,
        env={"IOBUF_PARAMS": "*.nc:size=8M"}).ok()
    assert done.stdout.startswith(
        "weir-rules 1\nrule source=.assign:1:1 name=x stack=cos:196608|system\n"
        "rule source=IOBUF_PARAMS:1:1 name=*.nc stack=bufa:8388608:4|system\n|"
    )
    assert done.stderr == "weir: 2 rules from .assign, then IOBUF_PARAMS\n"


@pytest.mark.parametrize("text",
    ['[[rule]]\nname = "x"\nstack = "bufa"\n', "assign -F bufa f:x\n"])
def test_rules_are_read_from_a_pipe(call, here, text):
    (here / "text").write_text(text)
    done = call("run", "--rules", "/dev/stdin", "--", "sh", "-c", SHOW, input=text).ok()
    assert "name=x stack=bufa" in done.stdout
    script = 'exec "$0" run --rules <(cat text) -- sh -c "$1"'
    done = run(["bash", "-c", script, str(Path(sys.executable).parent / "weir"), SHOW],
        cwd=here).ok()
    assert "name=x stack=bufa" in done.stdout


def test_rules_that_can_never_match_are_warned_of_unless_quiet(call, here):
    (here / "two.toml").write_text(RULES + RULES)
    done = call("run", "--rules", "two.toml", "true").ok()
    assert done.stderr == (
        "weir: warning: two.toml:4:1: this rule can never match: two.toml:1:1 comes first and "
        "takes all its files\n"
    )
    assert call("run", "--quiet", "--rules", "two.toml", "true").ok().stderr == ""


def test_more_rules_than_fit_are_refused(call, here):
    (here / "many.toml").write_text("".join(f'[[rule]]\nname = "file{n:05}"\nstack = "bufa"\n'
        for n in range(1000)))
    done = call("run", "--rules", "many.toml", "touch", "made")
    assert (
        done.returncode == 2
        and "many.toml:2998:1: 1000 rules compile to " in done.stderr
        and "65,536" in done.stderr
    )
    assert not (here / "made").exists()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_lines_for_a_shell_give_layers_and_take_them_away(call, execute, here, shell):
    (here / "r.toml").write_text(RULES + '[[rule]]\nname = "it\'s $x %\\n!"\nstack = "cos"\n')
    lines = call("env", "--rules", "r.toml", "--no-trace").ok()
    assert lines.stderr == "" and "WEIR_TRACE_DIR" not in lines.stdout
    off = call("env", "--off", env={"WEIR_RULES": "x"}).ok().stdout
    assert "unset WEIR_RULES" in off
    script = f'{lines.stdout}\n{SHOW}\n{off}\necho "<$WEIR_RULES><$LD_PRELOAD>"'
    done = execute([shell, "-c", script]).ok()
    assert done.stdout == (
        f"{COMPILED}rule source=r.toml:4:1 name=it's%20$x%20%25%0A! "
        f"stack=cos:196608|system\n||libweir-preload.so|<><>\n"
    )
    traced = call("env", "--rules", "r.toml", "-o", "t").ok()
    assert "export WEIR_TRACE_DIR=" in traced.stdout and "stack=event|bufa" in traced.stdout


@pytest.mark.parametrize(
    ("arguments", "text"), [(["--no-trace"], "--no-trace goes with --rules"),
        (["--off", "--rules", "r.toml"], "leave --rules out")]
)
def test_lines_that_make_no_sense_are_refused(call, arguments, text):
    done = call("env", *arguments)
    assert done.returncode == 2 and text in done.stderr and done.stdout == ""


def test_the_ranks_of_an_mpi_program_get_the_rules_as_they_are(call, mpi, here):
    rules = RULES + '[[hints]]\nname = "wrf; *"\ninfo = "cb_nodes=4:striping_factor=16"\n'
    (here / "r.toml").write_text(rules)
    script = 'printf "%s" "$WEIR_RULES" > rules.$$'
    call("run", "--rules", "r.toml", "--", *mpi.launch(2, "sh", "-c", script), env=mpi.env,
        timeout=120).ok()
    found = [p.read_text() for p in here.glob("rules.*")]
    assert found == [
        f"{COMPILED}hints source=r.toml:4:1 name=wrf;%20* "
        "info=cb_nodes=4;striping_factor=16\n"] * 2


def test_a_program_that_gets_no_layers_is_named_when_it_has_ended(call, cc, here):
    static = cc("#include <stdio.h>\nint main(void) { return puts(\"done\") < 0; }\n", "-static",
        name="static")
    dynamic = cc("int main(void) { return 0; }\n", name="dynamic")
    for launcher in ([], ["env", "A=1"]):
        done = call("run", "--rules", "r.toml", "--", *launcher, static).ok()
        assert done.stdout == "done\n"
        assert done.stderr == (
            f"weir: {static}: its files had no layers: it is statically linked (see: weir doctor "
            f"{static})\n"
        )
    assert call("run", "--rules", "r.toml", "--", dynamic, "/bin/sh").ok().stderr == ""
