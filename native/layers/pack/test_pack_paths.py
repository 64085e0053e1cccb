# SPDX-License-Identifier: Apache-2.0
"""A path leads to the packed files of the directory to which it leads now: symbolic links that are
set anew, directories that other processes remove, make and rename."""

from __future__ import annotations

import pytest

CASES = {
    "a directory has two paths": """
os.mkdir("d"); os.symlink("d", "link"); wrong = 0
for i in range(200):
    open(f"{('d', 'link')[i % 2]}/{i}.dat", "w").write(str(i) * 50)
    for k in range(max(0, i - 3), i):
        wrong += open(f"{('link', 'd')[(i + k) % 2]}/{k}.dat").read() != str(k) * 50
print(wrong, len(os.listdir("d")), len(os.listdir("link")))""",
    "a link is set anew": """
import subprocess
for name in "abc": os.mkdir(name)
def latest(content, make):
    make(); open(f"latest/{content}.dat", "w").write(content)
    print([sorted(os.listdir(name)) for name in "abc"], sorted(os.listdir("latest")))
latest("one", lambda: os.symlink("a", "latest"))
latest("two", lambda: (os.unlink("latest"), os.symlink("b", "latest")))
latest("three", lambda: (os.symlink("c", "new"), os.rename("new", "latest")))
latest("four", lambda: subprocess.run(["ln", "-sfn", "a", "latest"], check=True))
print(open("a/four.dat").read(), open("c/three.dat").read(), os.path.exists("c/four.dat"))""",
    "a directory is made again behind a link": """
import shutil
for k in range(3):
    os.makedirs("base/d"); open("base/d/f.dat", "w").write(str(k)); os.symlink("d", "base/link")
    print(os.path.exists("base/link/f.dat"), open("base/link/f.dat").read())
    shutil.rmtree("base")""",
    "another process renames and makes it": """
import subprocess
def other(script): subprocess.run(["sh", "-ec", script], check=True)
os.mkdir("b"); open("b/a.dat", "w").write("a"); other("mv b c; mkdir b")
open("b/b.dat", "w").write("b")
print(os.listdir("b"), os.listdir("c"), open("c/a.dat").read())
other("rm -r b; mkdir b"); print(os.path.exists("b/b.dat")); open("b/c.dat", "w").write("c")
print(os.listdir("b"))""",
    "another process renames it while a file is open": """
import subprocess
os.mkdir("b"); f = open("b/d.dat", "w"); f.write("one"); f.flush()
subprocess.run(["sh", "-ec", "mv b c; mkdir b; echo new > b/d.dat"], check=True)
f.write(" two"); f.close()
print(open("c/d.dat").read(), open("b/d.dat").read(), os.listdir("c"))""",
    "a link to a file is removed, renamed or set anew while the file is open": """
for link in "l.dat", "current":
    for mode in "w", "a", "r+":
        for go in (lambda: os.unlink(link), lambda: os.rename(link, "m.dat"),
                   lambda: (os.symlink("b.dat", "n"), os.replace("n", link))):
            open("a.dat", "w").write("old"); os.symlink("a.dat", link)
            f = open(link, mode); f.write("new "); f.flush(); go(); f.write("more"); f.close()
            print(open("a.dat").read(), sorted(os.listdir()))
            for name in set(os.listdir()) - {"out.zip"}: os.unlink(name)""",
    "a stream is opened by a link": """
import ctypes
libc = ctypes.CDLL(None); libc.fopen.restype = ctypes.c_void_p
for link in "l.dat", "current":
    for mode in b"w", b"a", b"w+", b"a+":
        open("a.dat", "w").write("old"); os.symlink("a.dat", link)
        f = ctypes.c_void_p(libc.fopen(link.encode(), mode)); libc.fputs(b"more", f)
        libc.fclose(f); print(open("a.dat").read(), os.listdir().count("a.dat"))
        os.unlink(link); os.unlink("a.dat")""",
    "openat2 resolves the path in a way of its own": """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True); BENEATH, OPENAT2 = 8, 437
how = struct.pack("QQQ", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644, BENEATH)
open("a.dat", "w").write("old"); os.symlink("a.dat", "l.dat")
for name in b"a.dat", b"l.dat":
    fd = libc.syscall(OPENAT2, -100, name, how, len(how)); print(os.read(fd, 10))
    os.write(fd, b"+"); os.close(fd); print(open("a.dat").read(), os.listdir().count("a.dat"))""",
    "a file is made by a link": """
import subprocess
for link in "l.dat", "current":
    for make in (lambda: open(link, "a").write("b"),
                 lambda: subprocess.run(["sh", "-c", f"printf b > {link}"], check=True)):
        open("other.dat", "w").write("o"); os.symlink("a.dat", link); make()
        open("a.dat", "a").write("c"); print(open("a.dat").read(), open(link).read())
        try: os.open("a.dat", os.O_RDWR | os.O_CREAT | os.O_EXCL); print("made")
        except OSError as error: print(error.strerror)
        os.unlink("a.dat"); os.unlink(link)
        print(os.path.exists("a.dat"), [name for name in os.listdir() if name[0] in "al"])""",
    "a file that is open is made shorter by a link": """
import shutil
os.makedirs("d"); os.symlink("d", "l"); os.symlink("a.dat", "d/b.dat")
a = os.open("l/a.dat", os.O_RDWR | os.O_CREAT); os.write(a, b"ten bytes.")
os.rename("d/a.dat", "d/q.dat"); os.write(a, b"q")
b = os.open("d/b.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC); os.write(b, b"z")
c = os.open("d/a.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC); os.ftruncate(c, 4497)
os.open("l/a.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.open("l/q.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
print(os.fstat(a).st_size, os.fstat(b).st_size, os.fstat(c).st_size); shutil.rmtree("d")
print(os.listdir())""",
    "it is nearly as long as a path can be": """
here = os.getcwd(); part = "d" * 127 + "/"; deep = part * ((4094 - 200) // 128)
for _ in range(len(deep) // 128): os.mkdir(part); os.chdir(part)
os.chdir(here); name = deep + "f" * 150 + ".dat"
open(name, "w").write("deep"); os.link(name, "short"); print(open("short").read())
os.unlink(name); print(os.listdir(deep))""",
    "a file is renamed to where the path is that long": """
here = os.getcwd(); part = "d" * 127 + "/"; deep = part * ((4094 - 200) // 128)
for _ in range(len(deep) // 128): os.mkdir(part); os.chdir(part)
os.chdir(here); open("a.dat", "w").write("there and back"); os.rename("a.dat", deep + "b.dat")
print(open(deep + "b.dat").read(), sorted(os.listdir(here)) == [part[:-1]], os.listdir(deep))
os.rename(deep + "b.dat", "c.dat"); print(open("c.dat").read(), os.listdir(deep))""",
    "a directory does not replace a file": """
os.mkdir("d"); open("f.dat", "w").write("kept")
for call, arguments in ((os.rename, ("d", "f.dat")), (os.rmdir, ("f.dat",))):
    try: call(*arguments); print("done")
    except OSError as error: print(error.strerror)
print(open("f.dat").read(), sorted(os.listdir()))""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_path_leads_to_its_directory(case, as_without_layer):
    as_without_layer(CASES[case])


def test_an_archive_of_another_directory_is_left_alone(as_without_layer):
    """It lies where that of the process was, which ends with nothing packed."""
    as_without_layer("""
import subprocess, sys
os.mkdir("b"); open("b/x.dat", "w").write("x")
subprocess.run([sys.executable, "-c",
    "import os; os.rename('b', 'c'); os.mkdir('b'); open('b/y.dat', 'w').write('y')"], check=True)
os.unlink("c/x.dat"); print(os.listdir("c"))
subprocess.run([sys.executable, "-c", "print(open('b/y.dat').read())"], check=True)""")
