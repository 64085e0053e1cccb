# SPDX-License-Identifier: Apache-2.0
"""A path that goes on below a file fails as without layers where a layer keeps the file elsewhere
than under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

PROGRAM = """
import errno, os
CALLS = {
    "stat": os.stat, "lstat": os.lstat, "open": lambda p: os.open(p, os.O_RDONLY),
    "create": lambda p: os.open(p, os.O_WRONLY | os.O_CREAT), "stream": lambda p: open(p, "w"),
    "mkdir": os.mkdir, "rmdir": os.rmdir, "unlink": os.unlink,
    "rename": lambda p: os.rename(p, "x"), "rename to": lambda p: os.rename("other", p),
    "link": lambda p: os.link(p, "x"), "link to": lambda p: os.link("other", p),
    "symlink": lambda p: os.symlink("x", p), "truncate": lambda p: os.truncate(p, 3),
    "chmod": lambda p: os.chmod(p, 0o600), "utime": os.utime, "listdir": os.listdir,
    "mkfifo": os.mkfifo, "chdir": os.chdir, "readlink": os.readlink,
}
def error_of(call, path):
    try:
        return call(path)
    except OSError as error:
        return errno.errorcode[error.errno]
open("other", "w").close()
for name, call in CALLS.items():
    for path in ("f.dat/below", "f.dat/", "missing/below"):
        with open("f.dat", "w") as file:
            file.write("x")
        print(name, path, error_of(call, path))
import ctypes
libc, nowhere = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p(1)
for name, arguments in {"mkdir": (nowhere, 0o700), "symlink": (b"x", nowhere),
        "link": (b"other", nowhere), "unlink": (nowhere,), "chdir": (nowhere,),
        "truncate": (nowhere, 1), "rename": (b"other", nowhere)}.items():
    print(name, "nowhere", getattr(libc, name)(*arguments), errno.errorcode[ctypes.get_errno()])
"""


@pytest.mark.parametrize("stack", ["pack:name=files.zip:always=1", "stage:tier={tier}:drain=never"])
def test_what_stands_below_a_file_of_a_layer_is_in_no_directory(preload, tmp_path, stack):
    job = f"pytest-below-{uuid.uuid4().hex[:12]}"
    tier = Path("/dev/shm") / job
    rules = f"weir-rules 1\nrule source=t:1 name=*.dat stack={stack.format(tier=tier)}|system\n"
    layered = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    printed = []
    try:
        for variables in ({}, layered):
            place = tmp_path / str(len(printed))
            place.mkdir()
            printed.append(subprocess.run([sys.executable, "-c", PROGRAM], cwd=place, text=True,
                env={**os.environ, **variables}, stdout=subprocess.PIPE, check=True,
                timeout=300).stdout)
            assert not variables or "f.dat" not in os.listdir(place)
    finally:
        shutil.rmtree(tier, ignore_errors=True)
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
    assert printed[1] == printed[0]
