# SPDX-License-Identifier: Apache-2.0
"""pjdfstest: what POSIX says of paths, modes, owners and times; its parts that open and change
files."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite
from harness.run import tree_version

_PARTS = ("open", "truncate", "ftruncate", "posix_fallocate", "unlink", "link", "symlink", "rmdir",
    "utimensat")


def _steps(place):
    # The whole of chmod, chown and rename takes many minutes; these parts begin thousands of
    # processes as well.
    chosen = [script for part in _PARTS
        for script in sorted((place.tree / "tests" / part).glob("*.t"))]
    chosen += [place.tree / "tests" / "chmod" / f"{n:02}.t" for n in (2, 3, 4, 6, 8, 9, 10)]
    chosen += [place.tree / "tests" / "rename" / f"{n:02}.t" for n in (1, 2, 3, 12, 13, 14, 18, 23,
        24)]
    for script in chosen:
        if script.exists():
            name = f"{script.parent.name}/{script.stem}"
            yield Step(name, ("sh", str(script)), parse.tap, time_limit_s=60)


SUITE = Suite(
    name="pjdfstest",
    title="pjdfstest: open, truncate, unlink, link, chmod, rename, times, as POSIX says",
    steps=_steps,
    version=tree_version,
    tree="pjdfstest",
    needs=("pjdfstest", "tests/open/00.t"),
    leave_out={
        "summary": "thousands of short processes; detail and trace are run",
        "*-tiny": "paths and modes alone; buffers change nothing",
    },
)
