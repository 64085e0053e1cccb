# SPDX-License-Identifier: Apache-2.0
"""weir trace, as a user calls it."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import time

import pytest

SHOW = "echo \"$WEIR_TRACE_DIR|$WEIR_LEVEL|$WEIR_BUDGET|${LD_PRELOAD##*/}\""


def job_of(directory) -> dict:
    return json.loads((directory / "job.json").read_text())


def test_defaults_are_the_directory_weir_run_and_the_step_main(weir, tmp_path):
    done = weir("trace", "cat", "/etc/passwd", cwd=tmp_path).ok()
    directory = tmp_path / "weir-run" / "main"
    assert len(list(directory.glob("*.weir"))) == 1
    job = job_of(directory)
    assert (job["step"], job["level"], job["budget_bytes"]) == ("main", "trace", 4 << 30)
    assert job["command"] == ["cat", "/etc/passwd"] and job["cwd"] == str(
        tmp_path) and job["exit_status"] == 0
    assert done.stderr.startswith("weir: 1 process, ") and done.stderr.count("\n") == 1
    assert f"records in {directory}; look with: weir report weir-run" in done.stderr


@pytest.mark.parametrize("share, mode", [((), 0o600), (("--share", "group"), 0o640),
    (("--share", "all"), 0o644)])
def test_a_trace_is_its_owners_alone_unless_he_shares_it(weir, tmp_run, share, mode):
    weir("trace", *share, "-o", tmp_run, "true").ok()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_run / "main").iterdir()} == {mode}
    assert weir("trace", "--share", "nobody", "-o", tmp_run, "true").returncode == 2


@pytest.mark.parametrize("level", ["summary", "detail", "trace"])
def test_options_reach_the_program(weir, tmp_path, level):
    done = weir("trace", "--level", level, "--budget", "2M", "--step", "s1", "-o", "r", "--", "sh",
        "-c", SHOW, cwd=tmp_path)
    assert done.ok().stdout == f"{tmp_path}/r/s1|{level}|{2 << 20}|libweir-preload.so\n"
    assert ("calls in counters" if level != "trace" else "records") in done.stderr
    assert job_of(tmp_path / "r" / "s1")["level"] == level


def test_quiet_says_nothing_when_all_went_well(weir, tmp_run):
    assert weir("trace", "--quiet", "-o", tmp_run, "true").ok().stderr == ""


def test_options_of_the_command_are_not_weirs(weir, tmp_run):
    done = weir("trace", "-o", tmp_run, "echo", "--level", "nonsense", "-o", "--", "x").ok()
    assert done.stdout == "--level nonsense -o -- x\n"


@pytest.mark.parametrize("name", ["it's $HOME", "Lauf ü 日本", "a  b", "-run", 'q"uote'])
def test_names_with_blanks_and_other_letters(weir, tmp_path, name):
    run = tmp_path / name
    step = name.lstrip("-")
    done = weir("trace", "-o", run, "--step", step, "--", "cat", "/etc/passwd").ok()
    assert len(list((run / step).glob("*.weir"))) == 1
    assert f" in {run / step};" in done.stderr
    assert json.loads(weir("report", run, "--json").ok().stdout)["steps"][0]["name"] == step


def test_an_argument_that_is_not_text_is_passed_on_and_kept(weir, tmp_path):
    name = os.fsdecode(b"\xff\xfe.txt")
    (tmp_path / name).write_text("found")
    assert weir("trace", "-o", "run", "--", "cat", name, cwd=tmp_path).ok().stdout == "found"
    assert job_of(tmp_path / "run" / "main")["command"] == ["cat", name]


def test_a_second_trace_of_a_step_is_refused_and_the_command_not_run(weir, tmp_path):
    weir("trace", "-o", "run", "true", cwd=tmp_path).ok()
    before = (tmp_path / "run" / "main" / "job.json").read_text()
    done = weir("trace", "-o", "run", "touch", "made", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds a trace already" in done.stderr and "--overwrite" in done.stderr
    assert not (tmp_path / "made").exists() and (tmp_path / "run" / "main" / "job.json").read_text(
        ) == before


def test_overwrite_renews_one_step_and_keeps_the_others(weir, tmp_path):
    for step in ("a", "b"):
        weir("trace", "-o", "run", "--step", step, "true", cwd=tmp_path).ok()
    kept = job_of(tmp_path / "run" / "b")
    weir("trace", "-o", "run", "--step", "a", "--overwrite", "false", cwd=tmp_path)
    assert job_of(tmp_path / "run" / "a")["command"] == ["false"] and job_of(tmp_path / "run"
        / "b") == kept


@pytest.mark.parametrize(("status", "expected"), [(0, 3), (1, 1), (9, 9)])
def test_where_no_trace_can_be_written_the_command_runs_without_one(weir, tmp_path, status,
        expected):
    (tmp_path / "file").write_text("")
    script = f"{SHOW}; exit {status}"
    done = weir("trace", "-o", tmp_path / "file" / "run", "--", "sh", "-c", script)
    assert done.returncode == expected
    assert done.stdout == "|||\n"
    assert done.stderr.count("\n") == 1
    assert (
        "cannot be written here: Not a directory; the program runs without a trace" in done.stderr
    )


def test_a_command_killed_without_a_trace_gives_its_own_status(weir, tmp_path):
    (tmp_path / "file").write_text("")
    assert weir("trace", "-o", tmp_path / "file" / "run", "--", "sh", "-c",
        "kill -TERM $$").returncode == 143
    assert weir("trace", "-o", tmp_path / "file" / "run", "--", "no-such-command").returncode == 127


@pytest.fixture
def in_mount(execute, tmp_path):
    """``in_mount("size=64k", "command")`` runs a command with tmp_path/m as a file system of its
    own; needs root."""
    if execute(["unshare", "-m", "true"]).returncode != 0:
        pytest.skip("no mount namespaces here (needs root)")
    weir_command = os.path.join(os.path.dirname(sys.executable), "weir")
    (tmp_path / "m").mkdir()

    def call(options: str, script: str):
        setup = (
            f'mount -t tmpfs -o {options} none "$1"/m && cd "$1" && weir() {{ "{weir_command}" '
            f'"$@"; }} && '
        )
        return execute(["unshare", "-m", "bash", "-c", setup + script, "bash", tmp_path])

    return call


def test_on_a_read_only_or_full_disk_the_command_runs_without_a_trace(in_mount):
    done = in_mount("ro", "weir trace -o m/run echo ran")
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert (
        "Read-only file system; the program runs without a trace" in done.stderr
        and done.stderr.count("\n") == 1
    )
    done = in_mount("size=64k", "weir trace -o m/run echo ran")
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert (
        "No space left on device; the program runs without a trace" in done.stderr
        and done.stderr.count("\n") == 1
    )


def test_a_disk_that_becomes_full_leaves_a_complete_job_file(in_mount):
    script = (
        "weir trace -o m/run -- sh -c 'cat /dev/zero > m/fill; exit 5' 2>m/../said; echo $?; cat "
        "m/run/main/job.json"
    )
    done = in_mount("size=2m", script)
    status, _, text = done.stdout.partition("\n")
    assert status == "5" and json.loads(text)["exit_status"] == 5, done.stderr


def test_a_program_that_removes_its_trace_is_reported(weir, tmp_path):
    done = weir("trace", "-o", "run", "--", "rm", "-r", "run", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr == f"weir: no trace: {tmp_path}/run/main was removed while the program ran\n"


def test_a_program_that_cannot_be_seen_is_said_with_where_to_ask(weir, tmp_run, cc):
    program = cc('#include <stdio.h>\nint main(void){puts("ran");return 0;}', "-static",
        name="static")
    done = weir("trace", "-o", tmp_run, "--", program)
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert "no trace: " in done.stderr and f"weir doctor {program}" in done.stderr
    assert job_of(tmp_run / "main")["exit_status"] == 0


def test_the_signal_of_a_program_that_left_no_trace_is_said(weir, tmp_run, cc):
    program = cc("#include <signal.h>\nint main(void){return raise(SIGSEGV);}", "-static",
        name="crashes")
    done = weir("trace", "-o", tmp_run, "--", program)
    assert f"no trace: {program} was killed by SIGSEGV before it recorded anything" in done.stderr
    assert "static" not in done.stderr.replace(str(program), "")


def test_the_report_of_a_launch_that_was_killed_states_it(weir, tmp_run, tmp_path):
    done = weir("trace", "-o", tmp_run, "--", "sh", "-c",
        "sleep 0.2; echo text >file; kill -9 $PPID; echo more >file", cwd=tmp_path)
    assert done.returncode == -9
    for _ in range(100):  # the shell goes on for a moment
        done = weir("report", tmp_run)
        if "`weir trace` was killed before it saw the command end" in done.ok().stdout:
            break
        time.sleep(0.1)
    else:
        raise AssertionError(done.stdout)
    assert "the end of the program is not known" in done.stdout
    shown = json.loads(weir("report", tmp_run, "--json").ok().stdout)
    assert shown["total"]["wall_s"] >= 0.2


def test_an_environment_that_was_cleaned_is_said(weir, tmp_run):
    done = weir("trace", "-o", tmp_run, "--", sys.executable, "-c",
        "import os; os.execve('/bin/sh', ['sh', '-c', 'exit 4'], {})")
    assert done.returncode == 4 and "1 process" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--level", "full", "true"], "--level full: there is no such level"),
        (["--budget", "lots", "true"], "--budget lots: not a number of bytes"),
        (["--budget", "1K", "true"], "the smallest trace file"),
        (["--step", "a/b", "true"], "the name contains a slash"),
        (["--step", "..", "true"], "the name begins with a dot"),
        (["--step", "--", "true"],
            "--step '--': the name begins with a dash, as options do; was it left out?"),
        (["-o", "--", "true"],
            "-o '--': the directory's name begins with a dash, as options do; was it left out?"),
        (["--no-such-option", "true"], "--no-such-option"),
        ([], "Missing argument"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_made(weir, tmp_path, arguments, text):
    done = weir("trace", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and text in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_launch_within_a_launch_records_into_its_own_step(weir, tmp_path):
    inner = os.path.join(os.path.dirname(sys.executable), "weir")
    script = [inner, "trace", "-q", "-o", "inner", "--level", "detail", "--", "sh", "-c", SHOW]
    done = weir("trace", "-o", "outer", "--", "sh", "-c", shlex.join(script), cwd=tmp_path).ok()
    assert done.stdout == f"{tmp_path}/inner/main|detail|{4 << 30}|libweir-preload.so\n"
    for run in ("inner", "outer"):
        assert len(list((tmp_path / run / "main").glob("*.weir"))) == 1
    commands = [p["command"]
        for p in json.loads(weir("report", tmp_path / "inner", "--json").ok().stdout)["processes"]]
    assert commands and all("weir" not in c for c in commands)


def test_a_launch_within_a_launch_does_not_touch_the_step_it_is_in(weir, tmp_path):
    inner = os.path.join(os.path.dirname(sys.executable), "weir")
    script = f"cat /etc/passwd >/dev/null; {inner} trace -o run --overwrite true"
    done = weir("trace", "-o", "run", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 2 and "itself traced into that step" in done.stderr
    assert len(list((tmp_path / "run" / "main").glob("*.weir"))) == 1


WEIR = os.path.join(os.path.dirname(sys.executable), "weir")


@pytest.mark.parametrize("inner", [[WEIR], [sys.executable, WEIR]], ids=["script", "python"])
def test_a_launch_right_within_a_launch_of_the_same_step_is_refused(weir, tmp_path, inner):
    done = weir("trace", "-o", "run", "--", *inner, "trace", "-o", "run", "touch", "made",
        cwd=tmp_path)
    assert done.returncode == 2 and "itself traced into that step" in done.stderr
    assert not (tmp_path / "made").exists()
    assert job_of(tmp_path / "run" / "main")["command"][-2:] == ["touch", "made"]
    assert job_of(tmp_path / "run" / "main")["exit_status"] == 2


@pytest.mark.parametrize("status", [0, 7])
@pytest.mark.parametrize("inner", [[WEIR], [sys.executable, WEIR]], ids=["script", "python"])
def test_a_launch_right_within_a_launch_records_the_inner_one_alone_and_says_so(weir, tmp_path,
        inner, status):
    done = weir("trace", "-o", "a", "--", *inner, "trace", "-o", "b", "--", "sh", "-c",
        f"exit {status}", cwd=tmp_path)
    assert done.returncode == status
    said = done.stderr.splitlines()
    assert len(said) == 2 and said[0].startswith("weir: 1 process, ")
    assert said[1] == f"weir: nothing in {tmp_path}/a/main: weir's own commands are not recorded"
    assert len(list((tmp_path / "b" / "main").glob("*.weir"))) == 1


def test_a_program_that_happens_to_be_named_weir_is_no_excuse(weir, tmp_path, tmp_run, cc):
    program = cc("int main(void){return 0;}", "-static", name="weir")
    done = weir("trace", "-o", tmp_run, "--", program)
    assert done.returncode == 3 and "a static or setuid program" in done.stderr


def test_a_program_built_with_the_address_sanitizer_is_named_as_such(weir, tmp_run, cc):
    try:
        program = cc("#include <stdio.h>\nint main(void){return puts(\"ran\") < 0;}",
            "-fsanitize=address", name="checked")
    except AssertionError:
        pytest.skip("no -fsanitize=address for this compiler")
    done = weir("trace", "-o", tmp_run, "--", program)
    assert done.returncode == 1 and "static or setuid" not in done.stderr
    assert f"no trace: {program}: it is built with AddressSanitizer" in done.stderr
    allowed = {"ASAN_OPTIONS": "verify_asan_link_order=0"}  # as the message advises
    assert weir("trace", "-o", tmp_run, "--overwrite", "--", program,
        env=allowed).ok().stdout == "ran\n"


def test_a_preload_library_of_the_caller_stays_behind_weirs(weir, tmp_run, cc):
    other = cc("int weir_other = 1;", "-shared", "-fPIC", name="libother.so")
    done = weir("trace", "-q", "-o", tmp_run, "--", "sh", "-c", 'echo "$LD_PRELOAD"',
        env={"LD_PRELOAD": str(other)}).ok()
    first, second = done.stdout.strip().split(":")
    assert first.endswith("/libweir-preload.so") and second == str(other)


def test_all_ranks_of_an_mpi_program_are_in_one_trace(weir, tmp_run, mpi):
    command = mpi.launch(2, "sh", "-c", "cat /etc/passwd >/dev/null")
    done = weir("trace", "-o", tmp_run, "--", *command, env=mpi.env, timeout=120).ok()
    report = json.loads(weir("report", tmp_run, "--json").ok().stdout)
    assert report["steps"][0]["ranks"] == 2, done.stderr


CLOSED = """
import os, sys
for number in range(3):
    try:
        os.fstat(number)
    except OSError:
        open(sys.argv[1], "a").write(str(number))
