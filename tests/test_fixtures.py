# SPDX-License-Identifier: Apache-2.0
"""The fixtures keep their promises; otherwise no other test means anything."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from query_runs import TWO_STEPS, write_run
from weir_process import clean_environment, run

HELLO_C = '#include <stdio.h>\nint main(void) { puts("from C"); return 3; }\n'
HELLO_MPI_C = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\\n", rank, size);
  return MPI_Finalize();
}
"""
HELLO_MPI_F = """program hello
  use mpi
  implicit none (type, external)
  integer :: rank, ierr
  call mpi_init(ierr)
  call mpi_comm_rank(mpi_comm_world, rank, ierr)
  print '(a,i0)', 'fortran ', rank
  call mpi_finalize(ierr)
end program hello
"""


def test_compiled_program_runs_and_its_status_is_seen(cc, execute):
    done = execute([cc(HELLO_C)])
    assert (done.returncode, done.stdout) == (3, "from C\n")
    with pytest.raises(AssertionError, match="from C"):
        done.ok()


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "PIPE"])
def test_a_program_dies_of_signals_that_the_tests_were_started_to_ignore(execute, name):
    number = signal.Signals[f"SIG{name}"]
    before = signal.signal(number, signal.SIG_IGN)
    try:
        done = execute(["sh", "-c", f"kill -{name} $$; echo alive"])
    finally:
        signal.signal(number, before)
    assert (done.returncode, done.stdout) == (-number, "")


def test_compiling_twice_compiles_once(cc):
    first = cc(HELLO_C)
    assert cc(HELLO_C) == first
    assert cc(HELLO_C, "-DOTHER") != first


def test_a_program_that_does_not_compile_shows_the_compilers_words(cc):
    with pytest.raises(AssertionError, match="nowhere"):
        cc("int main(void) { return nowhere; }")


def test_a_timeout_kills_children_too(tmp_path, monkeypatch):
    mark = tmp_path / "child"

    class Popen(subprocess.Popen):
        def communicate(self, input=None, timeout=None):
            """The time limit begins when there is a child, however late a busy machine starts it.
            """
            while not (mark.exists() and mark.read_text()):
                time.sleep(0.01)
            return super().communicate(input, timeout)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    script = f"(echo $BASHPID > {mark}; exec sleep 1000) & wait"
    with pytest.raises(subprocess.TimeoutExpired):
        run(["bash", "-c", script], timeout=0.5)
    child = int(mark.read_text())
    for _ in range(2000):  # killed, but its end may take the system a moment
        state = run(["ps", "-o", "stat=", "-p", child]).stdout.strip()
        if state[:1] in ("", "Z", "X"):
            return
        time.sleep(0.05)
    raise AssertionError(f"child {child} still runs: {state}")


def test_callers_tracing_does_not_leak_into_tests(monkeypatch):
    monkeypatch.setenv("WEIR_TRACE_DIR", "/nowhere")
    monkeypatch.setenv("LD_PRELOAD", "")
    environment = clean_environment({"WEIR_LEVEL": "detail", "HOME": None})
    assert [k for k in environment if k.startswith("WEIR_")] == ["WEIR_LEVEL"]
    assert "LD_PRELOAD" not in environment and "HOME" not in environment


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "run", "--json"), ("report", "nowhere"), ("report", "--no-such-option"),
        ("report", "\u65e5\udcff"),
        ("query", "run", "SELECT sum(calls) FROM files"), ("query", "run", "SELECT nothing"),
        ("compare", "run", "run"),
    ],
)  # fmt: skip
def test_a_forked_command_answers_as_one_that_is_started(weir, execute, tmp_path, arguments):
    write_run(tmp_path / "run", TWO_STEPS)
    command = Path(sys.executable).parent / "weir"
    forked = weir(*arguments, cwd=tmp_path)
    whole_lines = {"COLUMNS": "1000"}  # as the fixture has it
    assert forked == execute([command, *arguments], cwd=tmp_path, env=whole_lines)


def test_a_forked_command_has_its_own_environment_and_input(weir, tmp_path):
    write_run(tmp_path / "run", TWO_STEPS)
    asked = [weir("query", "run", "-", "--format", "json", cwd=tmp_path, input=f"SELECT {n} AS n")
        for n in (1, 2)]
    assert [json.loads(done.ok().stdout) for done in asked] == [[{"n": 1}], [{"n": 2}]]
    narrow = [weir("report", "--help", env={"COLUMNS": n}).ok().stdout for n in ("60", "150")]
    assert max(map(len, narrow[0].splitlines())) <= 60 < max(map(len, narrow[1].splitlines()))


def test_a_forked_command_ends_at_its_time_limit(weir, tmp_path):
    write_run(tmp_path / "run", TWO_STEPS)
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    with pytest.raises(subprocess.TimeoutExpired):
        weir("query", "run", endless, cwd=tmp_path, timeout=0.2)
    assert weir("report", "run", cwd=tmp_path).returncode == 0


def test_mpi_starts_ranks_of_c(mpi):
    done = mpi.run(2, mpi.cc(HELLO_MPI_C)).ok()
    assert sorted(done.stdout.split("\n")) == ["", "rank 0 of 2", "rank 1 of 2"]


def test_mpi_starts_ranks_of_fortran(mpi):
    done = mpi.run(2, mpi.fc(HELLO_MPI_F)).ok()
    assert sorted(done.stdout.split()) == ["0", "1", "fortran", "fortran"]
