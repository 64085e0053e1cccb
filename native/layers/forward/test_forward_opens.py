# SPDX-License-Identifier: Apache-2.0
"""Layer forward: ranks that have one open of a file between them see of each other what POSIX says
that openings do, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

RANKS = 3
BEGIN = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#define CHECK(what) do { if (!(what)) { fprintf(stderr, "rank %d: %s: %s\n", rank, #what, strerror(errno)); MPI_Abort(MPI_COMM_WORLD, 3); } } while (0)
#define TOGETHER MPI_Barrier(MPI_COMM_WORLD)
int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* path = argv[1];
  char data[64];
  TOGETHER;
"""
END = "  TOGETHER;\n  MPI_Finalize();\n  return 0;\n}\n"

# Each body runs in every rank, on a file of 1,000 numbers of 4 digits.
BODIES = {
    "positions": r"""
  int fd = open(path, O_RDONLY), out;
  CHECK(fd >= 0 && lseek(fd, 400 * rank, SEEK_SET) == 400 * rank);
  TOGETHER;
  CHECK(read(fd, data, 4) == 4 && atoi(data) == 100 * rank);
  CHECK((out = memfd_create("out", 0)) >= 0);
  TOGETHER;
  CHECK(sendfile(out, fd, NULL, 4) == 4 && pread(out, data, 4, 0) == 4);
  CHECK(atoi(data) == 100 * rank + 1);
  TOGETHER;
  if (fork() == 0) _exit(read(fd, data, 4) == 4 && atoi(data) == 100 * rank + 2 ? 0 : 9);
  int status;
  CHECK(wait(&status) > 0 && status == 0);
  TOGETHER;
  CHECK(read(fd, data, 4) == 4 && atoi(data) == 100 * rank + 3);
  CHECK(close(fd) == 0);
""",
    "flock": r"""
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, data, 4) == 4);
  TOGETHER;
  if (rank == 0) CHECK(flock(fd, LOCK_EX) == 0);
  TOGETHER;
  if (rank == 1) CHECK(flock(fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
  TOGETHER;
  CHECK(close(fd) == 0);
""",
    "locks of the process and changed flags": r"""
  int fd = open(path, O_RDWR), other = open(path, O_RDWR);
  struct flock all = {.l_type = F_WRLCK};
  CHECK(fd >= 0 && other >= 0 && read(fd, data, 4) == 4);
  TOGETHER;
  if (rank == 0) CHECK(fcntl(other, F_SETLK, &all) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  TOGETHER;
  if (rank == 1) CHECK(fcntl(fd, F_GETLK, &all) == 0 && all.l_type == F_WRLCK);
  TOGETHER;
  CHECK(close(fd) == 0 && close(other) == 0);
""",
    "locks of the process and a later open": r"""
  int fd = open(path, O_RDWR), other;
  struct flock all = {.l_type = F_WRLCK};
  CHECK(fd >= 0 && read(fd, data, 4) == 4);
  TOGETHER;
  CHECK((other = open(path, O_RDONLY)) >= 0 && read(other, data, 4) == 4);
  TOGETHER;
  if (rank == 0) CHECK(fcntl(fd, F_SETLK, &all) == 0 && fcntl(other, F_SETFL, O_NONBLOCK) == 0);
  TOGETHER;
  if (rank == 1) CHECK(fcntl(fd, F_GETLK, &all) == 0 && all.l_type == F_WRLCK);
  CHECK(((fcntl(other, F_GETFL) & O_NONBLOCK) != 0) == (rank == 0));
  TOGETHER;
  CHECK(close(fd) == 0 && close(other) == 0);
""",
    "ofd locks": r"""
  int fd = open(path, O_RDWR);
  struct flock all = {.l_type = F_WRLCK};
  CHECK(fd >= 0 && read(fd, data, 4) == 4);
  TOGETHER;
  if (rank == 0) CHECK(fcntl(fd, F_OFD_SETLK, &all) == 0);
  TOGETHER;
  if (rank == 1) CHECK(fcntl(fd, F_OFD_SETLK, &all) == -1 && (errno == EAGAIN || errno == EACCES));
  TOGETHER;
  CHECK(close(fd) == 0);
""",
    "status flags": r"""
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0 && pread(fd, data, 4, 0) == 4);
  TOGETHER;
  if (rank == 0) CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0);
  TOGETHER;
  CHECK(((fcntl(fd, F_GETFL) & O_APPEND) != 0) == (rank == 0));
  if (rank == 1) CHECK(pwrite(fd, "7777", 4, 40) == 4);
  TOGETHER;
  if (rank == 0) CHECK(write(fd, "8888", 4) == 4);
  CHECK(close(fd) == 0);
  TOGETHER;
  fd = open(path, O_RDONLY);
  CHECK(pread(fd, data, 4, 40) == 4 && memcmp(data, "7777", 4) == 0);
  CHECK(pread(fd, data, 64, 4000) == 4 && memcmp(data, "8888", 4) == 0);
  CHECK(close(fd) == 0);
""",
    "access": r"""
  int fd = open(path, rank == 2 ? O_RDWR : O_RDONLY);
  CHECK(fd >= 0 && (write(fd, "0000", 4) == 4) == (rank == 2));
  if (rank != 2) CHECK(errno == EBADF);
  CHECK(close(fd) == 0);
""",
    "names": r"""
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, data, 4) == 4);
  TOGETHER;
  if (rank == 0) {
    CHECK(unlink(path) == 0);
    int made = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(made >= 0 && write(made, "new!", 4) == 4 && close(made) == 0);
  }
  TOGETHER;
  int again = open(path, O_RDONLY);
  CHECK(again >= 0 && read(again, data, 64) == 4 && memcmp(data, "new!", 4) == 0);
  CHECK(pread(fd, data, 4, 400) == 4 && atoi(data) == 100);
  CHECK(close(fd) == 0 && close(again) == 0);
""",
    "maps": r"""
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0 && pwrite(fd, "5555", 4, 4 * rank) == 4);
  TOGETHER;
  char* map = mmap(NULL, 4000, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(map != MAP_FAILED);
  for (int i = 0; i < ranks; ++i) CHECK(memcmp(map + 4 * i, "5555", 4) == 0);
  CHECK(close(fd) == 0);
""",
    "numbers": r"""
  int before = open("/dev/null", O_RDONLY);
  CHECK(close(before) == 0);
  TOGETHER;
  int fd = open(path, O_RDONLY | (rank == 1 ? O_CLOEXEC : 0)), next = open("/dev/null", O_RDONLY);
  CHECK(fd == before && next == before + 1);
  CHECK(((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) == (rank == 1));
  CHECK(close(fd) == 0 && close(next) == 0);
  CHECK(open(path, O_RDONLY | O_NOFOLLOW) == before && close(before) == 0);
""",
    "emptied": r"""
  int fd = open(path, O_RDWR), other = -1;
  struct stat is;
  CHECK(fd >= 0 && pread(fd, data, 4, 400) == 4 && atoi(data) == 100);
  TOGETHER;
  if (rank == 1) CHECK((other = open(path, O_WRONLY | O_TRUNC)) >= 0);
  TOGETHER;
  CHECK(pread(fd, data, 4, 400) == 0 && fstat(fd, &is) == 0 && is.st_size == 0);
  CHECK(stat(path, &is) == 0 && is.st_size == 0);
  TOGETHER;
  if (rank == 1) CHECK(write(other, "later", 5) == 5);
  TOGETHER;
  CHECK(pread(fd, data, 64, 0) == 5 && memcmp(data, "later", 5) == 0);
  TOGETHER;
  if (rank == 2) CHECK(pwrite(fd, "accepted", 8, 100) == 8);
  TOGETHER;
  if (rank == 0) CHECK((other = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644)) >= 0);
  TOGETHER;
  CHECK(pread(fd, data, 8, 100) == 0 && stat(path, &is) == 0 && is.st_size == 0);
  TOGETHER;
  if (rank == 0) CHECK(write(other, "end", 3) == 3);
  TOGETHER;
  CHECK(pread(fd, data, 64, 0) == 3 && memcmp(data, "end", 3) == 0);
  CHECK(close(fd) == 0 && (other < 0 || close(other) == 0));
  TOGETHER;
  CHECK(stat(path, &is) == 0 && is.st_size == 3);
""",
    "no such file": r"""
  CHECK(open("nowhere.dat", O_RDONLY) == -1 && errno == ENOENT);
  CHECK(open(path, O_RDWR | O_CREAT | O_EXCL, 0644) == -1 && errno == EEXIST);
""",
}


