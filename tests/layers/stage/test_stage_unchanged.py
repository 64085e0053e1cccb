# SPDX-License-Identifier: Apache-2.0
"""Layer stage: files that are opened to be written and stay as they are, as databases open theirs,
and what looks like it and is a change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from weir_process import clean_environment

FILES = 100
EACH = """
import os, sys
for i in range({files}):
    fd = os.open(f"f{{i}}.dat", os.O_RDWR | os.O_CREAT, 0o644)
    {does}
    os.close(fd)
"""
AT_A_PLACE = ("create", "write", "fsync", "fsyncdir", "rename", "unlink")


def each(does: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", EACH.format(files=FILES, does=does))


@pytest.fixture
def made(testfs, rule, weir, tier):
    """Files of 9,000 bytes that went to their place on testfs."""
    fs = testfs("direct")
    subprocess.run(each("os.write(fd, bytes([i]) * 9000)"), cwd=fs.path, env=rule("end"),
        timeout=300, check=True)
    weir("stage", "recover", tier).ok()
    return fs


def requests_after(fs, command, rule, weir, tier):
    subprocess.run(command, cwd=fs.path, env=rule("end"), timeout=300, check=True)
    fs.reset()
    weir("stage", "recover", tier).ok()
    return fs.stats().requests


def test_files_that_were_opened_to_be_written_and_not_changed_are_not_copied(
        made, rule, weir, tier):
    requests = requests_after(made, each("assert os.pread(fd, 9, 0) == bytes([i]) * 9"), rule,
        weir, tier)
    assert {name: requests[name] for name in AT_A_PLACE} == dict.fromkeys(AT_A_PLACE, 0)


def test_of_these_only_the_changed_ones_are_copied(made, rule, weir, tier):
    requests = requests_after(made, each("i % 10 or os.pwrite(fd, b'new', 4096)"), rule, weir,
        tier)
    for once in ("create", "fsync", "fsyncdir", "rename"):
        assert requests[once] == FILES // 10, once
    for i in range(FILES):
        old = bytes([i]) * 9000
        expected = old if i % 10 else old[:4096] + b"new" + old[4099:]
        assert (made.backing / f"f{i}.dat").read_bytes() == expected, i


CHANGES = {
    "bytes": "os.pwrite(fd, b'new', 4096)",
    "a store into a mapping": "m = mmap.mmap(fd, 0); m[5000]; m[5000] = 7; m.close()",
    "a hole": "os.truncate(fd, 4096); os.truncate(fd, 9000)",
    "the length": "os.pwrite(fd, b'x', 9000)",
    "permissions": "os.fchmod(fd, 0o751)",
    "time of last access": "atime = 77 * 10**9",
    "time of last change": "mtime = 78 * 10**9",
    "an attribute": "os.setxattr(fd, 'user.new', b'value')",
    "one attribute less": "os.removexattr(fd, 'user.old')",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_that_no_time_shows_goes_to_the_place(run, weir, tmp_path, tier, what):
    if "attribute" in what:
        probe = tmp_path / "probe"
        probe.touch()
        try:
            os.setxattr(probe, "user.old", b"value")
        except OSError as error:
            pytest.skip(f"the file system of {tmp_path} has no extended attributes: {error}")
    begin = ("import os, mmap\nfd = os.open('a.dat', os.O_RDWR | os.O_CREAT, 0o644)\n"
             "about = os.fstat(fd); atime, mtime = about.st_atime_ns, about.st_mtime_ns\n")
    first = "os.write(fd, b'o' * 9000); os.setxattr(fd, 'user.old', b'old')"
    run(sys.executable, "-c", begin + first, drain="end").check_returncode()
    weir("stage", "recover", tier).ok()
    then = begin + CHANGES[what] + "\nos.utime(fd, ns=(atime, mtime))\n"
    plain = tmp_path / "plain"
    plain.mkdir()
    subprocess.run([sys.executable, "-c", f"{begin}{first}\n{then}"], cwd=plain, timeout=300,
        env=clean_environment(), check=True)
    run(sys.executable, "-c", then, drain="end").check_returncode()
    weir("stage", "recover", tier).ok()
    place, other = tmp_path / "staged/a.dat", plain / "a.dat"
    about, expected = place.stat(), other.stat()
    assert about.st_mode == expected.st_mode
    if what.startswith("time"):
        name = "st_atime" if "access" in what else "st_mtime"
        assert getattr(about, name) == getattr(expected, name) in (77, 78)
    assert place.read_bytes() == other.read_bytes()
    names = os.listxattr(place)
    assert names == os.listxattr(other)
    assert [os.getxattr(place, n) for n in names] == [os.getxattr(other, n) for n in names]


EMPTIED = """
import os, subprocess, sys
fd = os.open("a.dat", os.O_RDWR)  # a file at its place, which stays there
os.ftruncate(fd, 0)
other = subprocess.run([sys.executable, "-c", '''
import os
fd = os.open("a.dat", os.O_RDWR)
os.write(fd, b"by the other")
'''], check=True)
print(os.pread(fd, 99, 0))
os.pwrite(fd, b"BY", 0)
print(open("a.dat", "rb").read())
"""


def test_a_file_that_who_has_it_open_has_cut_stays_one_file(run, tmp_path, tier):
    """As PostgreSQL cuts a table to nothing that other processes have open."""
    place = tmp_path / "staged/a.dat"
    place.parent.mkdir()
    place.write_text("of before")
    done = run(sys.executable, "-c", EMPTIED, drain="async")
    assert done.stdout.splitlines() == ["b'by the other'", "b'BY the other'"], done.stderr
    place.write_bytes(b"")  # nobody has it open: it goes to the tier as one that is made
    run("sh", "-c", "echo data >> a.dat", drain="never").check_returncode()
    assert place.read_bytes() == b""
    assert run("cat", "a.dat").stdout == "data\n"
