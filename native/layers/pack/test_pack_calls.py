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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char data[2048];
static void handler(int signal) { (void)signal; }
int main(int argc, char** argv) {
  _Alignas(4096) char path[4096];  // weir asks the kernel about a text that lies on two pages
  signal(SIGSEGV, handler);
  if (argv[2][1] == 'h') signal(SIGUSR1, handler);
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
# A copy of a descriptor that is kept, what the program writes, and its close; what it reads lies in
# memory that the processes of a node share.
CREATE = Counter(fcntl=1, pwrite64=1, close=1)
READ = Counter(fcntl=1, close=1)
# Signals are held back around an open, a close and the first write where a handler may come.
HELD_CREATE, HELD_READ = CREATE + Counter(rt_sigprocmask=6), READ + Counter(rt_sigprocmask=6)


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
@pytest.mark.parametrize(("what", "each"), [("create", CREATE), ("read", READ),
    ("chandler", HELD_CREATE), ("rhandler", HELD_READ)])
def test_a_file_costs_these_system_calls_and_no_more(calls, what, each):
    few, many = calls("create", FEW, "few"), calls("create", MANY, "many")
    if what != "create":
        few, many = calls(what, FEW, "few"), calls(what, MANY, "many")
    spare = (MANY - FEW) // 10  # for what comes now and then: a chunk, more names
    for name in many:
        most = each[name] * (MANY - FEW) + spare
        assert many[name] - few[name] <= most, (name, many[name], few[name])