@pytest.fixture
def ranks(mpi, preload, testfs):
    """``ranks(body)``: three ranks run it under forward; the mount."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"

    def run(name: str, body: str, library: Path = preload):
        program = mpi.cc(BEGIN + body + END, name="forward_" + name.replace(" ", "_"))
        fs = testfs("direct")
        (fs.backing / "a.dat").write_bytes(b"".join(b"%04d" % i for i in range(1000)))
        rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=forward:65536:8|system\n"
        env = {"WEIR_JOB": job, "LD_PRELOAD": str(library), "WEIR_RULES": rules}
        mpi.run(RANKS, program, fs.path / "a.dat", env=env).ok()
        return fs

    yield run
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


@pytest.mark.parametrize("name", BODIES)
def test_an_open_that_ranks_share_is_an_open_of_each(ranks, name):
    ranks(name, BODIES[name])


def test_ranks_that_have_a_file_open_together_have_one_open_of_it(ranks):
    fs = ranks("together", r"""
  int fd = open(path, O_RDONLY);
  TOGETHER;
  CHECK(fd >= 0 && pread(fd, data, 4, 400) == 4 && atoi(data) == 100);
  TOGETHER;
  CHECK(close(fd) == 0);
""")
    requests = fs.stats().file("a.dat").requests
    assert 1 <= requests["open"] == requests["release"] < RANKS


def test_without_a_forwarding_process_ranks_make_their_requests(ranks, preload, tmp_path):
    for one in (preload, preload.parent / "weir-drain"):
        shutil.copy(one, tmp_path)
    fs = ranks("alone", r"""
  int fd = open(path, O_RDWR);
  memset(data, 'a' + rank, sizeof data);
  for (long at = 64 * rank; at < 1 << 20; at += 64 * ranks) CHECK(pwrite(fd, data, 64, at) == 64);
  CHECK(close(fd) == 0);
""", tmp_path / preload.name)
    assert (fs.backing / "a.dat").read_bytes() == b"".join(
        bytes([97 + i % 3]) * 64 for i in range((1 << 20) // 64))
