# SPDX-License-Identifier: Apache-2.0
"""weir watch beside programs that are running: what it counts between two looks, and at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from weir_process import clean_environment, limit

from weir.trace import RunNotFound
from weir.watch.view import screen
from weir.watch.watch import Watch, wait_for

# Executes the commands of standard input, and says when it is done: writes of 1000 bytes to a file.
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char buffer[1000];
int main(void) {
  char line[256], name[200];
  int count;
  while (fgets(line, sizeof line, stdin) && sscanf(line, "%d %199s", &count, name) == 2) {
    int file = open(name, O_CREAT | O_WRONLY | O_APPEND, 0644);
    for (int i = 0; i < count; i++)
      if (write(file, buffer, sizeof buffer) != sizeof buffer) return 1;
    close(file);
    puts("done");
    fflush(stdout);
  }
  return 0;
}
"""


class Driven:
    """A traced program that executes commands."""

    def __init__(self, process: subprocess.Popen):
        self.process = process

    def writes(self, count: int, name: str) -> None:
        self.process.stdin.write(f"{count} {name}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(300) == 0


@contextmanager
def printed(directory: Path, *command: object):
    """Ends the program with the test, whatever happens."""
    process = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=directory, env=clean_environment(), start_new_session=True
    )
    try:
        yield Driven(process)
    finally:
        process.kill()
        process.wait(300)
        process.stdin.close()
        process.stdout.close()


WEIR = Path(sys.executable).parent / "weir"


def all_of(report: str) -> dict:
    return json.loads(report)["total"]


@pytest.mark.parametrize("level", ["trace", "detail"])
def test_a_look_gives_what_was_done_since_the_last_one(weir, cc, tmp_path, level):
    with printed(tmp_path, WEIR, "trace", "--quiet", "--level", level, "-o", "run", "--",
            cc(PROGRAM)) as program:
        watch = wait_for(tmp_path / "run", limit(20))
        program.writes(5, "a")
        first = watch.look()
        assert (first.calls, first.bytes_written, first.bytes_read, first.is_over) == (7, 5000, 0,
            False)
        assert [(Path(one.file).name, one.calls, one.bytes_written) for one in first.files] == [
            ("a", 7, 5000)]
        assert (first.ranks, first.active, first.steps) == (1, (0,), ("main",))
        again = watch.look()
        assert (again.calls, again.ns, again.files, again.active, again.is_over) == (0, 0, (), (),
            False)
        program.writes(2000, "b")
        program.writes(1, "a")
        third = watch.look()
        assert {Path(one.file).name: one.bytes_written for one in third.files} == {"a": 1000,
            "b": 2_000_000}
        assert third.calls == 2005 and third.bytes_written == 2_001_000
        program.end()
        last = watch.look()
    assert last.is_over and last.steps == ()
    whole = all_of(weir("report", tmp_path / "run", "--json").ok().stdout)
    assert (last.so_far.calls, last.so_far.bytes) == (whole["calls"], whole["bytes"]) == (2012,
        2_006_000)


def test_the_command_prints_lines_and_ends_with_the_run(weir, cc, execute, tmp_path):
    with printed(tmp_path, WEIR, "trace", "--quiet", "-o", "run", "--", cc(PROGRAM)) as program:
        with subprocess.Popen(
            [str(WEIR), "watch", "run", "--interval", "0.1", "--wait", str(limit(20))],
            stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=clean_environment()
        ) as watching:
            program.writes(30, "a")
            first = watching.stdout.readline()
            program.writes(40, "b")
            program.end()
            rest = watching.stdout.read()
            assert watching.wait(300) == 0
    lines = (first + rest).splitlines()
    assert all("MB/s written" in line for line in lines[:-1]) and " ended: " in lines[-2]
    assert lines[-1].startswith("over: 74 calls, 0.070 MB, ")


@pytest.mark.mpi
def test_ranks_of_a_parallel_program(weir, mpi, tmp_path):
    program = mpi.cc(
        "#include <mpi.h>\n#include <stdio.h>\nint main(int c, char **v) { int r; char n[9]; "
        "MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r);"
        'if (r) { sprintf(n, "f%d", r); FILE *f = fopen(n, "w"); for (int i = 0; i < 100; i++) '
        'fwrite(n, 1, 9, f); fclose(f); }'
        "return MPI_Finalize(); }"
    )
    weir("trace", "--quiet", "-o", "run", "--", *mpi.launcher, "-n", "3", program, cwd=tmp_path,
        env=mpi.env).ok()
    look = Watch(tmp_path / "run").look()
    assert look.is_over and look.ranks == 3 and set(look.active) >= {1, 2}
    assert sum(one.bytes_written for one in look.files
        if Path(one.file).name in ("f1", "f2")) == 1800
    whole = all_of(weir("report", tmp_path / "run", "--json").stdout)
    assert (look.so_far.calls, look.so_far.bytes) == (whole["calls"], whole["bytes"])


def test_a_run_whose_launcher_was_killed_is_over_when_nothing_lives(cc, tmp_path):
    with printed(tmp_path, WEIR, "trace", "--quiet", "-o", "run", "--", cc(PROGRAM)) as program:
        watch = wait_for(tmp_path / "run", limit(20))
        program.writes(1, "a")
        assert not any(watch.look().is_over for _ in range(5)), "it lives"
        program.process.send_signal(signal.SIGKILL)
        program.process.wait(300)
        program.process.stdin.close()  # which ends what it had started
        until = time.monotonic() + 300
        looks = 0
        while not watch.look().is_over:
            looks += 1
            assert time.monotonic() < until
            time.sleep(0.05)
    assert looks >= 2


def test_a_step_that_begins_later_is_seen(weir, cc, tmp_path):
    program = cc(PROGRAM)
    weir("trace", "--quiet", "-o", "run", "--step", "one", "--", program, input="2 a\n",
        cwd=tmp_path).ok()
    watch = Watch(tmp_path / "run")
    assert watch.look().so_far.bytes == 2000
    weir("trace", "--quiet", "-o", "run", "--step", "two", "--", program, input="3 b\n",
        cwd=tmp_path).ok()
    look = watch.look()
    assert (look.bytes_written, look.so_far.bytes, look.is_over) == (3000, 5000, True)


def test_a_run_that_never_comes_is_reported(weir, tmp_path):
    done = weir("watch", tmp_path / "run", "--wait", "0.2")
    assert done.returncode == 3 and "no such directory" in done.stderr
    with pytest.raises(RunNotFound):
        wait_for(tmp_path / "run", 0)


def test_the_screen_shows_rates_and_files(weir, cc, tmp_path):
    from rich.console import Console

    weir("trace", "--quiet", "-o", "run", "--", cc(PROGRAM), input="4 a\n9 b\n", cwd=tmp_path).ok()
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, force_terminal=True)
        console.print(screen(Watch(tmp_path / "run").look(), 1))
        text = console.export_text()
    assert "MB/s written" in text and "1 of 1" in text
    assert (("/a" in text) + ("/b" in text)) == 1, "one file was asked for"
