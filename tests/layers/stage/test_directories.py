# SPDX-License-Identifier: Apache-2.0
"""Layer stage: directories, whose files are on a tier, at their place, or on both."""

from __future__ import annotations

import subprocess
import sys

import pytest
from weir_stage import drained, real_files, wait_until

# Each pair of names is renamed with each kind of flags, in a directory of its own. Files that
# match, and so are on the tier: *.dat.
RENAMES = r"""
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def put(path, text):
    with open(path, "w") as file:
        file.write(text)
def content(path):
    if os.path.islink(path):
        return os.readlink(path)
    with open(path) as file:
        return file.read()
def all_in(top):
    return sorted((os.path.relpath(os.path.join(at, name), top), content(os.path.join(at, name)))
        for at, _, names in os.walk(top) for name in names), sorted(
        os.path.relpath(os.path.join(at, name), top) for at, names, _ in os.walk(top)
        for name in names)
def fill():
    for name in ("staged", "staged/sub", "both", "real", "empty", "other", "was"):
        os.mkdir(name)
    for name in ("staged/a.dat", "staged/sub/b.dat", "both/a.dat", "both/plain", "real/plain",
                 "other/a.dat", "other/c.dat", "was/d.dat", "file.dat", "file"):
        put(name, name)
    os.remove("was/d.dat")
    os.symlink("other", "link")
NAMES = ("staged", "both", "real", "empty", "was", "file.dat", "file", "link", "missing",
    "staged/sub", "staged/new", "other", "nodir/new", ".", "staged/.", "other/", "missing/")
for flags in (0, 1, 2, 3):
    for old in sys.argv[1:]:
        for new in NAMES:
            top = f"{flags}-{old}-{new}".replace("/", "_")
            os.mkdir(top)
            os.chdir(top)
            fill()
            failed = libc.renameat2(-100, old.encode(), -100, new.encode(), flags)
            print(flags, old, new, errno.errorcode[ctypes.get_errno()] if failed else "renamed",
                all_in("."))
            os.chdir("..")
"""


SOME = ["staged/", "staged/a.dat"]
MOST = ["staged", "both", "both/", "staged/sub", "real", "empty", "file.dat", "file", "link",
    "missing"]


@pytest.mark.parametrize("drain, names", [("never", SOME),
    pytest.param("end", MOST, marks=pytest.mark.campaign)])
def test_directories_are_renamed_as_without_the_layer(run, tmp_path, drain, names):
    plain = tmp_path / "plain"
    plain.mkdir()
    command = (sys.executable, "-c", RENAMES, *names)
    expected = subprocess.run(command, cwd=plain, capture_output=True, text=True, timeout=300,
        check=True)
    result = run(*command, drain=drain)
    differ = [pair for pair in zip(result.stdout.splitlines(), expected.stdout.splitlines())
        if pair[0] != pair[1]]
    assert differ == [] and result.stdout == expected.stdout, result.stderr
    assert expected.stdout.count("renamed") > 10 * len(names)


def test_files_of_both_directories_stay_when_one_cannot_replace_the_other(run, tmp_path, tier):
    """Of equal names none is lost, whoever looks."""
    script = ("mkdir one two; echo 1 > one/a.dat; echo 2 > two/a.dat; echo 3 > two/b.dat; "
              "mv -T one two")
    assert "not empty" in run("sh", "-c", script, drain="async").stderr
    where = tmp_path / "staged"
    wait_until(lambda: drained(tier))
    assert real_files(where) == {"one/a.dat": b"1\n", "two/a.dat": b"2\n", "two/b.dat": b"3\n"}


def test_a_file_takes_the_name_that_a_directory_had(run):
    script = ("mkdir d d/e; echo 1 > d/e/a.dat; mv d other; echo 2 > f.dat; mv f.dat d; "
              "cat d other/e/a.dat")
    done = run("sh", "-c", script)
    assert (done.stdout, done.stderr) == ("2\n1\n", "")


# Directories are as new as the last name that was made, removed or renamed in them.
TIMES = """
import os, sys, time
def time_of(call, name="d"):
    before = os.stat(name).st_mtime_ns
    time.sleep(0.02)  # more than the kernel's step of such times
    call()
    return os.stat(name).st_mtime_ns - before
os.mkdir("d")
print(time_of(lambda: open("d/a.dat", "w").close()) > 0, time_of(lambda: os.stat("d")),
    time_of(lambda: os.rename("d/a.dat", "d/b.dat")) > 0, time_of(lambda: os.remove("d/b.dat")) > 0,
    time_of(lambda: open("d/c.dat", "w").close(), os.path.abspath("d")) > 0)
os.utime("d", (5, 7))
print(os.stat("d").st_mtime, os.listdir("d"), os.path.samestat(os.stat("d"),
    os.fstat(os.open("d", os.O_RDONLY | os.O_DIRECTORY))), os.access("d", os.W_OK))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath("d"))
open("d/first.py", "w").write("x = 1")
import first
time.sleep(0.02)
open("d/second.py", "w").write("x = 2")
import second
print(second.x)
"""


def test_a_directory_has_the_time_of_its_last_change(rule, tmp_path):
    environment = {name: text.replace("name=*.dat", "path=*/d/*")
        for name, text in rule("never").items()}
    done = subprocess.run([sys.executable, "-c", TIMES], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "True 0 True True True\n7.0 ['c.dat'] True True\n2\n", done.stderr
