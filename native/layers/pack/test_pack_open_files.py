# SPDX-License-Identifier: Apache-2.0
"""Files that are open while directories get other names, go, and are more than a process has
containers for at once."""

from __future__ import annotations

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
    "it is removed, and its attributes change": """
f = os.open("a.dat", os.O_RDWR | os.O_CREAT, 0o600); os.write(f, b"x")
g = os.open("a.dat", os.O_RDONLY); os.unlink("a.dat")
def show(): print(*((os.fstat(fd).st_mtime, oct(os.fstat(fd).st_mode)) for fd in (f, g)))
os.utime(f, (870, 870)); show(); os.utime(g, (6, 6)); show(); os.fchmod(g, 0o640); show()
os.close(f); os.close(g)
for number in range(3):
    open(f"{number}.dat", "w").write("n"); print(oct(os.stat(f"{number}.dat").st_mode))""",
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
    "it is locked and becomes a real file": """
import fcntl, subprocess, sys
other = subprocess.Popen([sys.executable, "-c", '''
import fcntl, sys
f = open("a.dat", "r+")
for line in sys.stdin:
    try: fcntl.lockf(f, int(line) | fcntl.LOCK_NB); print("free", flush=True)
    except OSError: print("locked", flush=True)
    fcntl.lockf(f, fcntl.LOCK_UN)'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask():
    for how in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        other.stdin.write(f"{how}\\n"); other.stdin.flush(); print(other.stdout.readline().strip())
f = open("a.dat", "w+"); f.write("some"); f.flush(); g = open("a.dat", "r+"); ask()
fcntl.lockf(f, fcntl.LOCK_SH, 10, 0); fcntl.lockf(f, fcntl.LOCK_SH, 5, 20); ask()
os.link("a.dat", "b.txt"); ask(); g.write("more"); g.flush(); ask()
fcntl.lockf(f, fcntl.LOCK_UN, 10, 0); ask(); fcntl.lockf(f, fcntl.LOCK_UN); ask()
other.stdin.close(); other.wait(); print(open("b.txt").read())""",
    "a process waits for its lock while it becomes a real file": """
import fcntl, subprocess, sys, time
for call in ("flock", "lockf"):
    lock = getattr(fcntl, call); name = f"{call}.dat"
    f = open(name, "w+"); f.write("first"); f.flush(); lock(f, fcntl.LOCK_EX)
    waits = subprocess.Popen([sys.executable, "-c", f'''
import fcntl
f = open("{name}", "r+"); print("begins", flush=True); fcntl.{call}(f, fcntl.LOCK_EX)
print(open("{name}").read(), open("{call}.txt").read())'''], stdout=subprocess.PIPE, text=True)
    waits.stdout.readline()
    while waits.poll() is None and not any("->" in line for line in open("/proc/locks")):
        time.sleep(0.01)
    os.link(name, f"{call}.txt"); f.write(" second"); f.flush(); time.sleep(0.1)
    f.write(" third"); f.flush(); lock(f, fcntl.LOCK_UN); print(waits.communicate()[0])""",
    "it has a hole": """
with open("a.dat", "w+b") as f:
    f.write(b"begin"); f.seek(6 << 30); f.write(b"end"); f.seek(0); print(f.read(6))
with open("a.dat", "r+b") as f:
    f.seek(-4, 2); print(f.read(), f.tell(), os.stat("a.dat").st_blocks < 100)
os.unlink("a.dat")""",
    "it is a script": """
import subprocess
text = "#!/bin/sh\\necho ran $1\\n"
open("a.dat", "w").write(text); os.chmod("a.dat", 0o700)
os.close(os.open("b.dat", os.O_CREAT, 0o755)); open("b.dat", "w").write(text)
for name in "ab": print(subprocess.run([f"./{name}.dat", name], capture_output=True, text=True))
print(oct(os.stat("a.dat").st_mode), oct(os.stat("b.dat").st_mode), sorted(os.listdir()))""",
    "it is made longer than the limit": """
f = open("a.dat", "w+b"); f.write(b"some"); f.flush(); os.truncate("a.dat", 1 << 40)
print(os.fstat(f.fileno()).st_size, os.stat("a.dat").st_blocks < 100); os.truncate("a.dat", 4)
for name, longer in (("b", os.ftruncate), ("c", lambda fd, n: os.posix_fallocate(fd, n - 10, 10))):
    f = open(f"{name}.dat", "w+b"); f.write(b"some"); f.flush(); longer(f.fileno(), 1 << 40)
    print(os.stat(f"{name}.dat").st_size, os.stat(f"{name}.dat").st_blocks < 100); f.close()
    print(open(f"{name}.dat", "rb").read(4)); os.truncate(f"{name}.dat", 4)""",
    "it gets an attribute by a descriptor for reading": """
open("a.dat", "w").write("some"); f = open("a.dat")
def call(of, *arguments):
    try: return of(*arguments)
    except OSError as error: return error.errno
print(call(os.setxattr, f.fileno(), "user.test", b"x"), call(os.getxattr, "a.dat", "user.test"))
print(call(os.listxattr, f.fileno()), f.read())""",
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
def test_an_open_file_is_stored_where_it_is(case, as_without_layer):
    as_without_layer(CASES[case])