sys.exit(7)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["trace -o run --", "run -r rules.toml --"])
def test_a_program_finds_closed_streams_closed_and_its_status_counts(execute, tmp_path, command,
        closed):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "*.dat"\nstack = "bufa"\n')
    (tmp_path / "program.py").write_text(CLOSED)
    line = f"{WEIR} {command} {sys.executable} program.py found {closed}"
    assert execute(["sh", "-c", line], cwd=tmp_path).returncode == 7
    numbers = {"<&-": "0", ">&-": "1", "2>&-": "2"}
    assert (tmp_path / "found").read_text() == "".join(numbers[one] for one in closed.split())


def test_a_report_without_standard_output_is_an_error(execute, weir, tmp_run):
    weir("trace", "-o", tmp_run, "--", "true").ok()
    refused = execute(["sh", "-c", f"{WEIR} report {tmp_run} >&-"])
    assert refused.returncode == 3 and "standard output cannot be written" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_line_that_shows_a_run_can_be_pasted(execute, tmp_path):
    traced = execute([WEIR, "trace", "-o", os.fsdecode(b"\xff'\xfe"), "--", "true"], cwd=tmp_path)
    line = traced.stderr.rpartition("look with: weir ")[2].strip()
    assert line == r"report $'\xff\'\xfe'"
    execute(["bash", "-c", f"{WEIR} {line}"], cwd=tmp_path).ok()
