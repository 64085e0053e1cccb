# SPDX-License-Identifier: Apache-2.0
"""Several processes write the same packed files at once: each makes them shorter while others store
them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

WRITER = """
import os, random, sys
os.chdir(sys.argv[1])
for i in range(150):
    name = random.choice("abc") + ".dat"
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    if i % 3 == 0: os.sched_yield()
    if i % 7: os.write(fd, name[0].encode() * random.choice([1, 100, 5000, 20000]))
    os.close(fd)
    with open(random.choice("abc") + ".dat", "a+b") as f:
        f.seek(0)
        assert set(f.read()) <= set(f.name[0].encode()), f.name
"""


def test_processes_that_empty_the_same_files_all_end_well(preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=p.zip:always=1|system\n"
    env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    many = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], env=env, text=True,
        stderr=subprocess.PIPE) for _ in range(4)]
    try:
        for one in many:
            assert one.communicate(timeout=300)[1] == "" and one.returncode == 0
        for member in zipfile.ZipFile(tmp_path / "p.zip").infolist():
            data = zipfile.ZipFile(tmp_path / "p.zip").read(member)
            assert set(data) <= set(member.filename[:1].encode()), member.filename
    finally:
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
