# SPDX-License-Identifier: Apache-2.0
"""A packed name that is made or removed changes the time of its directory, as programs see it by
the directory's name: Python reads a directory of modules again when that has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid

import pytest

MODULES = """
import importlib.util, os, subprocess, sys, time
os.mkdir("made")
time.sleep(0.1)  # a step of the kernel's clock is 10 ms at most
sys.path.insert(0, os.path.abspath("made"))
sys.dont_write_bytecode = True
def put(name, text):
    with open(f"made/{name}.py", "w") as file:
        file.write(text)
put("first", "x = 1")
import first
assert importlib.util.find_spec("second") is None
put("second", "x = 2")
import second
assert importlib.util.find_spec("third") is None
subprocess.run([sys.executable, "-c", "open('made/third.py', 'w').write('x = 3')"], check=True)
import third
print(first.x, second.x, third.x, sorted(os.listdir("made")))
"""
TIMES = """
import os, time
os.mkdir("d")
time.sleep(0.1)
def time_of(path="d"):
    about = os.stat(path)
    return about.st_mtime_ns
seen = []
def changed():
    time.sleep(0.02)  # more than a tick of the clock of files
    seen.append(time_of())
    assert os.lstat("d").st_mtime_ns == seen[-1] == time_of(os.path.abspath("d"))
    return len(seen) < 2 or seen[-1] > seen[-2]
changed()
for name in ("a.py", "b.py"):
    open(f"d/{name}", "w").close()
    assert changed()
    open(f"d/{name}", "a").close()
    assert not changed()
os.rename("d/a.py", "d/c.py")
assert changed()
os.unlink("d/c.py")
assert changed()
os.chmod("d/b.py", 0o600)
assert not changed()
open("d/e.py", "w").close()
os.utime("d", (1, 2))
assert os.stat("d").st_mtime == 2
time.sleep(0.1)
open("d/f.py", "w").close()
assert changed()
time.sleep(0.1)
open("d/real", "w").close()
assert changed()
print("changes", len(seen))
"""
AS_DOUBLES = """
import os
os.mkdir("d")
seen = set()
for number in range(200):
    open(f"d/{number}.py", "w").close()
    seen.add(os.stat("d").st_mtime)
print("times", len(seen))
"""


@pytest.fixture
def packed(preload):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=t:1 name=*.py stack=pack:name=m.zip:always=1|system\n"
    yield {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


@pytest.mark.parametrize(("program", "printed"), [
    (MODULES, "1 2 3 ['first.py', 'second.py', 'third.py']\n"), (TIMES, "changes 10\n"),
    (AS_DOUBLES, "times 200\n")],
    ids=["import", "times", "doubles"])
def test_a_directory_has_the_time_of_its_last_packed_name(packed, tmp_path, program, printed):
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=packed, text=True,
        stdout=subprocess.PIPE, timeout=300, check=True)
    assert done.stdout == printed
