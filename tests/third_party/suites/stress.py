# SPDX-License-Identifier: Apache-2.0
"""stress-ng: its stressors of files, each with its own checks, by a count of operations."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import debian_version

_STRESSORS = {
    **{"aio": 200, "chmod": 200, "close": 50, "dentry": 2000, "dir": 500, "dup": 200},
    **{"fallocate": 20, "fcntl": 200, "fiemap": 100, "file-ioctl": 100, "filename": 200,
        "flock": 500},
    **{"fpunch": 5, "fstat": 50, "hdd": 50, "io": 20, "iomix": 200, "lockf": 500, "lease": 50},
    **{"link": 100, "mmap": 5, "open": 200, "rename": 1000, "readahead": 50, "revio": 100,
        "seek": 1000},
    **{"sendfile": 20, "splice": 200, "symlink": 50, "sync-file": 20, "utime": 500, "verity": 1,
        "touch": 500},
}


def _steps(place):
    for name, operations in _STRESSORS.items():
        command = ("stress-ng", f"--{name}", "2", f"--{name}-ops", str(operations), "--verify",
            "--seed", "7")
        limit = ("--timeout", "20", "--temp-path", str(place.work))
        sizes = {"hdd": ("--hdd-bytes", "2m"), "iomix": ("--iomix-bytes", "2m"),
            "revio": ("--revio-bytes", "2m")}
        sizes |= {"seek": ("--seek-size", "2m"), "fallocate": ("--fallocate-bytes", "2m")}
        sizes |= {"readahead": ("--readahead-bytes", "2m")}
        sizes |= {"sync-file": ("--sync-file-bytes", "2m"), "sendfile": ("--sendfile-size", "1m")}
        yield Step(name, (*command, *limit, *sizes.get(name, ())), time_limit_s=60)


SUITE = Suite(
    name="stress-ng",
    title=f"stress-ng: {len(_STRESSORS)} stressors of files with --verify, two processes each",
    steps=_steps,
    version=lambda _: debian_version("stress-ng"),
    packages=("stress-ng",),
    needs=("stress-ng",),
)
