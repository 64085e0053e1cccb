# SPDX-License-Identifier: Apache-2.0
"""A file of which bufa keeps nothing yet: it costs the program no thread, and whoever else wants it
finds it free."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid

import pytest

SIZE = 1 << 20

PROGRAM = r"""
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char b[SIZE];
static int ranks(void) {
  int n = -2;
  DIR* d = opendir("/proc/self/task");
  while (readdir(d)) ++n;
  closedir(d);
  return n;
}
int main(int argc, char** argv) {
  const char* name = argv[2];
  const long request = atol(argv[3]);
  if (argv[1][0] == 'w') {
    const int fd = open(name, O_WRONLY);
    memset(b, 'n', SIZE);
    for (long at = 0; at < SIZE; at += request) if (write(fd, b + at, request) != request) return 1;
    return close(fd) != 0;
  }
  const int fd = open(name, O_RDONLY);
  for (long at = 0; at < SIZE; at += request) if (read(fd, b + at, request) != request) return 1;
  printf("%d\n", ranks());
  fflush(stdout);
  if (argv[1][0] == 'r') return close(fd) != 0;
  getchar();
  long seen = 0;
  lseek(fd, 0, SEEK_SET);
  for (long at = 0; at < SIZE; at += request) if (read(fd, b + at, request) != request) return 1;
  for (long at = 0; at < SIZE; ++at) seen += b[at] == 'n';
  printf("%ld\n", seen);
  return close(fd) != 0;
}
"""


@pytest.fixture(scope="session")
def program(cc):
    return cc(PROGRAM, "-O2", f"-DSIZE={SIZE}", name="empty")


@pytest.fixture
def env(preload, tmp_path):
    """The environment of one job under bufa, in blocks of 16 KiB; a file x.dat of zeros."""
    (tmp_path / "x.dat").write_bytes(bytes(SIZE))
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:16384:4:always=1|system\n"
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    yield {**kept, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


def test_a_file_that_gains_nothing_costs_no_thread(program, env, tmp_path):
    # Requests of whole blocks are never kept, however long they take.
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    log = tmp_path / "strace.log"
    trace = ["strace", "-f", "-qq", "-e", "trace=clone,clone3,fork,vfork", "-o", log]
    added = [f"-E{name}={env[name]}" for name in ("LD_PRELOAD", "WEIR_RULES", "WEIR_JOB")]
    outer = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    for request, clones in ((16384, False), (1024, True)):
        command = [*trace, *added, program, "read", tmp_path / "x.dat", request]
        done = subprocess.run(list(map(str, command)), env=outer, capture_output=True, text=True,
            timeout=300)
        assert done.returncode == 0, done.stderr
        assert ("clone" in log.read_text()) == clones, log.read_text()


@pytest.mark.parametrize(("request_bytes", "holds"), [(16384, False), (1024, True)])
def test_a_reader_sees_what_another_process_wrote_meanwhile(program, env, tmp_path, request_bytes,
        holds):
    path = tmp_path / "x.dat"
    with subprocess.Popen(
        [str(program), "stay", str(path), str(request_bytes)], env=env, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True
    ) as reader:
        threads = int(reader.stdout.readline())
        assert (threads > 1) == holds
        subprocess.run([str(program), "write", str(path), "1024"], env=env, check=True, timeout=300)
        out, _ = reader.communicate("\n", timeout=300)
    assert reader.returncode == 0
    assert int(out) == SIZE
    assert path.read_bytes() == b"n" * SIZE
