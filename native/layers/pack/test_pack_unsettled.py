# SPDX-License-Identifier: Apache-2.0
"""An opening has the memory of a former file until something but a read or a write comes to it:
whatever comes finds the file, in this process and in others."""

from __future__ import annotations

COMMON = r'''
import ctypes, fcntl, io, mmap, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def make(name, data):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    assert os.write(fd, data) == len(data)
    os.close(fd)

def contents(name):
    fd = os.open(name, os.O_RDONLY)
    data = b"".join(iter(lambda: os.read(fd, 1000), b""))
    os.close(fd)
    return data if len(data) < 60 else (len(data), data[:30], data[-30:])

def through(fd, how):
    """What sendfile and splice find behind the position."""
    ends = os.pipe()
    how(fd, ends[1])
    os.close(ends[1])
    data = os.read(ends[0], 9999)
    os.close(ends[0])
    return data

def mapped(fd):
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as at:
        return at[:]

def in_child(fd):
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ends[1], os.read(fd, 5))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(ends[1])
    return os.read(ends[0], 99)

def again(fd, path):
    other = os.open(path, os.O_RDONLY)
    data = os.read(other, 9999)
    os.close(other)
    return data

def of_copy(fd):
    other = os.dup(fd)
    data = os.read(other, 3), os.lseek(other, 0, os.SEEK_CUR)
    os.close(other)
    return data

def spawned(fd):
    os.set_inheritable(fd, True)
    return subprocess.run(["cat"], stdin=fd, stdout=subprocess.PIPE, check=True).stdout
'''

READING = COMMON + r'''
ACTS = {
    "nothing": lambda fd: None, "fstat": lambda fd: os.fstat(fd).st_size,
    "lseek": lambda fd: (os.lseek(fd, 0, os.SEEK_CUR), os.lseek(fd, -2, os.SEEK_END)),
    "pread": lambda fd: (os.pread(fd, 6, 3), os.pread(fd, 9, 9), os.pread(fd, 9, 999)),
    "readv": lambda fd: (lambda to: (os.readv(fd, to), to))([bytearray(2), bytearray(40)]),
    "rest": lambda fd: (os.read(fd, 999), os.read(fd, 999)), "dup": of_copy,
    "sendfile": lambda fd: through(fd, lambda a, b: os.sendfile(b, a, None, 999)),
    "splice": lambda fd: through(fd, lambda a, b: os.splice(a, b, 999)),
    "mmap": mapped, "fork": in_child, "spawn": spawned, "again": lambda fd: again(fd, "c.dat"),
    "proc": lambda fd: again(fd, f"/proc/self/fd/{fd}"),
    "stream": lambda fd: libc.fgetc(ctypes.c_void_p(libc_fdopen(os.dup(fd), b"r"))),
    "write": lambda fd: libc.write(fd, b"x", 1), "bad": lambda fd: libc.read(fd, 1, 5),
    "lock": lambda fd: fcntl.flock(fd, fcntl.LOCK_SH), "advice": lambda fd: os.posix_fadvise(fd, 0,
        0, os.POSIX_FADV_SEQUENTIAL),
    "stat": lambda fd: os.stat("c.dat").st_size, "unlink": lambda fd: os.unlink("c.dat"),
    "rename": lambda fd: os.rename("c.dat", "d.dat"), "chmod": lambda fd: os.chmod("c.dat", 0o600),
    "over": lambda fd: os.rename("b.dat", "c.dat"), "cut": lambda fd: os.truncate("c.dat", 7),
    "empty": lambda fd: os.close(os.open("c.dat", os.O_WRONLY | os.O_TRUNC)),
    "other": lambda fd: make("c.dat", b"OTHER CONTENTS OF C, longer"),
    "link": lambda fd: os.link("c.dat", "l.dat"), "fchmod": lambda fd: os.fchmod(fd, 0o640),
}
libc_fdopen = libc.fdopen
libc_fdopen.restype = ctypes.c_void_p
for before in (0, 4):
    for name, act in ACTS.items():
        for path in os.listdir("."):
            if path.endswith(".dat"):
                os.unlink(path)
        make("b.dat", b"x" * 3000)
        make("c.dat", b"contents of c")
        contents("b.dat")  # whose memory the next opening has
        fd = os.open("c.dat", os.O_RDONLY)
        print(name, before, os.read(fd, before), act(fd))
        print(os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size, os.read(fd, 99))
        os.close(fd)
        print(sorted((path, contents(path)) for path in os.listdir(".") if path.endswith(".dat")))
'''

