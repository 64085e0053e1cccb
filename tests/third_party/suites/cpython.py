# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of files, from Debian's package of the interpreter's tests."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite
from harness.run import debian_version

_TESTS = (
    *("test_io", "test_fileio", "test_file", "test_os", "test_mmap", "test_shutil",
        "test_tempfile"),
    *("test_posix", "test_pathlib", "test_zipfile", "test_tarfile", "test_glob"),
    *("test_fcntl", "test_filecmp", "test_dbm_dumb", "test_stat", "test_subprocess", "test_bufio"),
    *("test_fileinput", "test_gzip", "test_mailbox", "test_shelve"),
)
_PYTHON = "/usr/bin/python3.11"


def _steps(place):
    # regrtest's own time limit ends a test before ours does, and says where it was
    for test in _TESTS:
        command = (_PYTHON, "-B", "-m", "test", "-v", "--timeout=400", "--tempdir", str(place.work),
            test)
        yield Step(test, command, parse.unittest, time_limit_s=450)


SUITE = Suite(
    name="cpython",
    title=f"CPython's test_io, test_os, test_mmap, test_shutil, test_tempfile and "
          f"{len(_TESTS) - 5} others",
    steps=_steps,
    version=lambda _: debian_version("libpython3.11-testsuite"),
    packages=("libpython3.11-testsuite", "python3.11"),
    needs=(_PYTHON, "/usr/lib/python3.11/test/test_io.py"),
)
