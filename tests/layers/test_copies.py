# SPDX-License-Identifier: Apache-2.0
"""Copies of a layered descriptor on numbers where a stream of the C library stands, temporary
names, and locks of files that are kept: the same files and output as without layers."""

from __future__ import annotations

import subprocess

import pytest

STACKS = ["bufa:4KiB:4:always=1", "keep:always=1", "keep:always=1 | bufa:64KiB:2:always=1",
    "global:4KiB:2:always=1", "gather:8KiB:4:always=1",
    "forward:8KiB:8:always=1", "event"]

STREAMS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int fd = open("layered", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (write(fd, "header\n", 7) != 7) return 1;
  dup2(fd, 1);
  printf("body\n");
  fflush(stdout);
  if (write(fd, "tail\n", 5) != 5) return 1;
  close(1);
  if (dup(fd) != 1) return 2;
  puts("more");
  fflush(stdout);
  FILE* f = fopen("other", "w");
  fputs("first\n", f);
  fflush(f);
  dup2(fd, fileno(f));
  fputs("second\n", f);
  fclose(f);
  return write(fd, "end\n", 4) != 4;
}
"""

SHELL = """
exec 6> layered; echo line 1 >&6; /bin/echo line 2 >&6; echo line 3 >&6; exec 6>&-
exec 4<> layered; read -u 4 first; echo NEW >&4; exec 4>&-
{ echo a; cat /etc/hostname > /dev/null; echo b; } > layered2
while read line; do echo "<$line>"; done < layered2 >> layered
sed -i s/a/A/ layered2
cp layered2 layered3; printf 'x\\ny\\n' | tee -a layered3 > /dev/null
"""


@pytest.fixture
def under(weir, tmp_path):
    """``under(stack, command, ...)`` runs it in a directory of its own; returns what it printed and
    the files that it left."""

    def run(stack, *command):
        directory = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        directory.mkdir()
        if stack is None:
            done = subprocess.run(list(map(str, command)), cwd=directory, capture_output=True,
                text=True, timeout=300)
        else:
            rules = tmp_path / "rules.toml"
            rules.write_text(f'[[rule]]\nname = "*"\nstack = "{stack}"\n')
            done = weir("run", "--rules", rules, "--", *command, cwd=directory, timeout=90)
        assert done.returncode == 0, done.stderr
        return done.stdout, {file.name: file.read_bytes() for file in directory.iterdir()}

    return run


@pytest.mark.parametrize("stack", STACKS)
def test_streams_write_where_the_descriptor_stands(under, cc, stack):
    program = cc(STREAMS)
    assert under(stack, program) == under(None, program)


@pytest.mark.parametrize("stack", STACKS)
def test_builtins_of_a_shell_and_sed_in_place(under, stack):
    assert under(stack, "bash", "-c", SHELL) == under(None, "bash", "-c", SHELL)


def test_a_file_in_a_form_of_its_own_is_refused_where_a_stream_would_write_past_the_layer(under,
        cc):
    source = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int fd = open("layered", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (dup2(fd, 1) != -1 || errno != EBUSY) return 1;
  return dup2(fd, 20) != 20;
}
"""
    under("cos:1", cc(source))


@pytest.mark.parametrize("stack", ["keep:always=1", "cos:2", "event"])
def test_temporary_names_are_made_by_the_c_library(under, cc, stack):
    source = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char name[] = "tempXXXXXX";
  int fd = mkstemp(name);
  if (fd < 0 || strcmp(name, "tempXXXXXX") == 0 || write(fd, "abc", 3) != 3 || close(fd) != 0) return 1;
  return access(name, F_OK) != 0 || unlink(name) != 0;
}
"""
    under(stack, cc(source))


LOCKS = """
import fcntl, os, subprocess, sys
open("layered", "w").write("x" * 100)
for _ in range(3):
    fd = os.open("layered", os.O_RDONLY)
    os.read(fd, 10)
    os.close(fd)
fd = os.open("layered", os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
for name in range(300):  # more files than are kept, so that kept ones are closed
    os.close(os.open(f"other{name}", os.O_RDWR | os.O_CREAT))
other = "import fcntl, os; fd = os.open('layered', os.O_RDWR)\\ntry: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0); print('got it')\\nexcept OSError: print('refused')"
print(subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("stack", ["keep:always=1", "keep:always=1 | bufa:64KiB:2:always=1"])
def test_locks_of_a_kept_file_hold(under, stack):
    assert under(stack, "python3", "-c", LOCKS)[0] == "refused\n\n"
