# SPDX-License-Identifier: Apache-2.0
"""What programs do with files, as functions of a directory that return what they saw: results,
errnos, contents.

The same function in two directories tells whether two file systems behave the same.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

SCENARIOS: list[Callable[[Path], list]] = []
RW = os.O_RDWR | os.O_CREAT


def scenario(function: Callable[[Path], list]) -> Callable[[Path], list]:
    SCENARIOS.append(function)
    return function


def outcome(action: Callable, *arguments: object, **keywords: object) -> object:
    """The result, or the name of the errno."""
    try:
        return action(*arguments, **keywords)
    except OSError as error:
        return errno.errorcode[error.errno]


@contextmanager
def opened(path: Path, flags: int = RW, mode: int = 0o644):
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


@scenario
def append_goes_to_the_end_whoever_writes(directory: Path) -> list:
    name = directory / "a"
    seen = []
    with opened(name, RW | os.O_APPEND) as first, opened(name, RW | os.O_APPEND) as second:
        for i in range(5):
            seen.append(os.write(first, b"1" * i))
            seen.append(os.write(second, b"2" * i))
        os.lseek(first, 0, os.SEEK_SET)
        os.write(first, b"end")
        seen += [os.lseek(first, 0, os.SEEK_CUR), os.pread(second, 100, 0)]
    return [*seen, name.read_bytes()]


@scenario
def truncate_cuts_and_extends(directory: Path) -> list:
    name = directory / "a"
    seen = []
    with opened(name) as fd:
        os.write(fd, b"0123456789")
        for size in (4, 20, 0, 3):
            os.ftruncate(fd, size)
            seen += [os.fstat(fd).st_size, os.pread(fd, 100, 0), os.lseek(fd, 0, os.SEEK_CUR)]
        os.pwrite(fd, b"far", 100_000)
        seen += [os.fstat(fd).st_size, os.pread(fd, 10, 99_995)]
    os.truncate(name, 5)
    with opened(name, os.O_WRONLY | os.O_TRUNC) as fd:
        seen += [os.fstat(fd).st_size, outcome(os.pread, fd, 1, 0)]
    return [*seen, outcome(os.truncate, directory / "none", 5), outcome(os.truncate, directory, 5)]


@scenario
def an_open_file_survives_rename_and_unlink(directory: Path) -> list:
    a, b = directory / "a", directory / "b"
    a.write_bytes(b"first")
    b.write_bytes(b"second")
    seen = []
    with opened(a) as fd_a, opened(b) as fd_b:
        os.rename(a, b)
        os.pwrite(fd_a, b"FIR", 0)
        os.pwrite(fd_b, b"SEC", 0)
        seen += [b.read_bytes(), os.pread(fd_b, 100, 0), os.fstat(fd_b).st_nlink,
            sorted(os.listdir(directory))]
        os.unlink(b)
        os.write(fd_a, b"still there")
        os.ftruncate(fd_a, 8)
        seen += [os.pread(fd_a, 100, 0), os.fstat(fd_a).st_size, os.fstat(fd_a).st_nlink,
            os.listdir(directory)]
        a.write_bytes(b"another")
        seen += [os.pread(fd_a, 100, 0), os.fstat(fd_a).st_ino == os.stat(a).st_ino]
        os.fsync(fd_a)
        os.fchmod(fd_a, 0o600)
        seen.append(stat.S_IMODE(os.fstat(fd_a).st_mode))
    return seen


@scenario
def exclusive_create_and_flags(directory: Path) -> list:
    name = directory / "a"
    seen = [outcome(os.close, os.open(name, RW | os.O_EXCL))]
    seen += [outcome(os.open, name, RW | os.O_EXCL), outcome(os.open, directory, os.O_WRONLY),
        outcome(os.open, directory / "x", os.O_RDONLY)]
    os.symlink("a", directory / "l")
    seen += [outcome(os.open, directory / "l", os.O_RDONLY | os.O_NOFOLLOW),
        outcome(os.open, directory / "l", RW | os.O_EXCL)]
    os.symlink("missing", directory / "m")
    seen += [outcome(os.open, directory / "m", os.O_RDONLY),
        outcome(os.open, directory / "m", os.O_RDONLY | os.O_DIRECTORY)]
    with opened(name, os.O_WRONLY) as fd:
        seen += [outcome(os.read, fd, 1), os.write(fd, b"12")]
    with opened(name, os.O_RDONLY) as fd:
        seen += [outcome(os.write, fd, b"1"), outcome(os.ftruncate, fd, 0), os.read(fd, 10)]
    with opened(directory / "m") as fd:  # through the link
        os.write(fd, b"made")
    return [*seen, (directory / "missing").read_bytes(), outcome(os.open, directory / ("n" * 300),
        RW)]


@scenario
def names_links_and_directories(directory: Path) -> list:
    os.makedirs(directory / "d/e")
    (directory / "d/f").write_bytes(b"1")
    os.link(directory / "d/f", directory / "g")
    seen = [os.stat(directory / "g").st_nlink, os.path.samefile(directory / "g", directory / "d/f")]
    seen += [outcome(os.rmdir, directory / "d"), outcome(os.unlink, directory / "d"),
        outcome(os.rmdir, directory / "g")]
    seen += [outcome(os.mkdir, directory / "d"), outcome(os.rename, directory / "d",
        directory / "d/e/x"), outcome(os.link, directory / "d", directory / "h")]
    os.rename(directory / "d", directory / "moved")
    seen += [(directory / "moved/f").read_bytes(), outcome(os.stat, directory / "d/f")]
    os.symlink("moved/f", directory / "s")
    seen += [os.readlink(directory / "s"), os.lstat(directory / "s").st_size,
        (directory / "s").read_bytes(), outcome(os.readlink, directory / "g")]
    os.mkfifo(directory / "p")
    seen.append([(e.name, e.is_dir(), e.is_symlink(), e.is_file())
        for e in sorted(os.scandir(directory), key=lambda e: e.name)])
    os.unlink(directory / "g")
    return [*seen, os.stat(directory / "moved/f").st_nlink, stat
        .S_ISFIFO(os.stat(directory / "p").st_mode)]


@scenario
def exchange_and_no_replace(directory: Path) -> list:
    libc = ctypes.CDLL(None, use_errno=True)

    def renameat2(old: str, new: str, flags: int) -> object:
        done = libc.renameat2(-100, os.fsencode(directory / old), -100,
            os.fsencode(directory / new), flags)
        return done if done == 0 else errno.errorcode[ctypes.get_errno()]

    (directory / "a").write_bytes(b"a")
    (directory / "b").write_bytes(b"b")
    seen = [renameat2("a", "b", 1), renameat2("a", "c", 1), renameat2("b", "c", 2),
        renameat2("a", "b", 2)]
    return [*seen, (directory / "b").read_bytes(), (directory / "c").read_bytes(),
        sorted(os.listdir(directory))]


@scenario
def a_directory_of_many_names(directory: Path) -> list:
    for i in range(1200):
        (directory / f"{i:04d}-with-a-longer-name-so-that-one-answer-has-no-room").touch()
    before = sorted(os.listdir(directory))
    with os.scandir(directory) as entries:
        removed = 0
        for entry in entries:
            os.unlink(entry.path)
            removed += 1
    return [len(before), before[0], before[-1], removed, os.listdir(directory)]


@scenario
def modes_owners_and_times(directory: Path) -> list:
    name = directory / "a"
    old = os.umask(0o027)
    try:
        with opened(name, RW, 0o666):
            pass
        os.mkdir(directory / "d", 0o777)
    finally:
        os.umask(old)
    seen = [oct(os.stat(name).st_mode), oct(os.stat(directory / "d").st_mode)]
    os.chmod(name, 0o4755)
    seen.append(oct(os.stat(name).st_mode))
    os.chown(name, 12, 34) if os.getuid() == 0 else None
    seen += [os.stat(name).st_uid, os.stat(name).st_gid, oct(os.stat(name).st_mode)]
    os.utime(name, ns=(123456789012345678, 987654321098765432))
    seen += [os.stat(name).st_atime_ns, os.stat(name).st_mtime_ns]
    os.symlink("a", directory / "l")
    os.utime(directory / "l", ns=(1_000_000_001, 2_000_000_002), follow_symlinks=False)
    seen += [os.lstat(directory / "l").st_mtime_ns, os.stat(name).st_mtime_ns]
    os.utime(name)
    with opened(name, os.O_WRONLY) as fd:
        before = os.fstat(fd).st_mtime_ns
        os.write(fd, b"1")
        seen.append(os.fstat(fd).st_mtime_ns >= before)
    return [*seen, os.access(name, os.X_OK), outcome(os.chmod, directory / "none", 0o600)]


@scenario
def extended_attributes(directory: Path) -> list:
    name = directory / "a"
    name.touch()
    key = "trusted.weir" if os.getuid() == 0 else "user.weir"
    seen = [outcome(os.getxattr, name, key), outcome(os.setxattr, name, key, b"value"),
        outcome(os.getxattr, name, key)]
    seen += [outcome(os.setxattr, name, key, b"2", os.XATTR_CREATE),
        outcome(os.setxattr, name, key + "2", b"2", os.XATTR_REPLACE)]
    seen += [sorted(os.listxattr(name)), outcome(os.removexattr, name, key),
        outcome(os.removexattr, name, key)]
    return seen


@scenario
def seek_holes_and_preallocate(directory: Path) -> list:
    name = directory / "a"
    with opened(name) as fd:
        os.pwrite(fd, b"1", 0)
        os.pwrite(fd, b"2", 1 << 20)
        seen = [os.lseek(fd, 0, os.SEEK_END), os.lseek(fd, 0, os.SEEK_HOLE),
            os.lseek(fd, 8192, os.SEEK_DATA)]
        seen += [outcome(os.lseek, fd, 2 << 20, os.SEEK_DATA),
            outcome(os.lseek, fd, -1, os.SEEK_SET)]
        os.posix_fallocate(fd, 1 << 20, 1 << 20)
        seen += [os.fstat(fd).st_size, os.fstat(fd).st_blocks >= 2048,
            os.pread(fd, 3, (1 << 20) - 1)]
    return seen


@scenario
def copies_between_files(directory: Path) -> list:
    (directory / "a").write_bytes(bytes(range(256)) * 1000)
    seen = []
    with opened(directory / "a") as source, opened(directory / "b") as target:
        done = 0
        while step := os.copy_file_range(source, target, 200_000 - done, 1000 + done, 5 + done):
            done += step
            if done == 200_000:
                break
        seen += [done, os.fstat(target).st_size]
        os.lseek(target, 0, os.SEEK_END)
        seen.append(os.sendfile(target, source, 0, 50_000))
    return [*seen, (directory / "b").read_bytes()]


@scenario
def locks_between_descriptors(directory: Path) -> list:
    with opened(directory / "a") as first, opened(directory / "a") as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        seen = [outcome(fcntl.flock, second, fcntl.LOCK_SH | fcntl.LOCK_NB)]
        fcntl.flock(first, fcntl.LOCK_UN)
        seen.append(outcome(fcntl.flock, second, fcntl.LOCK_SH | fcntl.LOCK_NB))
        fcntl.lockf(first, fcntl.LOCK_EX, 10, 0)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, str(outcome(fcntl.lockf, second, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5))
                .encode())
            os._exit(0)
        os.waitpid(child, 0)
        seen.append(os.read(reader, 100))
        os.close(reader), os.close(writer)
    return seen


@scenario
def a_forked_child_shares_the_offset(directory: Path) -> list:
    with opened(directory / "a") as fd:
        os.write(fd, b"parent")
        child = os.fork()
        if child == 0:
            os.write(fd, b" child")
            os._exit(0)
        os.waitpid(child, 0)
        copy = os.dup(fd)
        os.write(copy, b" copy")
        os.close(copy)
        seen = [os.lseek(fd, 0, os.SEEK_CUR), os.pread(fd, 100, 0)]
    return seen


@scenario
def vectors_and_private_maps(directory: Path) -> list:
    name = directory / "a"
    name.write_bytes(bytes(range(100)) * 100)
    with opened(name) as fd:
        seen = [os.pwritev(fd, [b"ab", b"", b"cdef"], 50)]
        parts = [bytearray(3), bytearray(5)]
        seen += [os.preadv(fd, parts, 49), bytes(parts[0]), bytes(parts[1])]
        with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE) as view:
            seen += [view[49:60], len(view)]
            view[0:3] = b"xyz"
        seen.append(os.pread(fd, 3, 0))
    return seen


@scenario
def what_others_may_not(directory: Path) -> list:
    if os.getuid() != 0:
        return []
    os.chmod(directory, 0o755)
    (directory / "private").write_bytes(b"1")
    os.chmod(directory / "private", 0o600)
    os.mkdir(directory / "open")
    os.chmod(directory / "open", 0o777)
    os.mkdir(directory / "group")
    os.chown(directory / "group", 0, 4321)
    os.chmod(directory / "group", 0o2777)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        seen: list[object] = []
        try:
            # from here on by relative names: what lies above the directory may be closed to others
            os.chdir(directory)
            here = Path()
            os.setgroups([])
            os.setgid(12345)
            os.setuid(12345)
            seen += [outcome(os.open, here / "private", os.O_RDONLY),
                outcome(os.open, here / "new", RW)]
            for place in ("open", "group"):
                os.close(os.open(here / place / "mine", RW, 0o640))
                os.mkdir(here / place / "mydir")
                os.symlink("x", here / place / "mylink")
                for made in ("mine", "mydir", "mylink"):
                    status = os.lstat(here / place / made)
                    seen += [status.st_uid, status.st_gid, oct(status.st_mode)]
            seen += [outcome(os.chown, here / "open/mine", 0, 0),
                outcome(os.chmod, here / "private", 0o777)]
        finally:
            os.write(writer, repr(seen).encode())
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        return [answer.read()]
