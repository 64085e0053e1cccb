# SPDX-License-Identifier: Apache-2.0
"""The Linux Test Project: its tests of system calls that do I/O, and its fsx."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite
from harness.run import tree_version

_CALLS = (
    *("read", "readv", "write", "writev", "pread", "preadv", "pwrite", "pwritev", "lseek", "llseek"),
    *("open", "openat", "creat", "close", "dup", "dup2", "dup3", "ftruncate", "truncate"),
    *("fsync", "fdatasync", "sendfile", "splice", "copy_file_range", "mmap", "munmap", "msync"),
    *("rename", "unlink", "link", "stat", "fstat", "lstat", "statx", "flock", "chmod", "fchmod"),
    *("readahead", "posix_fadvise", "fallocate", "fork", "vfork", "clone", "execve", "exit"),
    *("openat2", "close_range", "preadv2", "pwritev2", "tee", "vmsplice", "sync_file_range", "mremap"),
    *("renameat", "renameat2", "unlinkat", "linkat", "symlink", "chown", "fchown", "lchown", "fchownat"),
    *("fchmodat", "utime", "utimes", "utimensat", "futimesat", "mknod", "getdents", "statfs", "fstatfs"),
    *("setgid", "setuid", "setegid", "setresuid", "setresgid", "setreuid", "setregid", "setgroups"),
    *("fcntl", "io_submit", "io_getevents", "memfd_create", "access", "setxattr", "getxattr"),
)
# They wait for real time (an alarm, a measurement of cached reads), format devices, or take minutes.
_LEFT_OUT = ("readahead02", "flock07", "fork13", "fsync04", "copy_file_range02", "preadv03", "pwritev03")
_LEFT_OUT += ("preadv03_64", "pwritev03_64", "preadv203", "sendfile09", "sendfile09_64", "fork_procs", "fork14")
_LEFT_OUT += ("renameat01",)
_LEFT_OUT += ("rename11", "creat09", "writev03", "fallocate05", "fallocate06", "fallocate04", "statx05")
_LEFT_OUT += ("statx04", "statx06", "statx08", "lseek11", "mmap16", "msync04", "fdatasync03", "openat04")


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


SUITES = [
    Suite(
        name="ltp",
        title=f"Linux Test Project: tests of {len(_CALLS)} system calls that do I/O, one program after the other",
        steps=_call_steps,
        version=tree_version,
        tree="ltp",
        needs=("testcases/kernel/syscalls/write/write01",),
    ),
    Suite(
        name="fsx",
        title="fsx of the Linux Test Project: random reads, writes, maps and truncations of one file, each checked",
        steps=_fsx_steps,
        version=tree_version,
        tree="ltp",
        needs=("testcases/kernel/fs/fsx-linux/fsx-linux",),
    ),
]
