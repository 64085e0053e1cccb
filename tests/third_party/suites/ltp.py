# SPDX-License-Identifier: Apache-2.0
"""The Linux Test Project: its tests of system calls that do I/O, and its fsx."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite
from harness.run import tree_version

_CALLS = (
    *("read", "readv", "write", "writev", "pread", "preadv", "pwrite", "pwritev", "lseek",
        "llseek"),
    *("open", "openat", "creat", "close", "dup", "dup2", "dup3", "ftruncate", "truncate"),
    *("fsync", "fdatasync", "sendfile", "splice", "copy_file_range", "mmap", "munmap", "msync"),
    *("rename", "unlink", "link", "stat", "fstat", "lstat", "statx", "flock", "chmod", "fchmod"),
    *("readahead", "posix_fadvise", "fallocate", "fork", "vfork", "clone", "execve", "exit"),
    *("openat2", "close_range", "preadv2", "pwritev2", "tee", "vmsplice", "sync_file_range",
        "mremap"),
    *("renameat", "renameat2", "unlinkat", "linkat", "symlink", "chown", "fchown", "lchown",
        "fchownat"),
    *("fchmodat", "utime", "utimes", "utimensat", "futimesat", "mknod", "getdents", "statfs",
        "fstatfs"),
    *("setgid", "setuid", "setegid", "setresuid", "setresgid", "setreuid", "setregid", "setgroups"),
    *("fcntl", "io_submit", "io_getevents", "memfd_create", "access", "setxattr", "getxattr"),
)
# They wait for real time (an alarm, a measurement of cached reads), format devices, or take
# minutes.
_LEFT_OUT = ("readahead02", "flock07", "fork13", "fsync04", "copy_file_range02", "preadv03",
    "pwritev03")
_LEFT_OUT += ("preadv03_64", "pwritev03_64", "preadv203", "sendfile09", "sendfile09_64",
    "fork_procs", "fork14")
_LEFT_OUT += ("renameat01",)
_LEFT_OUT += ("rename11", "creat09", "writev03", "fallocate05", "fallocate06", "fallocate04",
    "statx05")
_LEFT_OUT += ("statx04", "statx06", "statx08", "lseek11", "mmap16", "msync04", "fdatasync03",
    "openat04")


def _call_steps(place):
    calls = place.tree / "testcases" / "kernel" / "syscalls"
    environment = {"LTP_TIMEOUT_MUL": "1", "TMPDIR": str(place.work), "LTP_COLORIZE_OUTPUT": "n"}
    for call in _CALLS:
        for source in sorted((calls / call).glob("*[0-9].c")):
            program = source.with_suffix("")
            if program.is_file() and program.name not in _LEFT_OUT:
                environment["PATH"] = f"{program.parent}:/usr/bin:/bin:/usr/sbin:/sbin"
                command = (str(program),)
                yield Step(program.name, command, parse.ltp, dict(environment), time_limit_s=30)


def _fsx_steps(place):
    program = str(place.tree / "testcases" / "kernel" / "fs" / "fsx-linux" / "fsx-linux")
    environment = {"TMPDIR": str(place.work), "LTP_COLORIZE_OUTPUT": "n"}
    # -l bytes of the file, -o largest operation, -N operations
    for name, options in (
        ("ordinary", ("-N", "3000")),
        ("small file", ("-N", "3000", "-l", "20000", "-o", "3000")),
        ("large file", ("-N", "1000", "-l", "9000000", "-o", "300000")),
        ("no holes", ("-N", "2000", "-l", "100000", "-o", "65536")),
    ):
        yield Step(name, (program, *options), parse.ltp, environment, time_limit_s=60)


_GROW = ("-b", "-e", "1", "-u")
# Directory below testcases/kernel, program, options; shorter than by default where that takes a
# minute.
_FILE_TESTS = (
    *(("fs/ftest", f"ftest0{n}", ()) for n in range(1, 9)),
    *(("fs/stream", f"stream0{n}", ()) for n in range(1, 6)),
    ("io/writetest", "writetest", ()),
    *(("io/direct_io", f"diotest{n}", ()) for n in range(1, 7)),
    *(("io/direct_io", f"diotest{n}", ("-b", "65536", "-i", "100", "-o", "1024000"))
        for n in (2, 3, 5, 6)),
    *(("io/aio", f"aio0{n}", ()) for n in (1, 2)),
    ("io/ltp-aiodio", "dio_append", ("-n", "4", "-c", "20")),
    ("io/ltp-aiodio", "aiodio_append", ("-n", "4", "-c", "20")),
    ("io/ltp-aiodio", "dio_read", ("-n", "4")),
    ("io/ltp-aiodio", "dio_truncate", ("-n", "4", "-c", "20")),
    ("io/ltp-aiodio", "dio_sparse", ("-n", "3", "-s", "2M")),
    ("io/ltp-aiodio", "aiodio_sparse", ("-n", "3", "-s", "2M")),
    ("fs/doio", "growfiles", (*_GROW, "-i", "300", "-w", "-C", "1", "-l", "-I", "r", "-T", "10",
        "-S", "2")),
    ("fs/doio", "growfiles", (*_GROW, "-i", "100", "-I", "p", "-S", "2")),
    ("fs/doio", "growfiles", (*_GROW, "-g", "1", "-i", "1", "-S", "150")),
    ("fs/doio", "growfiles", (*_GROW, "-g", "4090", "-i", "500", "-t", "39000")),
    ("fs/doio", "growfiles", (*_GROW, "-g", "5000", "-i", "500", "-t", "49900", "-T10", "-c9", "-I",
        "p")),
    ("fs/doio", "growfiles", (*_GROW, "-r", "1-5000", "-R", "0--2", "-i", "300", "-C", "1", "-I",
        "p", "-S", "2")),
    ("fs/doio", "growfiles", (*_GROW, "-r", "1-5000", "-i", "300", "-C", "1", "-I", "l", "-S",
        "2")),
    ("fs/doio", "growfiles", (*_GROW, "-g", "5000", "-i", "500", "-t", "49900", "-o",
        "O_RDWR,O_CREAT,O_TRUNC")),
    ("fs/doio", "growfiles", (*_GROW, "-D", "0", "-i", "100", "-r", "1-256000:512", "-R",
        "512-256000", "-T", "4")),
    ("fs/doio", "growfiles", ("-b", "-u", "-D", "0", "-w", "-g", "8b", "-C", "1", "-i", "1000")),
)


def _file_steps(place):
    environment = {"TMPDIR": str(place.work), "LTP_COLORIZE_OUTPUT": "n", "LTP_TIMEOUT_MUL": "3"}
    for number, (directory, program, options) in enumerate(_FILE_TESTS):
        path = str(place.tree / "testcases" / "kernel" / directory / program)
        places = ("-W", program, "-f", f"g{number}_", "-d",
            str(place.work)) if program == "growfiles" else ()
        name = " ".join((program, *options))
        yield Step(name, (path, *options, *places), parse.ltp, environment, time_limit_s=60)


SUITES = [
    Suite(
        name="ltp-fs",
        title="Linux Test Project: its tests of files: ftest, stream, direct I/O, AIO beside "
              "buffered I/O, growfiles",
        steps=_file_steps,
        version=tree_version,
        tree="ltp",
        needs=("testcases/kernel/fs/ftest/ftest01", "testcases/kernel/io/ltp-aiodio/dio_append"),
    ),
    Suite(
        name="ltp",
        title=f"Linux Test Project: tests of {len(_CALLS)} system calls that do I/O, one program "
              f"after the other",
        steps=_call_steps,
        version=tree_version,
        tree="ltp",
        needs=("testcases/kernel/syscalls/write/write01",),
    ),
    Suite(
        name="fsx",
        title="fsx of the Linux Test Project: random reads, writes, maps and truncations of one "
              "file, each checked",
        steps=_fsx_steps,
        version=tree_version,
        tree="ltp",
        needs=("testcases/kernel/fs/fsx-linux/fsx-linux",),
    ),
]
