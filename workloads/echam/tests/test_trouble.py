# SPDX-License-Identifier: Apache-2.0
"""Writers on kernels and file systems in trouble, with the calls that they choose by themselves
(``--io auto``: io_uring): each run ends with the reason, or writes by pwrite and says so, and steps
that were finished are in the files."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

pytestmark = pytest.mark.any_mpi

RANKS, STEPS = 3, 8
SIZES = ("--files", 3, "--variables", 13, "--nlat", 8, "--steps", STEPS, "--buffer-kb", 4)
LARGER = (*SIZES[:5], 32, *SIZES[6:])  # 4 MB in all
SETUP, ENTER = 425, 426  # numbers of system calls, the same on all machines

# refuse SYSCALL ERRNO PROGRAM ...: the program without this system call.
REFUSE = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  (void)argc;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[1]), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {4, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program)) return 99;
  execv(argv[3], argv + 3);
  return 98;
}
"""

# The model makes a process in each step: one ends at once, as a shell command does, the other
# lives, with the ring, as long as the run; threads come and go beside it.
FORKS = """
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void* nothing(void* value) { return value; }

int MPI_Iexscan(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  pid_t parent = getpid(), child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  if (fork() == 0) {
    while (getppid() == parent) usleep(10000);
    _exit(0);
  }
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) abort();
    pthread_join(thread, NULL);
  }
  return PMPI_Iexscan(from, to, count, type, op, comm, request);
}
"""


@pytest.fixture
def reference(case, output):
    alone = output("eccodes")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *SIZES)
    return alone


def refused(done) -> list[str]:
    """What a run says of ranks that fell back."""
    return [line for line in done.stderr.splitlines() if "instead of io_uring" in line]


@pytest.mark.parametrize(("call", "errno", "reason"), [
    (SETUP, 1, "io_uring_queue_init: Operation not permitted"),
    (SETUP, 38, "io_uring_queue_init: Function not implemented"),
    (SETUP, 12, "io_uring_queue_init: Cannot allocate memory"),  # RLIMIT_MEMLOCK
    (SETUP, 24, "io_uring_queue_init: Too many open files"),
    (ENTER, 1, "io_uring_submit: Operation not permitted"),
])
def test_a_kernel_that_refuses_io_uring(case, output, reference, cc, call, errno, reason):
    found, refuse = output("direct"), cc(REFUSE, name="refuse")
    arguments = (refuse, call, errno, case.program("echam"), "--dir", found.directory, *SIZES)
    done = case.mpi.run(RANKS, *arguments).ok()
    assert len(refused(done)) == 1, done.stderr
    assert f"3 of 3 ranks write by pwrite instead of io_uring: {reason}" in refused(done)[0]
    assert "refused=3" in done.stdout
    found.same_messages(reference)
    asked = case.mpi.run(RANKS, *arguments, "--io", "uring")
    assert asked.returncode != 0 and "use auto or pwrite" in asked.stderr, asked.stderr


def test_processes_and_threads_of_the_model_beside_the_ring(case, output, reference):
    found = output("direct")
    forks = case.mpi.cc(FORKS, "-shared", "-fPIC", name="forks.so")
    done = case.start("echam", RANKS, "--dir", found.directory, *SIZES,
        env={"LD_PRELOAD": str(forks)}).ok()
    assert refused(done) == []
    found.same_messages(reference)


def check_finished(found, reference, writer="direct") -> None:
    """All messages are known ones, and no step is in a file without those before it."""
    whole = reference.files()
    assert found.files(), "nothing was written"
    for name, messages in found.files().items():
        assert not Counter(messages) - Counter(whole[name]), (name, "a message that nobody wrote")
    # What is under way at the failure: a step that is written, and one that waits for its turn.
    newest = {name: max((one.step for one in messages), default=0)
        for name, messages in found.files().items()}
    for name, messages in found.files().items():
        complete = max(0, newest[name] - 1)
        assert Counter(one for one in messages if one.step < complete) == Counter(
            one for one in whole[name] if one.step < complete), (writer, name)


@pytest.fixture
def larger(case, output):
    alone = output("larger")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *LARGER)
    return alone


@pytest.mark.parametrize("writer", ["direct", "offset-guard", "posix"])
def test_a_disk_that_is_full_in_mid_step(case, output, larger, writer):
    found = output(writer)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", found.directory],
            capture_output=True).returncode:
        pytest.skip("no right to mount here")
    try:
        done = case.start("echam", RANKS, "--writer", writer, "--dir", found.directory, *LARGER)
        assert done.returncode != 0
        assert "cannot be written: No space left on device" in done.stderr, done.stderr
        check_finished(found, larger, writer)
        assert any(messages for messages in found.files().values())
    finally:
        subprocess.run(["umount", "-l", found.directory], check=True)


@pytest.mark.parametrize(("rule", "reason"), [
    ({"fail": ["write:EIO:after=12"]}, "Input/output error"),
    ({"enospc_after": 60000}, "No space left on device"),  # the last write is a short one
])
def test_writes_that_fail_on_a_network_file_system(case, output, reference, testfs, rule, reason):
    fs, found = testfs("direct", **rule), output("direct")
    done = case.start("echam", RANKS, "--dir", fs.path, *SIZES)
    assert done.returncode != 0 and f"cannot be written: {reason}" in done.stderr, done.stderr
    assert refused(done) == []
    check_finished(type(found)(fs.backing), reference)


def test_the_reason_of_a_short_write_of_the_ring(case, testfs):
    """FUSE gives "Input/output error" for it; what pwrite says is reported instead."""
    fs = testfs("direct", enospc_after=1000)  # in the first of its writes
    done = case.start("echam", 1, "--dir", fs.path, *SIZES)
    assert done.returncode != 0
    assert "cannot be written: No space left on device" in done.stderr, done.stderr
    assert "Input/output error" not in done.stderr


@pytest.mark.parametrize("rule", [
    'stack = "short:op=write:bytes=100 | system"',
    'stack = "error:op=write:errno=EIO:after=5 | system"',
])
def test_layers_of_weir_are_not_bypassed(case, weir, output, reference, tmp_path, rule):
    """A ring would be: it is refused, and the layer has the writes."""
    found = output("direct")
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "*.grb"\n{rule}\n')
    done = weir("run", "--rules", tmp_path / "rules.toml", "--", *case.mpi.launch(RANKS,
        case.program("echam"), "--dir", found.directory, *SIZES), env=dict(case.mpi.env))
    if "short" in rule:
        assert done.returncode == 0 and len(refused(done)) == 1, done.stderr
        found.same_messages(reference)
    else:
        assert done.returncode != 0 and "cannot be written: Input/output error" in done.stderr
        check_finished(found, reference)


def test_fewer_descriptors_than_files(case, tmp_path):
    done = case.mpi.run(RANKS, "prlimit", "--nofile=100", case.program("echam"), "--dir", tmp_path,
        "--files", 200, "--variables", 200, "--nlat", 4)
    assert done.returncode != 0
    assert "Too many open files" in done.stderr, done.stderr


@pytest.mark.campaign
def test_glusterfs(case, output, reference, glusterfs, tmp_path):
    """Beside the test file system, above, a real one on FUSE."""
    there = glusterfs.path / tmp_path.name
    there.mkdir()
    done = case.start("echam", RANKS, "--dir", there, *SIZES).ok()
    assert refused(done) == []
    type(reference)(there).same_messages(reference)
