# SPDX-License-Identifier: Apache-2.0
"""Programs that are traced by LD_PRELOAD and WEIR_TRACE_DIR alone: two runs into one directory are
two steps, one job of MPI is one."""

import shlex
import subprocess
import time
from pathlib import Path

import pytest
from weir_process import clean_environment

from weir.trace import find_run
from weir.trace.file import TraceFile

WRITER = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", arguments[1], rank);
  int fd = open(name, O_CREAT | O_RDWR, 0644);
  if (write(fd, "hello", 5) != 5) return 1;
  close(fd);
  for (int i = 0; count > 2 && access(arguments[2], F_OK) != 0 && i < 60000; ++i) usleep(1000);
  MPI_Finalize();
}
"""


def report(directory) -> dict[str, tuple[list[str], int]]:
    """Of each step of a directory the names of the files in the directory `out`, and how many ranks
    it has."""
    found = {}
    for step in find_run(directory).steps:
        traces = [TraceFile(path) for path in step.files]
        files = {Path(text).name for trace in traces for text in trace.texts
            if Path(text).parent.name == "out"} - {"ucx.conf"}  # MPICH looks for it
        ranks = {process.rank for trace in traces for process in trace.processes} - {-1}
        found[step.name] = sorted(files), len(ranks)
    return found


@pytest.fixture
def out(tmp_path):
    made = tmp_path / "out"
    made.mkdir()
    return made


def wait_for(*paths: Path) -> None:
    end = time.monotonic() + 300
    while not all(path.exists() for path in paths):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_two_jobs_one_after_the_other_are_two_steps(mpi, weir, preload_env, out):
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    for name in ("a", "b"):
        mpi.run(2, program, out / name, env=env).ok()
    assert report(env["WEIR_TRACE_DIR"]) == {"main.1": (["a.0", "a.1"], 2),
        "main.2": (["b.0", "b.1"], 2)}
    said = weir("report", env["WEIR_TRACE_DIR"], "--step", "main.2", "--tables", "all").ok().stdout
    assert "main.2" in said and "b.1" in said and "a.1" not in said


def test_two_jobs_at_once_are_two_steps(mpi, preload_env, tmp_path, out):
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    jobs = [
        subprocess.Popen(mpi.launch(2, program, out / name, tmp_path / "go"),
            env=clean_environment({**mpi.env, **env})) for name in ("a", "b")
    ]
    wait_for(*(out / f"{name}.{rank}" for name in ("a", "b") for rank in (0, 1)))
    (tmp_path / "go").touch()
    assert [job.wait(300) for job in jobs] == [0, 0]
    steps = report(env["WEIR_TRACE_DIR"])
    assert sorted(steps) == ["main.1", "main.2"] and sorted(steps.values()) == [(["a.0", "a.1"], 2),
        (["b.0", "b.1"], 2)]


def test_one_job_on_two_nodes_is_one_step(mpi, preload_env, out):
    """Nodes by name; on the second one nothing is handed on but what the launcher itself gives each
    rank, as mpirun -x does."""
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    drop = "test $rank = 0 || unset WEIR_LAUNCH" if mpi.name == "openmpi" else "true"
    script = (
        f"rank=$OMPI_COMM_WORLD_RANK$PMI_RANK; {drop}; WEIR_NODE=node$rank exec "
        f"{shlex.quote(str(program))} $0"
    )
    for name in ("a", "b"):
        mpi.run(2, "sh", "-c", script, out / name, env=env).ok()
    steps = report(env["WEIR_TRACE_DIR"])
    assert steps == {"main.1": (["a.0", "a.1"], 2), "main.2": (["b.0", "b.1"], 2)}


def test_a_script_and_its_one_job_are_one_step(mpi, preload_env, out, execute):
    """Also what runs in a group of its own, as under `timeout`, and what ends the environment."""
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    job = shlex.join(map(str, mpi.launch(2, program, out / "a")))
    script = (
        f"cd {shlex.quote(str(out))}; timeout 50 sh -c 'echo x > before'; {job}; setsid -w sh -c "
        f"'echo x > after'"
    )
    execute(["bash", "-c", script], env={**mpi.env, **env}).ok()
    ((name, (files, _)),) = report(env["WEIR_TRACE_DIR"]).items()
    assert name == "main" and files == ["a.0", "a.1", "after", "before"]
    assert len(list(Path(env["WEIR_TRACE_DIR"]).glob("*.weir"))) == 1


@pytest.mark.parametrize("traced", ["the script", "what it exports LD_PRELOAD for"])
def test_two_jobs_of_one_script_behind_timeout_are_two_steps(mpi, preload_env, out, execute,
        traced):
    """`timeout` is no launcher: the number that it hands on joins no two jobs below it."""
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    script = "; ".join("timeout 50 " + shlex.join(map(str, mpi.launch(2, program, out / name)))
        for name in ("a", "b"))
    if traced == "the script":
        execute(["bash", "-c", script + "; true"], env={**mpi.env, **env}).ok()
    else:
        execute(["bash", "-c", f"export LD_PRELOAD={env['LD_PRELOAD']}; {script}; true"],
            env={**mpi.env, **env, "LD_PRELOAD": None}).ok()
    assert report(env["WEIR_TRACE_DIR"]) == {"main.1": (["a.0", "a.1"], 2),
        "main.2": (["b.0", "b.1"], 2)}


def test_two_jobs_of_mpich_whose_launcher_is_not_traced(mpi, preload_env, out):
    """On two nodes (by name), without a batch system: the address of the job's mpiexec tells them
    apart."""
    if mpi.name != "mpich":
        pytest.skip("MPICH's proxies: Open MPI's ranks have the address in their environment")
    program, env = mpi.cc(WRITER, name="launches"), preload_env(WEIR_LAUNCH=None)
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items()
        if value is not None)
    script = f"export {settings} WEIR_NODE=node$PMI_RANK; exec {shlex.quote(str(program))} $0"
    for name in ("a", "b"):
        command = mpi.launch(2, "sh", "-c", script, out / name)
        done = subprocess.run([command[0], "-launcher", "fork", "-hosts", "one,two", "-ppn", "1",
            *command[1:]], env=clean_environment(mpi.env), timeout=300)
        assert done.returncode == 0
    assert report(env["WEIR_TRACE_DIR"]) == {"main.1": (["a.0", "a.1"], 2),
        "main.2": (["b.0", "b.1"], 2)}


def test_two_jobs_of_one_traced_command_are_one_step(mpi, weir, tmp_run, out):
    program = mpi.cc(WRITER, name="launches")
    script = "; ".join(shlex.join(map(str, mpi.launch(2, program, out / name)))
        for name in ("a", "b"))
    weir("trace", "-o", tmp_run, "--", "sh", "-c", script, env=mpi.env).ok()
    ((name, (files, _)),) = report(tmp_run).items()
    assert name == "main" and files == ["a.0", "a.1", "b.0", "b.1"]


def test_two_command_lines_are_two_steps_and_a_script_is_one(preload_env, out, execute):
    """Command lines differ in their process group, as in a shell with job control; what a script
    starts has the script's."""
    env = preload_env(WEIR_LAUNCH=None)
    for name in ("a", "b"):
        execute(["sh", "-c", f"echo x > {out}/{name}; sh -c 'echo y > {out}/{name}2'"],
            env=env).ok()
    for name in ("c", "d"):  # the script itself is not traced
        script = (
            f"export LD_PRELOAD={env['LD_PRELOAD']}; sh -c 'echo x > {out}/{name}'; sh -c 'echo x "
            f"> {out}/{name}2'; true"
        )
        execute(["sh", "-c", script], env={**env, "LD_PRELOAD": None}).ok()
    steps = report(env["WEIR_TRACE_DIR"])
    assert [files for files, _ in steps.values()] == [["a", "a2"], ["b", "b2"], ["c", "c2"],
        ["d", "d2"]]
    assert list(steps) == ["main.1", "main.2", "main.3", "main.4"]
