# SPDX-License-Identifier: Apache-2.0
"""A program that weir cannot enter, and one that gets a descriptor by a socket, find the bytes that
layers have accepted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid

import pytest

STACKS = {
    "bufa": "bufa:1048576:2",
    "bufa always": "bufa:4096:2:always=1",
    "global": "global:65536:4:always=1",
    "gather": "gather:65536:4:always=1",
    "forward": "forward:65536:8:always=1",
    "keep": "keep:always=1",
    "keep over bufa": "keep:always=1|bufa:65536:2:always=1",
}
WAYS = ["vfork", "clone_vm", "posix_spawn", "system", "popen", "fork", "_Fork", "SYS_fork"]
SIZES = """
int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    char text[4096];
    long bytes = 0, got;
    const int fd = open(names[i], O_RDONLY);
    MUST(fd >= 0);
    while ((got = read(fd, text, sizeof text)) > 0) bytes += got;
    printf("%ld ", bytes);
  }
  return 7;
}
"""
FILES = ["data.dat", "log.dat", "kept.dat"]
LINE = 12


@pytest.fixture
def layered(traced):
    """``layered(stack, command)`` runs it with the stack on *.dat: the run's outcome."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"

    def run(stack: str, command, **more: str):
        rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack=event|{stack}|event|system\n"
        return traced(command, timeout=30, WEIR_RULES=rules, WEIR_JOB=job, **more)

    yield run
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


def lines(*counts: int) -> bytes:
    return b"".join(b"line %6d\n" % i for count in counts for i in range(count))


def check(outcome, directory) -> None:
    assert outcome.done.stdout == f"{5000 * LINE} {100 * LINE} {10 * LINE} "
    assert (outcome.done.returncode, outcome.done.stderr) == (7, "")
    assert (directory / "data.dat").read_bytes() == lines(5000, 1000)
    assert (directory / "log.dat").read_bytes() == lines(100, 100)
    assert (directory / "kept.dat").read_bytes() == lines(10)


@pytest.fixture
def cwd(tmp_path):
    directory = tmp_path / "cwd" / "main"
    directory.mkdir(parents=True)
    return directory


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("way", WAYS)
def test_a_static_program_reads_what_layers_accepted(guest, layered, cwd, way, stack):
    reader = guest(SIZES, "-static", name="sizes_static")
    outcome = layered(STACKS[stack], [guest("starts.c"), way, reader, *FILES])
    check(outcome, cwd)


@pytest.mark.parametrize("way", ["vfork", "posix_spawn", "system"])
def test_a_program_without_the_environment_reads_what_layers_accepted(guest, layered, cwd, way):
    reader = guest(SIZES, name="sizes")
    stack = STACKS["bufa always"]
    check(layered(stack, [guest("starts.c"), way, "env", "-i", reader, *FILES]), cwd)


@pytest.mark.parametrize("way", ["vfork", "posix_spawn", "clone_vm"])
def test_the_files_stay_in_their_layers(guest, layered, cwd, way):
    """Also: what was written for the program is not written again."""
    reader = guest(SIZES, "-static", name="sizes_static")
    stack = STACKS["bufa always"]
    trace = layered(stack, [guest("starts.c"), way, reader, *FILES]).trace
    assert not [r.op for r in trace.records if r.op.startswith("bypassed_")]
    below = [r for r in trace.records if r.layer == "event2" and r.op.startswith("pwrite")]
    assert sum(r.size for r in below if r.file.endswith("data.dat")) == 6000 * LINE


PYTHON = """
import subprocess, sys
f = open("data.dat", "w")
for i in range(20000): print("line", i, file=f, flush=i % 50 == 0)
f.flush()
sys.stdout.write(subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True).stdout)
"""


@pytest.mark.parametrize("program", ["busybox", "sudo", "bwrap"])
def test_programs_of_the_system_read_what_layers_accepted(execute, layered, cwd, program):
    prefix = {
        "busybox": ["busybox"],
        "sudo": ["sudo", "-n"],
        "bwrap": ["bwrap", "--bind", "/", "/", "--tmpfs", "/dev/shm"],
    }[program]
    if shutil.which(program) is None or execute([*prefix, "true"]).returncode != 0:
        pytest.skip(f"{program} cannot run here")
    done = layered(STACKS["bufa"], [sys.executable, "-S", "-c", PYTHON, *prefix, "wc", "-c",
        "data.dat"])
    assert done.done.stdout == "208890 data.dat\n"


PASS = r"""
#include <sys/socket.h>
#include <sys/uio.h>
static union {
  char room[CMSG_SPACE(2 * sizeof(int))];
  struct cmsghdr aligned;
} control;

static struct msghdr message(struct iovec* piece, int fds) {
  struct msghdr m = {.msg_iov = piece, .msg_iovlen = 1, .msg_control = control.room};
  m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
  return m;
}
static int receive(int socket, int* fds) {
  char byte;
  struct iovec piece = {&byte, 1};
  struct msghdr m = message(&piece, 2);
  if (recvmsg(socket, &m, 0) != 1) return 0;
  memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), 2 * sizeof(int));
  return 1;
}
static void send_them(const char* way, int socket, const int* fds) {
  char byte = 'x';
  struct iovec piece = {&byte, 1};
  struct mmsghdr several = {.msg_hdr = message(&piece, 2)};
  struct cmsghdr* head = CMSG_FIRSTHDR(&several.msg_hdr);
  head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(2 * sizeof(int));
  memcpy(CMSG_DATA(head), fds, 2 * sizeof(int));
  if (strcmp(way, "sendmsg") == 0) MUST(sendmsg(socket, &several.msg_hdr, 0) == 1);
  if (strcmp(way, "sendmmsg") == 0) MUST(sendmmsg(socket, &several, 1, 0) == 1);
  if (strcmp(way, "SYS_sendmsg") == 0) MUST(syscall(SYS_sendmsg, socket, &several.msg_hdr, 0) == 1);
  if (strcmp(way, "SYS_sendmmsg") == 0) MUST(syscall(SYS_sendmmsg, socket, &several, 1, 0) == 1);
}
int main(int count, char** arguments) {
  int pair[2], fds[2], status;
  MUST(count == 2 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    MUST(receive(pair[1], fds));
    for (int i = 0; i < 2; ++i) MUST(write(fds[i], "BBBBBBB\n", 8) == 8);
    _exit(3);
  }
  fds[0] = open_new("first.dat");
  fds[1] = open("second.dat", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int other = open_new("other.dat");
  for (int i = 0; i < 2; ++i) MUST(write(fds[i], "header\n", 7) == 7);
  MUST(write(other, "header\n", 7) == 7);
  send_them(arguments[1], pair[0], fds);
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  for (int i = 0; i < 2; ++i) MUST(write(fds[i], "end\n", 4) == 4 && close(fds[i]) == 0);
  MUST(write(other, "end\n", 4) == 4 && close(other) == 0);
  return 0;
}
"""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("way", ["sendmsg", "sendmmsg", "SYS_sendmsg", "SYS_sendmmsg"])
def test_a_file_passed_by_a_socket_leaves_its_layers(guest, layered, cwd, way, stack):
    trace = layered(STACKS[stack], [guest(PASS, name="pass"), way]).ok().trace
    for name in ("first.dat", "second.dat"):
        assert (cwd / name).read_bytes() == b"header\nBBBBBBB\nend\n"
    assert (cwd / "other.dat").read_bytes() == b"header\nend\n"
    left = {r.file.rpartition("/")[2] for r in trace.records if r.op == "bypassed_forked"}
    assert "first.dat" in left and "other.dat" not in left
