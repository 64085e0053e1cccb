# SPDX-License-Identifier: Apache-2.0
"""Files that are open while directories get other names, go, and are more than a process has
containers for at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

import pytest

CASES = {
    "a directory beside it is renamed": """
f = open("x.dat", "w"); f.write("hello"); f.flush()
os.mkdir("d"); os.rename("d", "e")
f.close(); print(open("x.dat").read())""",
    "its directory is renamed": """
os.mkdir("s"); f = open("s/y.dat", "w"); f.write("moved"); f.flush()
os.rename("s", "t"); f.write(" on"); f.close()
print(os.listdir("t"), open("t/y.dat").read(), os.path.exists("s"))
os.mkdir("s"); open("s/y.dat", "w").write("another"); print(open("t/y.dat").read())""",
    "its directory is renamed after another file was packed in it": """
os.mkdir("s"); open("s/first.dat", "w").write("1"); f = open("s/first.dat", "r+")
f.write("2"); f.flush(); os.rename("s", "t"); os.rename("t/first.dat", "t/last.dat")
f.write("3"); f.close(); print(sorted(os.listdir("t")), open("t/last.dat").read())""",
    "a directory above it is renamed": """
os.makedirs("a/b"); f = open("a/b/z.dat", "w"); f.write("deep"); f.flush()
os.rename("a", "c"); f.close(); print(open("c/b/z.dat").read())""",
    "its directory goes": """
os.mkdir("s"); f = open("s/y.dat", "w+"); f.write("gone"); f.flush()
os.remove("s/y.dat"); os.rmdir("s"); f.seek(0); print(f.read())
os.mkdir("s"); open("s/y.dat", "w").write("new"); f.close(); print(open("s/y.dat").read())""",
    "its old name is another file's": """
for name in "ab": open(f"{name}.dat", "w").write(name)
f = open("a.dat", "r+"); os.rename("a.dat", "c.dat"); os.rename("b.dat", "a.dat")
f.write("first"); f.flush(); print(open("a.dat").read(), open("c.dat").read())
os.rename("a.dat", "d.dat"); open("a.dat", "w").write("new")
g = os.dup(f.fileno()); f.write(" second"); f.close(); print(open("c.dat").read())
os.write(g, b" third"); os.close(g); print(*(open(f"{name}.dat").read() for name in "acd"))""",
    "it is open forty times": """
open("a.dat", "w").write("one")
files = [open("a.dat", "r+") for i in range(40)]; last = files.pop(20)
os.rename("a.dat", "b.dat")
for f in files: f.close()
last.write("two"); last.flush(); print(open("b.dat").read())
last.write(" three"); last.close(); print(open("b.dat").read())""",
    "it is locked while calls name it": """
import fcntl, subprocess, sys
other = subprocess.Popen([sys.executable, "-c", '''
import fcntl, sys
for line in sys.stdin:
    with open("a.dat", "r+") as f:
        try: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print("free", flush=True)
        except OSError: print("locked", flush=True)'''],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def is_locked(call, *arguments):
    call(*arguments); other.stdin.write("?\\n"); other.stdin.flush()
    print(call.__name__, other.stdout.readline().strip())
f = open("a.dat", "w+"); f.write("some"); f.flush(); fcntl.lockf(f, fcntl.LOCK_EX)
is_locked(os.stat, "a.dat"); is_locked(os.chmod, "a.dat", 0o600); is_locked(os.utime, "a.dat")
is_locked(os.access, "a.dat", os.R_OK); is_locked(os.truncate, "a.dat", 2)
is_locked(os.rename, "a.dat", "a.dat"); is_locked(fcntl.lockf, f, fcntl.LOCK_UN)
other.stdin.close(); other.wait(); f.close(); print(open("a.dat").read())""",
    "a killed process has made it a real file": """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; open('a.dat', 'w').write('one'); "
    "open('z.dat', 'w').write('z'); os.link('a.dat', 'b.txt'); os.kill(os.getpid(), 9)"])
open("a.dat", "a").write(" two"); print(open("a.dat").read(), open("b.txt").read(),
    open("z.dat").read(), os.stat("a.dat").st_nlink)""",
    "files of 60 directories are open": """
files = []
for i in range(60):
    os.mkdir(f"m{i}"); files.append(open(f"m{i}/f.dat", "w")); files[-1].write(str(i))
    files[-1].flush()
for f in files: f.close()
print(sum(open(f"m{i}/f.dat").read() == str(i) for i in range(60)))""",
    "files of 60 directories were open": """
f = open("x.dat", "w"); f.write("hello"); f.flush()
for i in range(60):
    os.mkdir(f"m{i}"); open(f"m{i}/f.dat", "w").write(str(i))
f.write(" again"); f.close()
print(open("x.dat").read(), sum(open(f"m{i}/f.dat").read() == str(i) for i in range(60)))""",
    "its directory does not go": """
os.mkdir("d"); open("d/r.txt", "w").close(); f = open("d/t.dat", "w"); f.write("1"); f.flush()
os.unlink("d/t.dat")
try: os.rmdir("d")
except OSError as error: print(error.errno)
open("d/u.dat", "w").write("stays"); print(open("d/u.dat").read(), sorted(os.listdir("d")))""",
    "a program could not be started while 120 were open": """
for i in range(140):
    os.mkdir(f"m{i}"); open(f"m{i}/f.dat", "w").write(str(i))
files = [open(f"m{i}/f.dat") for i in range(120)]
try: os.execv("/none", ["none"])
except OSError as error: print(error.errno)
for f in files: f.close()
print(sum(open(f"m{i}/f.dat").read() == str(i) for i in range(140)))""",
    "it is removed beside an archive of another node": """
import subprocess, sys
subprocess.run([sys.executable, "-c", "for i in range(40): open(f'f{i:02}.dat', 'w').write(str(i))"])
if os.path.exists("out.zip"): subprocess.run(["mv", "out.zip", "out@other.zip"], env={})
open("tmp.dat", "w").write("1"); os.rename("tmp.dat", "final.dat")
with open("final.dat", "a") as f: f.write("2")
f = open("tmp.dat", "w"); f.write("SCRATCH"); f.flush(); os.unlink("tmp.dat"); f.close()
print([open(f"f{i:02}.dat").read() for i in range(40)], open("final.dat").read())""",
}


@pytest.mark.parametrize("case", CASES)
def test_an_open_file_is_stored_where_it_is(case, preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=out.zip:always=1|system\n"
    packed = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    printed = {}
    try:
        for pack in (False, True):
            place = tmp_path / str(pack)
            place.mkdir()
            printed[pack] = subprocess.run([sys.executable, "-c", "import os\n" + CASES[case]],
                cwd=place, env={**os.environ, **(packed if pack else {})}, text=True, timeout=300,
                stdout=subprocess.PIPE, check=True).stdout
    finally:
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
    assert printed[True] == printed[False] != ""
    for archive in (tmp_path / "True").rglob("out*.zip"):
        with zipfile.ZipFile(archive) as found:
            assert found.testzip() is None
