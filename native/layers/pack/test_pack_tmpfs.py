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
            env=clean_environment() | env, check=True, capture_output=True, timeout=60).stdout)

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
