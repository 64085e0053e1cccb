# SPDX-License-Identifier: Apache-2.0
"""weir env: what it prints, evaluated by real shells."""

from __future__ import annotations

import json
import shutil

import pytest

from weir import UsageError
from weir.capture._environment import VARIABLES
from weir.capture._shell import check_shell, end_lines

SET_BY_ENV = [*(v.name for v in VARIABLES if v.launcher), "LD_PRELOAD"]
ODD = "it's $HOME `x` \"q\" \\ ! * ü\n2"


def evaluated(execute, shell, lines: str, script: str, env=None):
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} on this machine")
    return execute([path, "-c", f'{lines}\n{script}'], env=env)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "ksh", "zsh"])
def test_lines_carry_any_directory_name_through_a_shell(weir, execute, tmp_path, shell):
    run = tmp_path / ODD
    lines = weir("env", "-q", "-o", run, "--step", "a b").ok().stdout
    script = "printf '%s|%s|%s' \"$WEIR_TRACE_DIR\" \"$WEIR_LEVEL\" \"$WEIR_BUDGET\""
    done = evaluated(execute, shell, lines, script).ok()
    assert done.stdout == f"{run}/a b|trace|{4 << 30}"


def test_lines_carry_any_directory_name_through_csh(weir, execute, tmp_path):
    run = tmp_path / "it's $HOME `x` ! ü"
    lines = weir("env", "-q", "-o", run, "--shell", "csh").ok().stdout
    assert all(line.startswith("setenv ") and line.endswith(";") for line in lines.splitlines())
    path = shutil.which("tcsh") or shutil.which("csh")
    if path is None:
        pytest.skip("no csh or tcsh on this machine")
    assert execute([path, "-f", "-c", f"{lines}\nprintenv WEIR_TRACE_DIR"]).ok(
        ).stdout == f"{run}/main\n"


def test_nothing_but_exports_goes_to_standard_output(weir, tmp_run):
    done = weir("env", "-o", tmp_run, "--level", "detail", "--budget", "1M",
        env={"LD_PRELOAD": ""}).ok()
    lines = done.stdout.splitlines()
    assert [line.split("=")[0] for line in lines] == [
        "export LD_PRELOAD", "export WEIR_TRACE_DIR", "export WEIR_LEVEL", "export WEIR_BUDGET",
        "export WEIR_LAUNCH"
    ]  # fmt: skip
    assert lines[2:] == ["export WEIR_LEVEL=detail", "export WEIR_BUDGET=1048576",
        "export WEIR_LAUNCH=0"]
    assert done.stderr == f"weir: tracing into {tmp_run}/main\n"
    assert weir("env", "-q", "-o", tmp_run, "--step", "b").ok().stderr == ""


def test_eval_as_documented_traces_what_follows_and_off_ends_it(weir, execute, tmp_path, root):
    weir_path = root / ".venv" / "bin" / "weir"
    if not weir_path.exists():
        pytest.skip("no .venv in the source tree")
    (tmp_path / "in.txt").write_text("data\n")
    script = f"""
        set -e
        eval "$({weir_path} env -q --step one -o run)"
        cat in.txt
        eval "$({weir_path} env -q --step two -o run)"
        cat in.txt in.txt
        eval "$({weir_path} env --off)"
        cat in.txt
        echo "<$LD_PRELOAD><$WEIR_TRACE_DIR>"
    """
    done = execute(["bash", "-c", script], cwd=tmp_path).ok()
    assert done.stdout == "data\n" * 4 + "<><>\n"
    for step in ("one", "two"):
        job = json.loads((tmp_path / "run" / step / "job.json").read_text())
        assert job["command"] is None and job["exit_status"] is None and job["cwd"] == str(tmp_path)
        assert job["ended_realtime_ns"] > job["started_realtime_ns"]
        assert len(list((tmp_path / "run" / step).glob("*.weir"))) == 1


def test_a_step_that_cannot_be_had_does_not_go_on_with_the_one_before(weir, tmp_path):
    (tmp_path / "file").write_text("")
    for arguments, status in ((["-o", tmp_path / "file" / "x"], 3), (["--step", "a/b"], 2),
            (["--budget", "1"], 2), (["--level", "x"], 2)):
        done = weir("env", *arguments)
        assert done.returncode == status
        assert done.stdout.splitlines() == [f"unset {name}" for name in SET_BY_ENV]
        assert done.stderr.startswith("weir: ") and done.stderr.count("\n") == 1


def test_off_leaves_other_preloaded_libraries(execute):
    library = "/opt/libweir-preload.so"
    assert end_lines({"LD_PRELOAD": f"{library}:/a b.so"}, "sh")[-1] == "export LD_PRELOAD=/a:b.so"
    assert end_lines({"LD_PRELOAD": library}, "sh")[-1] == "unset LD_PRELOAD"
    assert end_lines({}, "csh") == [f"unsetenv {name};" for name in SET_BY_ENV]


def test_a_shell_it_does_not_know_is_named(weir):
    done = weir("env", "--shell", "fish")
    assert (done.returncode, done.stdout) == (2,
        "") and "--shell fish: one of sh, csh is known" in done.stderr
    with pytest.raises(UsageError):
        check_shell("")


def test_a_step_without_a_trace_yet_can_be_begun_twice(execute, tmp_path, root):
    weir_path = root / ".venv" / "bin" / "weir"
    if not weir_path.exists():
        pytest.skip("no .venv in the source tree")
    begin = f'eval "$({weir_path} env -q --step a -o run)"'
    script = f"{begin}; {begin}; cat /etc/passwd >/dev/null; {weir_path} trace -o run --step a true"
    done = execute(["bash", "-c", script], cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count(
        "\n") == 1 and "itself traced into that step" in done.stderr
    assert len(list((tmp_path / "run" / "a").glob("*.weir"))) == 1
