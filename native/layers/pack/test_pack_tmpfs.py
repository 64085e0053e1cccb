# SPDX-License-Identifier: Apache-2.0
"""Files under a rule on tmpfs: the kernel's alone, unless a container is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from weir_process import clean_environment

PROGRAM = """
import os, sys
directory, what = sys.argv[1:]
for number in range(50):
    if what != "read":
        with open(f"{directory}/{number}.dat", "x") as file: file.write(str(number))
    with open(f"{directory}/{number}.dat") as file: assert file.read() == str(number)
    assert os.stat(f"{directory}/{number}.dat").st_size == len(str(number))
segment = f"-{os.stat(directory).st_ino}-"
print(sum(segment in line for line in open("/proc/self/maps")))
"""


@pytest.fixture
def tmpfs():
    directory = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="weir-test-pack-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def segments(preload, tmpfs):
    """Runs the program; how many containers' shared files it had mapped at its end."""
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"

    def run(what: str, options: str = "") -> int:
        rules = ("weir-rules 1\nrule source=test:1 name=*.dat "
                 f"stack=pack:name=plots.zip{options}|system\n")
        env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
        return int(subprocess.run([sys.executable, "-c", PROGRAM, tmpfs, what],
            env=clean_environment() | env, check=True, capture_output=True, timeout=300).stdout)

    yield run
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


def test_nothing_is_shared_for_a_directory_that_is_left_alone(segments, tmpfs):
    assert segments("make") == 0 and segments("read") == 0
    assert sorted(path.name for path in tmpfs.iterdir()) == sorted(f"{n}.dat" for n in range(50))


def test_a_container_that_is_there_is_used(segments, tmpfs):
    assert segments("make", ":always=1") == 1
    assert [path.name for path in tmpfs.iterdir()] == ["plots.zip"]
    assert segments("read") == 1


def test_a_container_of_another_node_alone_is_used(segments, tmpfs):
    segments("make", ":always=1")
    (tmpfs / "plots.zip").rename(tmpfs / "plots@other.zip")
    assert segments("read") == 1


@pytest.mark.parametrize("name", ["plots.zip", f"plots@{os.uname().nodename}.zip"])
def test_a_container_of_the_node_is_used_among_many_names(segments, tmpfs, name):
    segments("make", ":always=1")
    (tmpfs / "plots.zip").rename(tmpfs / name)
    for number in range(1100):
        (tmpfs / f"other{number}").touch()
    assert segments("read") == 1


MANY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char path[4096];
  for (int i = 0; i < atoi(argv[2]); ++i) {
    snprintf(path, sizeof path, "%s/%d.dat", argv[1], i % 50);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0) return 1;
  }
  return argc - 3;
}
"""


DIRECTORIES = """
import os, sys
os.chdir(sys.argv[1])
for turn in range(3):
    for name in ("a", "b"):
        os.mkdir(name)
        with open(f"{sys.argv[1]}/{name}/1.dat", "w") as made: made.write(name + str(turn))
        with open(f"{sys.argv[1]}/{name}/1.dat") as made: print(made.read())
    os.rename("a", "c")
    os.mkdir("a")
    for path in ("a/1.dat", "c/1.dat", "b/../c/1.dat", "b/1.dat"):
        try:
            with open(f"{sys.argv[1]}/{path}") as made: print(path, made.read())
        except OSError as error:
            print(path, error.strerror)
    for name in ("b", "c"): os.unlink(f"{name}/1.dat")
    for name in ("a", "b", "c"): os.rmdir(name)
"""


def test_directories_that_are_left_alone_come_and_go(preload, tmpfs):
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=plots.zip|system\n"
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    for layers in ({}, {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}):
        done = subprocess.run([sys.executable, "-c", DIRECTORIES, tmpfs], check=True,
            env=clean_environment() | layers, capture_output=True, text=True, timeout=300)
        assert done.stdout.splitlines()[:6] == ["a0", "b0", "a/1.dat No such file or directory",
            "c/1.dat a0", "b/../c/1.dat a0", "b/1.dat b0"]
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_an_open_there_makes_no_system_call_of_its_own(cc, preload, tmpfs, tmp_path):
    program, job = cc(MANY, name="many_opens"), f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=plots.zip|system\n"
    variables = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def calls(opens: int) -> int:
        line = ["strace", "-f", "-qq", "-e", "signal=none", "-o", tmp_path / "calls"]
        line += [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
        subprocess.run([*line, program, tmpfs, str(opens)], env=clean_environment(), check=True,
            timeout=300)
        return len((tmp_path / "calls").read_text().splitlines())

    try:
        few = calls(100)
        assert calls(600) - few <= 3 * 500 + 20  # open, write and close of each; some at its end
    finally:
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