WRITING = COMMON + r'''
def of_other(fd):
    other = os.open("c.dat", os.O_RDWR)
    os.pwrite(other, b"OTHER", 1)
    data = os.read(other, 99)
    os.close(other)
    return data

ACTS = {
    "nothing": lambda fd: None, "fstat": lambda fd: os.fstat(fd).st_size,
    "lseek": lambda fd: (os.lseek(fd, 0, os.SEEK_CUR), os.lseek(fd, 1, os.SEEK_SET)),
    "write": lambda fd: os.write(fd, b"second"), "pwrite": lambda fd: os.pwrite(fd, b"inside", 2),
    "read": lambda fd: os.read(fd, 99), "pread": lambda fd: os.pread(fd, 99, 0),
    "cut": lambda fd: os.ftruncate(fd, 3), "grow": lambda fd: os.ftruncate(fd, 20),
    "cut by name": lambda fd: os.truncate("c.dat", 2), "fchmod": lambda fd: os.fchmod(fd, 0o600),
    "chmod": lambda fd: os.chmod("c.dat", 0o640), "stat": lambda fd: os.stat("c.dat").st_size,
    "dup": lambda fd: (lambda copy: (os.write(copy, b" copy"), os.close(copy)))(os.dup(fd)),
    "mmap": mapped, "fork": in_child, "again": lambda fd: again(fd, "c.dat"), "other": of_other,
    "proc": lambda fd: again(fd, f"/proc/self/fd/{fd}"), "unlink": lambda fd: os.unlink("c.dat"),
    "rename": lambda fd: os.rename("c.dat", "d.dat"), "fsync": os.fsync,
    "over": lambda fd: os.rename("b.dat", "c.dat"), "lock": lambda fd: fcntl.flock(fd,
        fcntl.LOCK_EX),
    "append": lambda fd: (fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND), os.write(fd, b"end")),
    "sendfile": lambda fd: os.sendfile(fd, source, 0, 9),
    "copy_file_range": lambda fd: os.lseek(fd, 0, os.SEEK_HOLE),
    "others are written": lambda fd: [make(f"{i}.dat", b"other" * i) for i in range(5)],
}
with open("source", "wb") as made:
    made.write(b"the source is here")
source = os.open("source", os.O_RDONLY)
for mode in (os.O_WRONLY, os.O_RDWR):
    for bytes in (5, 700):
        for name, act in ACTS.items():
            if mode == os.O_WRONLY and name in ("read", "pread", "mmap", "fork"):
                continue
            for path in os.listdir("."):
                if path.endswith(".dat"):
                    os.unlink(path)
            make("b.dat", b"x" * 600)
            make("a.dat", b"y" * 600)  # whose memory the next opening has
            fd = os.open("c.dat", mode | os.O_CREAT | os.O_TRUNC, 0o644)
            print(name, bytes, os.write(fd, b"fresh" * (bytes // 5)), act(fd))
            print(os.fstat(fd).st_size, os.lseek(fd, 0, os.SEEK_CUR))
            os.close(fd)
            print(sorted((path, contents(path), oct(os.stat(path).st_mode))
                for path in os.listdir(".") if path.endswith(".dat")))
'''

# A process that runs the lines it is given.
OTHERS = COMMON + r"""
OTHER = '''
import os, sys
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
'''
other = subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE,
    stdout=subprocess.PIPE, text=True)

def there(line):
    print(line, file=other.stdin, flush=True)
    assert other.stdout.readline() == "done\n"

OPEN = "fd = os.open('c.dat', os.O_RDWR); "
LINES = {
    "reads": OPEN + "assert os.read(fd, 99)[:5] in (b'conte', b'fresh'), os.pread(fd, 99, 0); "
        "os.close(fd)",
    "writes": OPEN + "os.pwrite(fd, b'THERE', 4); os.close(fd)",
    "keeps it open": OPEN + "os.pwrite(fd, b'KEPT', 4)",
    "replaces": "fd = os.open('c.dat', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644); "
        "os.write(fd, b'replaced'); os.close(fd)",
    "removes": "os.unlink('c.dat')",
    "removes and makes": "os.unlink('c.dat'); fd = os.open('c.dat', os.O_WRONLY | os.O_CREAT); "
        "os.write(fd, b'another one'); os.close(fd)",
    "renames": "os.rename('c.dat', 'd.dat')", "puts another there": "os.rename('b.dat', 'c.dat')",
    "cuts": "os.truncate('c.dat', 6)", "links": "os.link('c.dat', 'l.dat')",
    "changes": "os.chmod('c.dat', 0o600)", "looks": "assert os.stat('c.dat').st_size == 13",
}
for mode in (os.O_RDONLY, os.O_WRONLY):
    for name, line in LINES.items():
        for path in os.listdir("."):
            if path.endswith(".dat"):
                os.unlink(path)
        make("b.dat", b"x" * 60)
        make("c.dat", b"contents of c")
        contents("b.dat")
        if mode == os.O_RDONLY:
            fd = os.open("c.dat", os.O_RDONLY)
            there(line)
            print(name, os.read(fd, 99), os.fstat(fd).st_size, os.pread(fd, 99, 0))
        else:
            fd = os.open("c.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(fd, b"fresh contents"[:13])
            there(line)
            print(name, os.write(fd, b" and more"), os.fstat(fd).st_size)
        os.close(fd)
        print(sorted((path, contents(path), oct(os.stat(path).st_mode))
            for path in os.listdir(".") if path.endswith(".dat")))
other.communicate()
"""


def test_whatever_comes_to_a_file_that_was_just_opened_finds_its_contents(as_without_layer):
    assert "again 4 b'cont' b'contents of c'" in as_without_layer(READING)


def test_whatever_comes_behind_the_first_write_finds_what_it_wrote(as_without_layer):
    assert "grow 5 5 None" in as_without_layer(WRITING)


def test_other_processes_find_what_was_read_or_written_once(as_without_layer):
    assert "writes b'contTHEREof c'" in as_without_layer(OTHERS)
