# SPDX-License-Identifier: Apache-2.0
"""Buffers that a program cannot have: under every layer a call on one gives EFAULT, or moves what
lies before it, as the kernel does."""

from __future__ import annotations

import platform
import shutil

import pytest

KERNEL = tuple(int("".join(c for c in part if c.isdigit()) or 0)
    for part in platform.release().split(".")[:2])
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
static void said(const char *what, long result) { printf("%s %ld errno %d\n", what, result, result < 0 ? errno : 0); }
static char *pages(int count, int protection) {
  char *at = mmap(NULL, 4096 * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(at, 'p', 4096 * count);
  mprotect(at, 4096 * count, protection);
  return at;
}
static const int modes[] = {O_RDWR, O_RDWR | O_APPEND, O_WRONLY | O_APPEND};
/* addresses FILE [ONLY-READABLE]: each call on bad memory, then the size and a sum of the file */
int main(int argc, char **argv) {
  char good[300];
  memset(good, 'g', sizeof good);
  char *edge = pages(2, PROT_READ | PROT_WRITE), *none = pages(1, PROT_NONE), *only = pages(1, PROT_READ), *gone = pages(1, PROT_READ);
  char *large = pages(64, PROT_READ | PROT_WRITE), *hole = pages(64, PROT_READ | PROT_WRITE);
  mprotect(edge + 4096, 4096, PROT_NONE);
  /* not unmapped: a library could map a page of its own there */
  mprotect(hole + 40 * 4096, 4096, PROT_NONE);
  for (int mode = 0; mode < 3; ++mode) {
    const int fd = open(argv[1], modes[mode] | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 40; ++i) write(fd, good, 100);
    said("none", write(fd, none, 10));
    said("null", write(fd, NULL, 10));
    said("low", write(fd, (void *)-1, 10));
    said("edge", write(fd, edge + 4096 - 50, 50));
    said("over the edge", write(fd, edge + 4096 - 50, 100));
    said("behind it", write(fd, edge + 4096, 1));
    said("only", write(fd, only, 64));
    said("gone before", write(fd, gone, 64));
    munmap(gone, 4096);
    said("gone", write(fd, gone, 64));
    gone = mmap(gone, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    said("back", write(fd, gone, 64));
    said("large", write(fd, large, 64 * 4096));
    mprotect(large + 10 * 4096, 4096, PROT_NONE);
    said("large with a hole", write(fd, large, 64 * 4096));
    mprotect(large + 10 * 4096, 4096, PROT_READ | PROT_WRITE);
    said("hole", write(fd, hole, 64 * 4096));
    said("at", pwrite(fd, none, 10, 3));
    struct iovec v[3] = {{good, 10}, {none, 5}, {good, 7}}, w[2] = {{none, 5}, {good, 7}}, x[2] = {{good, 3}, {edge + 4096 - 20, 60}};
    said("second", writev(fd, v, 3));
    said("first", writev(fd, w, 2));
    said("part of the second", writev(fd, x, 2));
    said("no vector", writev(fd, (struct iovec *)none, 2));
    said("null vector", writev(fd, NULL, 2));
    said("empty", write(fd, none, 0));
    if (mode < 2) {
      lseek(fd, 0, SEEK_SET);
      for (int i = 0; i < 20; ++i) read(fd, good, 100);
      said("read none", read(fd, none, 10));
      said("read only", read(fd, only, 10));
      said("read over the edge", read(fd, edge + 4096 - 50, 100));
      said("read at", pread(fd, NULL, 10, 7));
      struct iovec r[2] = {{good, 10}, {only, 5}};
      said("read second", readv(fd, r, 2));
      said("position", lseek(fd, 0, SEEK_CUR));
      const long size = lseek(fd, 0, SEEK_END);
      char *huge = pages(768, PROT_READ | PROT_WRITE);
      mprotect(huge + 700 * 4096, 4096, PROT_NONE);
      ftruncate(fd, 768 * 4096);
      said("read 3 MiB with a protected page", pread(fd, huge, 768 * 4096, 0));
      said("read that page last", pread(fd, huge, 701 * 4096, 4096));
      if (argc > 2) {
        mprotect(huge + 700 * 4096, 4096, PROT_READ);
        said("read 3 MiB with a page that is only readable", pread(fd, huge, 768 * 4096, 0));
        said("read that page last", pread(fd, huge, 701 * 4096, 4096));
        said("read that page in the first MiB", pread(fd, huge + 600 * 4096, 168 * 4096, 4096));
        struct iovec both[2] = {{huge, 4096}, {huge + 4096, 767 * 4096}};
        said("read a vector", preadv(fd, both, 2, 0));
      }
      munmap(huge + 700 * 4096, 4096);
      ftruncate(fd, 768 * 4096);
      said("read 3 MiB with a hole", pread(fd, huge, 768 * 4096, 0));
      said("read past a hole", pread(fd, huge, 768 * 4096, 699 * 4096));
      ftruncate(fd, size);
      lseek(fd, 0, SEEK_END);
      said("read none at the end", read(fd, none, 10));
    }
    struct flock *bad = (struct flock *)none;
    said("lock", fcntl(fd, F_GETLK, bad));
    said("stat", stat(argv[1], (struct stat *)only));
    said("stat again", stat(argv[1], (struct stat *)none));
    struct stat about;
    fstat(fd, &about);
    said("position", lseek(fd, 0, SEEK_CUR));
    said("size", about.st_size);
    close(fd);
    unsigned sum = 0;
    const int in = open(argv[1], O_RDONLY);
    for (long n; (n = read(in, good, sizeof good)) > 0;)
      for (long i = 0; i < n; ++i) sum = sum * 31 + (unsigned char)good[i];
    close(in);
    printf("sum %u\n", sum);
    memset(good, 'g', sizeof good);
  }
  return 0;
}
"""
STACKS = [
    "event|system", "bufa:4096:2:always=1|system", "bufa:65536:4:always=1|system",
    "global:65536:4:always=1|system", "gather:65536:4:always=1|system",
    "keep:always=1|system", "bufa:256:2|system", "event|bufa:4096:2:always=1|event|system",
    "keep:always=1|bufa:4096:2:always=1|system",
]  # fmt: skip


@pytest.mark.parametrize("stack", STACKS)
def test_a_bad_address_is_answered_as_by_the_kernel(cc, execute, preload, tmp_path, stack):
    program = cc(PROGRAM, "-w", name="addresses")
    # Linux tells since then what may be written
    more = ["only-readable"] if KERNEL >= (6, 11) else []
    plain = execute([program, tmp_path / "plain.dat", *more]).ok().stdout
    rules = f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={stack}\n"
    layered = execute([program, tmp_path / "layered.dat", *more],
        env={"LD_PRELOAD": str(preload), "WEIR_RULES": rules}).ok().stdout
    assert layered.splitlines() == plain.splitlines()
    assert not more or "page that is only readable 2867200 errno 0" in plain
    assert (
        "none -1 errno 14" in plain
        and "over the edge 50 errno 0" in plain
        and "hole 163840 errno 0" in plain
    )
    assert "read 3 MiB with a hole 2867200 errno 0" in plain


# glibc unmaps a large block that is freed by a call that nobody sees. What follows it stays, so
# that the heap has no other use for its place.
FREED = r"""
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static void said(const char *what, long result) {
  printf("%s %ld errno %d\n", what, result, result < 0 ? errno : 0);
}
int main(int argc, char **argv) {
  static const size_t sizes[] = {200000, 1 << 20, 5 << 20};
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  setvbuf(stdout, NULL, _IOFBF, 4096);
  said("begin", 0);
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 3; ++i) {
    const size_t n = sizes[i];
    char *buffer = malloc(n);
    memset(buffer, 'b', n);
    said("write", pwrite(fd, buffer, n, 0));
    said("read", pread(fd, buffer, n, 0));
    free(buffer);
    for (int call = 0; call < 5; ++call) { /* each has a buffer of its own: a layer may map memory there */
      buffer = malloc(n);
      memset(buffer, 'c', n);
      pwrite(fd, buffer, n, 0);
      free(buffer);
      struct iovec v[2] = {{(char *)sizes, 16}, {buffer, n}};
      struct iovec w[2] = {{buffer, n}, {(char *)sizes, 16}};
      if (call == 0) said("write of freed memory", pwrite(fd, buffer, n, 0));
      if (call == 1) said("read into it", pread(fd, buffer, n, 0));
      if (call == 2) said("vector", pwritev(fd, v, 2, 0));
      if (call == 3) said("vector that begins there", pwritev(fd, w, 2, 0));
      if (call == 4) said("read of a vector", preadv(fd, w, 2, 0));
    }
  }
  said("size", lseek(fd, 0, SEEK_END));
  return 0;
}
"""


@pytest.mark.parametrize("stack", STACKS)
def test_a_large_buffer_that_was_freed_is_answered_as_by_the_kernel(cc, execute, preload, tmp_path,
        stack):
    program = cc(FREED, "-w", name="freed")
    plain = execute([program, tmp_path / "plain.dat"]).ok().stdout
    rules = f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={stack}\n"
    layered = execute([program, tmp_path / "layered.dat"],
        env={"LD_PRELOAD": str(preload), "WEIR_RULES": rules}).ok().stdout
    assert layered.splitlines() == plain.splitlines()
    assert plain.count("write of freed memory -1 errno 14") == 3


# A check for writing makes pages present: of a buffer that is far larger than the file it must not
# do so as a whole.
LARGE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
  const size_t bytes = 1ul << 28;
  char *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 40; ++i) write(fd, "0123456789", 10);
  lseek(fd, 0, SEEK_SET);
  const long got = read(fd, buffer, bytes);
  char line[256];
  long peak = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld kB", &peak);
  printf("%ld %ld\n", got, peak);
  return 0;
}
"""


def test_a_large_buffer_of_a_short_read_is_not_made_present(cc, execute, preload, tmp_path):
    program = cc(LARGE, "-w", name="large")
    rules = "weir-rules 1\nrule source=test:1:1 name=*.dat stack=bufa:4096:2:always=1|system\n"
    got, kib = execute([program, tmp_path / "a.dat"],
        env={"LD_PRELOAD": str(preload), "WEIR_RULES": rules}).ok().stdout.split()
    assert int(got) == 400 and 0 < int(kib) < 64 * 1024  # of 256 MiB


AGAIN = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  const size_t bytes = atol(argv[2]), count = atol(argv[3]);
  char *buffer = malloc(bytes);
  memset(buffer, 1, bytes);
  const int fd = open(argv[1], O_RDONLY);
  for (size_t i = 0; i < count; ++i) {
    if (pread(fd, buffer, bytes, 0) != (ssize_t)bytes) return 1;
  }
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.parametrize("size", [256 << 10, 1 << 20])
@pytest.mark.parametrize("layer", ["bufa", "global", "gather"])
def test_a_large_buffer_that_is_used_again_costs_one_system_call_which_touches_no_page(cc, execute,
        preload, tmp_path, layer, size):
    program, path, log = cc(AGAIN, "-w", name="again"), tmp_path / "x.dat", tmp_path / "strace.log"
    path.write_bytes(bytes(2 * size))
    rules = f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={layer}:1024:4:always=1|system\n"

    def calls(count: int) -> tuple[int, int]:
        command = ["strace", "-qq", "-e", "trace=madvise,msync,futex", "-o", log, "-E",
            f"LD_PRELOAD={preload}", "-E", f"WEIR_RULES={rules}"]
        execute([*command, program, path, size, count]).ok()
        made = log.read_text().splitlines()
        return sum(one.startswith("msync") for one in made), sum(one.startswith("madvise")
            for one in made)

    few, many = calls(10), calls(30)
    assert many[0] - few[0] <= 20
    assert many[1] == few[1]
