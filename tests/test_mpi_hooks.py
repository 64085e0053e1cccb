# SPDX-License-Identifier: Apache-2.0
"""Who a rank is, and the barriers that clocks are aligned by: on each MPI, from C and each way of
Fortran."""

import collections
import runpy
import sys

import decode
import pytest

C = """
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
  close(open("before", O_RDWR | O_CREAT, 0600));
#ifdef THREADS
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
#else
  MPI_Init(&argc, &argv);
#endif
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef ABORTS
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD);
#endif
#ifdef BARRIER
  MPI_Barrier(MPI_COMM_WORLD);
#endif
  return MPI_Finalize();
}
"""
FORTRAN = """
program p
#if defined F08
  use mpi_f08
#elif defined F90
  use mpi
#endif
  implicit none
#if defined MPIFH
  include 'mpif.h'
#endif
  integer :: rank, ierr
#ifdef THREADS
  integer :: provided
  call mpi_init_thread(mpi_thread_multiple, provided, ierr)
#else
  call mpi_init(ierr)
#endif
  call mpi_comm_rank(mpi_comm_world, rank, ierr)
  if (rank == 0) then
    open(10, file='answer')
    write(10, *) rank
  end if
#ifdef F08
  call mpi_finalize()
#else
  call mpi_finalize(ierr)
#endif
end program
"""
KINDS = {"openmpi": 1, "mpich": 2}


def processes_of_mpi(trace):
    """The processes that met MPI, by rank."""
    return sorted((p for p in trace.processes.values() if p.rank_source == 2), key=lambda p: p.rank)


def check_ranks(trace, mpi, ranks, barriers):
    """Ranks, sizes and kind are known; every rank made the same barriers at both ends, outside of
    the two calls' records."""
    found = processes_of_mpi(trace)
    assert [(p.rank, p.ranks, p.mpi) for p in found] == [(i, ranks, KINDS[mpi.name])
        for i in range(ranks)]
    for p in found:
        mine = [r for r in trace.records if r.process == p.number]
        syncs = [r for r in mine if r.op == "sync"]
        assert [(r.file_id, r.size, r.layer) for r in syncs] == [(i + 1, ranks, "marker")
            for i in range(2 * barriers)]
        (init,) = (r for r in mine if r.op == "MPI_Init")
        (final,) = (r for r in mine if r.op == "MPI_Finalize")
        assert init.layer == final.layer == "mpi" and init.end > init.start and not init.flags
        assert all(init.end <= r.start for r in syncs[:barriers]) and all(r.start <= final.start
            for r in syncs[barriers:])
        assert p.end_kind == 1


@pytest.mark.parametrize("flags", [(), ("-DTHREADS",)], ids=["init", "init_thread"])
def test_c(mpi, preload_env, tmp_path, flags):
    env = preload_env()
    mpi.run(3, mpi.cc(C, *flags), env=env, cwd=tmp_path).ok()
    check_ranks(decode.read_trace(env["WEIR_TRACE_DIR"]), mpi, 3, 8)


@pytest.mark.parametrize("level", ["summary", "detail"])
def test_barriers_are_not_counted_at_levels_without_records(mpi, preload_env, weir, tmp_path,
        level):
    env = preload_env(level=level)
    mpi.run(2, mpi.cc(C), env=env, cwd=tmp_path).ok()
    directory = env["WEIR_TRACE_DIR"]
    counted = decode.read_trace(directory).counters
    assert sum(counter.calls for counter in counted if counter.op == "MPI_Init") == 2
    assert "sync" not in {counter.op for counter in counted}
    printed = weir("report", directory, "--tables", "all").ok().stdout
    assert "damaged" not in printed and "INCOMPLETE" not in printed


