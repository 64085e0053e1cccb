# SPDX-License-Identifier: Apache-2.0
"""Files that are written again and again: a container keeps what was replaced, and does not grow
without bound by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

import pytest

MIB = 1 << 20
RULES = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=out.zip:always=1|system\n"
BEGIN = """
import os, sys
def write(name, n, mode="wb"):
    with open(name, mode, buffering=0) as file:
        file.write(bytes([n % 251]) * (4 << 20))
"""
READ = """
import hashlib
for name in sorted(os.listdir()):
    if not name.endswith(".zip"):
        print(name, hashlib.sha256(open(name, "rb").read()).hexdigest())
"""
# What a program does 80 times with a file of 4 MiB, or of up to 32 MiB.
WAYS = {
    "rewrites": "for n in range(80): write('x.dat', n)",
    "appends": "for n in range(80): write('x.dat', n, 'ab' if n % 8 else 'wb')",
    "replaces": "for n in range(80): write('y.dat', n); os.rename('y.dat', 'x.dat')",
    "removes": "for n in range(80):\n write('x.dat', n)\n if n < 79: os.remove('x.dat')",
}


@pytest.fixture
def run(preload, tmp_path):
    """``run(name, program)``: what the program prints in the directory of that name, with *.dat
    packed unless that is plain."""
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    packed = {"LD_PRELOAD": str(preload), "WEIR_RULES": RULES, "WEIR_JOB": job}

    def run(name, program):
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        return subprocess.run([sys.executable, "-c", BEGIN + program], cwd=place, timeout=240,
            env={**os.environ, **(packed if name != "plain" else {})}, stdout=subprocess.PIPE,
            check=True, text=True).stdout

    yield run
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


def check(run, place):
    assert run("packed", READ) == run("plain", READ) != ""
    with zipfile.ZipFile(place / "out.zip") as archive:
        assert archive.testzip() is None and archive.namelist() == ["other.dat"]
    assert (place / "x.dat").stat().st_size in (4 * MIB, 32 * MIB)  # a real file
    # 256 MiB, and the record that reached it
    assert 256 * MIB <= (place / "out.zip").stat().st_size < 300 * MIB


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS)
def test_container_does_not_grow_without_bound(run, tmp_path, way):
    for name in ("packed", "plain"):
        run(name, "write('other.dat', 7)\n" + WAYS[way])
    check(run, tmp_path / "packed")


@pytest.mark.timeout(300)
def test_nor_does_it_by_programs_one_after_the_other(run, tmp_path):
    for name in ("packed", "plain"):
        run(name, "write('other.dat', 7)")
        for n in range(0, 80, 8):
            run(name, f"for n in range({n}, {n + 8}): write('x.dat', n)")
    check(run, tmp_path / "packed")
