# SPDX-License-Identifier: Apache-2.0
"""Nothing of weir has a file open for writing after the program has closed it: it can be executed
at once."""

from __future__ import annotations

import sys

import pytest

# Writes programs in small pieces, and executes each as soon as it is closed: by itself, and by a
# shell.
PROGRAM = r"""
import os, subprocess
content = open("/bin/true", "rb").read()
busy = 0
for i in range(25):
    name = f"./made{i}"
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o700)
    for at in range(0, len(content), 1500):
        os.write(fd, content[at:at + 1500])
    os.close(fd)
    try:
        busy += subprocess.run([name]).returncode != 0
    except OSError as error:
        busy += 1
        print(error)
    busy += subprocess.run(["sh", "-c", name]).returncode != 0
print("busy", busy)
"""


@pytest.mark.parametrize("stack", ["bufa:1:2:always=1", "bufa:256:2", "global:1:2:always=1",
    "gather:1:2:always=1", "forward:1:8:always=1", "keep:always=1", "keep"])
def test_a_program_that_was_just_written_can_be_executed(stack, weir, tmp_path):
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "made*"\nstack = "{stack}"\n')
    done = weir("run", "--rules", tmp_path / "rules.toml", "--", sys.executable, "-c", PROGRAM,
        cwd=tmp_path)
    assert done.ok().stdout.splitlines() == ["busy 0"], done.stdout + done.stderr
