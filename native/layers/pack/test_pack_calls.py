# SPDX-License-Identifier: Apache-2.0
"""System calls for each packed file that is created, or read: they are most of what one costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections import Counter

import pytest

from weir_process import clean_environment

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char data[2048];
int main(int argc, char** argv) {
  char path[4096];
  for (int i = 0; i < atoi(argv[3]); ++i) {
    snprintf(path, sizeof path, "%s/%d.dat", argv[1], i);
    int fd = argv[2][0] == 'c' ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644)
                               : open(path, O_RDONLY);
    ssize_t moved = argv[2][0] == 'c' ? write(fd, data, sizeof data) : read(fd, data, sizeof data);
    if (fd < 0 || moved != sizeof data || close(fd) != 0) return 1;
  }
  return argc - 4;
}
"""
FEW, MANY = 20, 120
# Signals held back twice for an open, a close and the first write each; who creates the file.
CREATE = Counter(rt_sigprocmask=6, geteuid=1, getegid=1, lseek=1, fcntl=1, write=1, fstat=1,
    pread64=1, close=1)
READ = Counter(rt_sigprocmask=4, lseek=1, fcntl=1, pwrite64=1, read=1, close=1)


@pytest.fixture
def calls(cc, preload, tmp_path):
    """The system calls of the program, in its own process, by name."""
    program, job = cc(PROGRAM, name="packed_calls"), f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=p.zip:always=1|system\n"
    variables = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def run(what: str, files: int, directory: str) -> Counter:
        (tmp_path / directory).mkdir(exist_ok=True)
        line = ["strace", "-qq", "-e", "signal=none", "-o", tmp_path / "calls"]
        line += [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        subprocess.run([*line, program, tmp_path / directory, what, str(files)],
            env=clean_environment(), check=True, timeout=300)
        return Counter(call.split("(")[0] for call in
            (tmp_path / "calls").read_text().splitlines())

    yield run
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("what", "each"), [("create", CREATE), ("read", READ)])
def test_a_file_costs_these_system_calls_and_no_more(calls, what, each):
    few, many = calls("create", FEW, "few"), calls("create", MANY, "many")
    if what == "read":
        few, many = calls("read", FEW, "few"), calls("read", MANY, "many")
    spare = (MANY - FEW) // 10  # for what comes now and then: a chunk, more names
    for name in many:
        most = each[name] * (MANY - FEW) + spare
        assert many[name] - few[name] <= most, (name, many[name], few[name])
