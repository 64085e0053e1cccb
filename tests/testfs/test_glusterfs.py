# SPDX-License-Identifier: Apache-2.0
"""A real distributed file system under a traced program: GlusterFS of two bricks, files in shards
of 4 MiB."""

from __future__ import annotations

import os
import subprocess

from decode import read_trace

MIB = 1 << 20
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static char block[1 << 20];
static void need(int good, const char *what) {
  if (!good) { perror(what); exit(1); }
}
int main(int argc, char **argv) {
  int blocks = atoi(argv[2]);
  int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0644);
  need(fd >= 0, "open");
  for (int i = 0; i < blocks; i++) {
    memset(block, 'a' + i, sizeof block);
    need(write(fd, block, sizeof block) == sizeof block, "write");
  }
  need(fsync(fd) == 0, "fsync");
  struct stat status;
  need(stat(argv[1], &status) == 0 && status.st_size == (off_t)blocks << 20, "stat");
  for (int i = blocks - 1; i >= 0; i--) {
    need(pread(fd, block, sizeof block, (off_t)i << 20) == sizeof block, "pread");
    need(block[0] == 'a' + i && block[sizeof block - 1] == 'a' + i, "what was read");
  }
  char other[4096];
  snprintf(other, sizeof other, "%s.renamed", argv[1]);
  need(rename(argv[1], other) == 0, "rename");
  need(close(fd) == 0, "close");
  return 0;
}
"""


def test_files_and_shards_are_spread_over_the_bricks(glusterfs):
    names = {f"f{i}" for i in range(32)}
    for name in names:
        (glusterfs.path / name).touch()
    on_bricks = [names & set(os.listdir(brick)) for brick in glusterfs.bricks]
    assert all(on_bricks) and set.union(*on_bricks) == names

    def shards() -> set:
        return {shard for brick in glusterfs.bricks for shard in (brick / ".shard").glob("*")}

    before = shards()  # of other tests' files
    with open(glusterfs.path / "big", "wb", buffering=0) as file:
        for _ in range(10):
            file.write(bytes(MIB))
    assert len(shards() - before) == 2  # and the first one under the file's own name
    kind = subprocess.run(["findmnt", "-no", "FSTYPE", glusterfs.path], capture_output=True,
        text=True, timeout=300)
    assert kind.stdout.strip() == "fuse.glusterfs"


def test_a_traced_program_sees_and_does_the_same(glusterfs, cc, execute, preload_env):
    program = cc(PROGRAM, name="gluster")
    plain, traced = glusterfs.path / "plain", glusterfs.path / "traced"
    execute([program, plain, 10]).ok()
    environment = preload_env()
    execute([program, traced, 10], env=environment).ok()
    want = b"".join(bytes([ord("a") + i]) * MIB for i in range(10))
    assert [(glusterfs.path / f"{name}.renamed").read_bytes() == want for name in ("plain",
        "traced")] == [True, True]
    assert sorted(os.listdir(glusterfs.path)) == sorted({"plain.renamed", "traced.renamed",
        *os.listdir(glusterfs.path)})

    trace = read_trace(environment["WEIR_TRACE_DIR"])
    records = {op: trace.of(op, file=str(traced)) for op in ("write", "pread", "fsync", "stat")}
    assert {op: len(found) for op, found in records.items()} == {"write": 10, "pread": 10,
        "fsync": 1, "stat": 1}
    assert [r.offset for r in records["pread"]] == [i * MIB for i in range(9, -1, -1)]
    assert sum(r.size for r in records["write"]) == sum(r.size
        for r in records["pread"]) == 10 * MIB
