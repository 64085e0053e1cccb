# SPDX-License-Identifier: Apache-2.0
"""Descriptors of weir's own threads never show in the program's table: a program's open() would get
the next number."""

from __future__ import annotations

import re
import shutil

import pytest
from weir_process import clean_environment

# Long enough for each thread to look twice whether the process goes on.
PROGRAM = r"""
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  static char bytes[100];
  int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0644);
  for (int i = 0; i < 100; ++i) if (write(fd, bytes, sizeof bytes) != sizeof bytes) return 1;
  usleep(2300000);
  return close(fd) != 0;
}
"""


def threads_of(lines: list[str]) -> set[str]:
    """Those of the process of the first line, itself included: it runs daemons, which have threads
    of their own. strace parts a call that another thread interrupts in two lines."""
    threads, before = {lines[0].split()[0]}, 0
    while len(threads) != before:
        before = len(threads)
        for line in lines:
            made = re.search(r"(?:CLONE_THREAD\b.*?|clone3? resumed>.*?)parent_tid=\[(\d+)\]", line)
            if made and line.split()[0] in threads:
                threads.add(made.group(1))
    return threads


@pytest.mark.parametrize("stack", ["bufa:1:2:always=1", "keep:always=1 | bufa:1:2:always=1"])
def test_threads_open_nothing_in_the_table_of_the_program(weir, cc, tmp_path, stack):
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "data"\nstack = "{stack}"\n')
    log = tmp_path / "log"
    weir("run", "--rules", "rules.toml", "--", "strace", "-f", "-qq", "-o", log, "-e",
        "trace=clone,clone3,open,openat,openat2,socket,dup,dup3,fcntl,execve", cc(PROGRAM),
        cwd=tmp_path, env=clean_environment()).ok()
    lines = log.read_text().splitlines()
    program, threads = lines[0].split()[0], threads_of(lines)
    assert len(threads) > 1, lines[:30]
    opened = [line for line in lines if line.split()[0] in threads - {program}
        and re.search(r"\b(open|openat|openat2|socket|dup|dup3)\(|F_DUPFD", line)]
    assert opened == []
