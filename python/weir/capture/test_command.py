# SPDX-License-Identifier: Apache-2.0
"""Standing in a command's place: signals reach it once, statuses and descriptors are its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from weir_process import clean_environment, signals_by_default

# Writes a line for each signal it gets, says when it is ready, and ends when it has "end" as a line
# of its own input.
LISTENER = """
import os, signal, sys
def heard(number, frame):
    os.write(1, f"{number}\\n".encode())
for number in (1, 2, 3, 10, 12, 15):
    signal.signal(number, heard)
os.write(1, b"ready %d\\n" % os.getpid())
sys.stdin.readline()
"""


@pytest.fixture
def listening(tmp_path):
    """Starts ``[prefix] weir trace -- LISTENER`` in a session of its own: (process, the listener's
    pid)."""
    started = []

    def start(*prefix: str):
        weir = os.path.join(os.path.dirname(sys.executable), "weir")
        process = subprocess.Popen(
            [*prefix, weir, "trace", "-q", "-o", tmp_path / "run", "--", sys.executable, "-c",
                LISTENER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(),
            start_new_session=True,
            **signals_by_default(),
        )
        started.append(process)
        word, pid = process.stdout.readline().split()
        assert word == "ready"
        return process, int(pid)

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def canary_of(weir: int) -> int | None:
    """The process that tells weir whether a signal reached its whole group."""
    with open(f"/proc/{weir}/task/{weir}/children") as file:
        children = file.read().split()
    for pid in children:
        with suppress(OSError), open(f"/proc/{pid}/stat") as file:
            name, _, fields = file.read().partition("(")[2].rpartition(")")
            if name == "cat" and fields.split()[0] != "Z":
                return int(pid)
    return None


def check_heard(process: subprocess.Popen, *numbers: int) -> None:
    """These signals and no other; then the listener ends."""
    heard = [process.stdout.readline() for _ in numbers]
    time.sleep(0.3)  # a second copy of a signal, were there one, would arrive before the end
    process.stdin.write("end\n")
    process.stdin.flush()
    heard += process.stdout.read().splitlines()
    assert [int(line) for line in heard] == list(numbers)
    assert process.wait(timeout=300) == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1,
    signal.SIGUSR2, signal.SIGTERM])
def test_a_signal_to_weir_alone_reaches_the_command_once(listening, number):
    process, _ = listening()
    process.send_signal(number)
    check_heard(process, number)


def test_a_signal_to_the_whole_group_reaches_the_command_once(listening):
    process, _ = listening()
    os.killpg(process.pid, signal.SIGTERM)
    check_heard(process, signal.SIGTERM)


def test_a_signal_to_the_group_that_comes_late_to_some_reaches_the_command_once(listening):
    """As on a busy machine: who tells weir of it cannot die for a while."""
    process, _ = listening()
    canary = canary_of(process.pid)
    os.kill(canary, signal.SIGSTOP)
    while "\nState:\tT" not in Path(f"/proc/{canary}/status").read_text():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == f"{signal.SIGTERM:d}\n"
    time.sleep(0.5)  # longer than it is looked for in vain
    os.kill(canary, signal.SIGCONT)
    check_heard(process)


def test_signals_after_one_to_the_group_are_passed_on_again(listening):
    process, _ = listening()
    canary = canary_of(process.pid)
    os.killpg(process.pid, signal.SIGUSR1)
    while canary_of(process.pid) in (canary, None):  # until weir knows that it went to the group
        time.sleep(0.01)
    process.send_signal(signal.SIGUSR1)
    assert [process.stdout.readline() for _ in range(2)] == [f"{signal.SIGUSR1:d}\n"] * 2
    os.killpg(process.pid, signal.SIGUSR2)
    check_heard(process, signal.SIGUSR2)


def test_timeout_signals_weir_and_its_group_and_the_command_hears_it_once(listening):
    process, listener = listening("timeout", "100")
    assert parent_of(parent_of(listener)) == process.pid
    process.send_signal(signal.SIGTERM)  # timeout passes it to weir, then to the group
    check_heard(process, signal.SIGTERM)


def test_a_command_killed_by_a_signal_gives_128_plus_n_and_a_complete_job(weir, tmp_run):
    done = weir("trace", "-o", tmp_run, "--", "sh", "-c", "kill -USR1 $$")
    assert done.returncode == 128 + signal.SIGUSR1
    job = json.loads((tmp_run / "main" / "job.json").read_text())
    assert job["exit_status"] == -signal.SIGUSR1 and job["ended_realtime_ns"] >= job[
        "started_realtime_ns"]


def test_a_killed_launch_ends_with_the_commands_status_and_a_complete_job(tmp_run, listening):
    process, pid = listening()
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode == 137
    [path] = tmp_run.parent.glob("run/main/job.json")
    assert json.loads(path.read_text())["exit_status"] == -9


def test_nothing_of_weir_outlives_a_sigkill_to_it(listening):
    process, pid = listening()
    group = process.pid
    process.kill()
    process.wait(timeout=300)
    os.kill(pid, signal.SIGKILL)
    for _ in range(2000):
        if not _alive_in_group(group):
            return
        time.sleep(0.05)
    pytest.fail(f"left behind: {_alive_in_group(group)}")


def _alive_in_group(group: int) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(name)
    return found


@pytest.mark.parametrize("status", [0, 1, 3, 77, 255])
def test_the_commands_exit_status_is_weirs(weir, tmp_run, status):
    assert weir("trace", "-o", tmp_run, "--", "sh", "-c", f"exit {status}").returncode == status
    assert json.loads((tmp_run / "main" / "job.json").read_text())["exit_status"] == status


def test_input_output_and_descriptors_are_the_commands_own(weir, tmp_run):
    script = "cat; echo out; echo err >&2; ls /proc/self/fd | wc -l"
    plain = subprocess.run(["sh", "-c", script], input="in\n", capture_output=True, text=True,
        env=clean_environment())
    done = weir("trace", "-q", "-o", tmp_run, "--", "sh", "-c", script, input="in\n")
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)


def test_signal_dispositions_of_the_command_are_those_without_weir(weir, tmp_run, execute):
    # 32 and 33 are glibc's own: its posix_spawn leaves them ignored, and a program's glibc sets
    # them when it needs them.
    code = (
        "import re; t = open('/proc/self/status').read(); print([hex(int(m, 16) & "
        "0xfffffffe7fffffff) for m in re.findall(r'Sig(?:Blk|Ign):(.*)', t)])"
    )
    command = [sys.executable, "-c", code]
    assert weir("trace", "-q", "-o", tmp_run, "--",
        *command).stdout == execute(command).stdout != ""


def test_a_caller_that_ignores_sigchld_and_sigint_changes_nothing(tmp_path, execute):
    weir = os.path.join(os.path.dirname(sys.executable), "weir")
    code = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
        "signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = "kill -INT $PPID; sleep 0.3; exit 5"
    done = execute([sys.executable, "-c", code, weir, "trace", "-q", "-o", tmp_path / "run", "--",
        "sh", "-c", command])
    assert done.returncode == 5, done.stderr


def test_a_command_that_is_not_there_or_cannot_run_gives_the_shells_status(weir, tmp_path):
    plain, directory, bad = tmp_path / "plain", tmp_path / "directory", tmp_path / "bad"
    plain.write_text("x")
    directory.mkdir()
    bad.write_text("#!/nowhere/at/all\n")
    bad.chmod(0o755)
    for number, (command, status, text) in enumerate(
        [
            ("no-such-command", 127, "no-such-command: command not found"),
            ("./no-such-file", 127, "./no-such-file: no such file"),
            (plain, 126, f"{plain}: not executable"),
            (directory, 126, f"{directory}: is a directory"),
            (bad, 126, "the interpreter that it names does not exist"),
        ]
    ):
        run = tmp_path / f"run{number}"
        done = weir("trace", "-o", run, "--", command, cwd=tmp_path)
        assert done.returncode == status
        assert text in done.stderr and done.stderr.count("\n") == 1
        assert json.loads((run / "main" / "job.json").read_text())["exit_status"] == status


def test_a_script_without_a_first_line_runs_as_in_a_shell(weir, tmp_path):
    script = tmp_path / "job"
    script.write_text('echo "$1 $#"\n')
    script.chmod(0o755)
    done = weir("trace", "-o", tmp_path / "run", "--", script, "a b", "c").ok()
    assert done.stdout == "a b 2\n"