@pytest.mark.parametrize("way", ["MPIFH", "F90", "F08"])
def test_fortran(mpi, preload_env, tmp_path, way):
    env = preload_env(WEIR_MPI_SYNC="2")
    mpi.run(2, mpi.fc(FORTRAN, f"-D{way}"), env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    check_ranks(trace, mpi, 2, 2)
    (write,) = trace.of("fortran_write", file="answer")
    assert trace.processes[write.process].rank == 0


@pytest.mark.parametrize("way", ["F90", "F08"])
def test_fortran_with_threads(mpi, preload_env, tmp_path, way):
    env = preload_env(WEIR_MPI_SYNC="1")
    mpi.run(2, mpi.fc(FORTRAN, f"-D{way}", "-DTHREADS"), env=env, cwd=tmp_path).ok()
    check_ranks(decode.read_trace(env["WEIR_TRACE_DIR"]), mpi, 2, 1)


SPELLINGS = """
void INIT(int *), INIT_THREAD(int *, int *, int *), FINALIZE(int *), ABORT(int *, int *, int *);
int main(void) {
  int error = 0, required = 0, provided, world = 0, code = 3;
#ifdef THREADS
  INIT_THREAD(&required, &provided, &error);
#else
  INIT(&error);
#endif
  if (error == 1) ABORT(&world, &code, &error);
  FINALIZE(&error);
  return error;
}
"""


@pytest.mark.parametrize("spelling", ["{}_", "{}__", "{}", "upper", "{}_f08_"])
@pytest.mark.parametrize("threads", [(), ("-DTHREADS",)], ids=["init", "init_thread"])
def test_spellings_of_fortran_compilers(mpi, preload_env, tmp_path, spelling, threads):
    """Called from C: one compiler uses one spelling, and an MPI library is there for all."""
    calls = ("init", "init_thread", "finalize", "abort")
    spelled = [(f"MPI_{c}".upper() if spelling == "upper" else spelling.format(f"mpi_{c}"))
        for c in calls]
    names = [f"-D{c.upper()}={name}" for c, name in zip(calls, spelled)]
    libraries = {"openmpi": ["-lmpi_usempif08", "-lmpi_mpifh"], "mpich": ["-lmpichfort"]}[mpi.name]
    root = decode.OPS_DEF.parents[2]
    hooked = runpy.run_path(str(root / "tools" / "gen_docs.py"))["hooked"](
        (root / "native" / "hook" / "table.def").read_text())
    assert {(name, "mpi") for name in spelled} <= set(hooked)
    env = preload_env(WEIR_MPI_SYNC="1")
    mpi.run(2, mpi.cc(SPELLINGS, *names, *threads, *libraries), env=env, cwd=tmp_path).ok()
    check_ranks(decode.read_trace(env["WEIR_TRACE_DIR"]), mpi, 2, 1)


def test_before_init_the_launcher_says_who_a_rank_is(mpi, preload_env, tmp_path, cc):
    env = preload_env()
    program = cc("#include <stdio.h>\nint main(void) { fclose(fopen(\"mine\", \"w\")); return 0; }")
    mpi.run(3, program, env=env, cwd=tmp_path).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    found = [trace.processes[r.process] for r in trace.of("fopen", file="mine")]
    assert sorted((p.rank, p.ranks, p.rank_source) for p in found) == [(0, 3, 1), (1, 3, 1),
        (2, 3, 1)]
    assert not trace.of("sync")


def test_a_single_rank_needs_no_barriers(mpi, preload_env, tmp_path):
    env = preload_env()
    mpi.run(1, mpi.cc(C), env=env, cwd=tmp_path).ok()
    check_ranks(decode.read_trace(env["WEIR_TRACE_DIR"]), mpi, 1, 0)


def test_a_program_without_mpi_has_no_rank(cc, execute, preload_env, tmp_path):
    env = preload_env()
    program = cc("#include <stdio.h>\nint main(void) { fclose(fopen(\"mine\", \"w\")); return 0; }")
    execute([program], env=env, cwd=tmp_path).ok()
    (process,) = decode.read_trace(env["WEIR_TRACE_DIR"]).processes.values()
    assert (process.rank, process.ranks, process.rank_source, process.mpi) == (-1, 0, 0, 0)


def test_an_abort_is_seen_as_such(mpi, preload_env, tmp_path):
    env = preload_env()
    done = mpi.run(2, mpi.cc(C, "-DABORTS"), env=env, cwd=tmp_path)
    assert done.returncode != 0
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    assert [(p.rank, p.ranks) for p in processes_of_mpi(trace)] == [(0, 2), (1, 2)]
    assert processes_of_mpi(trace)[1].end_kind == 4 and processes_of_mpi(trace)[1].end_ticks > 0
    counted = collections.Counter(r.process for r in trace.of("sync"))
    assert sorted(counted.values()) == [8, 8]


def test_a_rank_that_cannot_record_keeps_nobody_waiting(mpi, preload_env, tmp_path):
    env = preload_env(WEIR_MPI_SYNC="3", WEIR_QUIET="1")
    program = mpi.cc(C)
    script = (
        'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then export '
        'WEIR_TRACE_DIR=/nowhere/at/all; fi; exec ' + str(program)
    )
    mpi.run(2, "bash", "-c", script, env=env, cwd=tmp_path, timeout=60).ok()
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    assert [p.rank for p in processes_of_mpi(trace)] == [0]
    assert len(trace.of("sync")) == 6


def test_a_rank_without_weir_delays_but_does_not_hang(mpi, preload_env, tmp_path):
    env = preload_env(WEIR_MPI_WAIT_S="2")
    script = (
        'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then unset LD_PRELOAD; fi; exec '
        + str(mpi.cc(C, "-DBARRIER"))
    )
    done = mpi.run(3, "bash", "-c", script, env=env, cwd=tmp_path, timeout=80).ok()
    assert done.stderr.count("run without weir") == 2
    trace = decode.read_trace(env["WEIR_TRACE_DIR"])
    assert [(p.rank, p.ranks) for p in processes_of_mpi(trace)] == [(0, 3), (2, 3)]
    assert not trace.of("sync") and len(trace.of("MPI_Finalize")) == 2


def test_mpi_in_a_privately_loaded_library(mpi, preload_env, tmp_path):
    library = mpi.cc(C.replace("main", "work"), "-shared", "-fPIC", name="libwork.so")
    env = preload_env()
    load = (
        f"import ctypes, os; ctypes.CDLL({str(library)!r}, mode=os.RTLD_LOCAL | os.RTLD_NOW).work("
        "ctypes.c_int(0), ctypes.byref((ctypes.c_char_p * 1)()))"
    )
    mpi.run(2, sys.executable, "-c", load, env=env, cwd=tmp_path).ok()
    check_ranks(decode.read_trace(env["WEIR_TRACE_DIR"]), mpi, 2, 8)


RANK_VARIABLES = (
    "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID",
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
)  # fmt: skip


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "0"}, (3, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77"}, (-1, 0)),
        ({"PMIX_RANK": "5", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6"}, (5, 6)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "SLURM_PROCID": "0",
            "SLURM_STEP_NUM_TASKS": "1"}, (1, 2)),
        ({"PMI_RANK": "", "PMI_SIZE": "x"}, (-1, 0)),
    ],
)
def test_ranks_by_environment(execute, preload_env, variables, expected):
    env = preload_env()
    execute(["/bin/cat", "/dev/null"], env={**dict.fromkeys(RANK_VARIABLES), **env,
        **variables}).ok()
    (process,) = decode.read_trace(env["WEIR_TRACE_DIR"]).processes.values()
    assert (process.rank, process.ranks) == expected


def test_daemons_that_srun_starts_are_no_ranks(execute, preload_env, tmp_path):
    daemon = tmp_path / "orted"
    daemon.symlink_to("/bin/cat")
    env = preload_env(SLURM_PROCID="1", SLURM_STEP_NUM_TASKS="2")
    execute([daemon, "/dev/null"], env={**dict.fromkeys(RANK_VARIABLES), **env}).ok()
    (process,) = decode.read_trace(env["WEIR_TRACE_DIR"]).processes.values()
    assert process.rank == -1
