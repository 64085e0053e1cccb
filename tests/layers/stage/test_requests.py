# SPDX-License-Identifier: Apache-2.0
"""Layer stage: requests at the file's place, counted where they are served (testfs)."""

from __future__ import annotations

import subprocess
import sys
import time

from weir_process import clean_environment
from weir_stage import wait_until

FILES = 200
PATIENCE_S = 5  # of the daemon, while files are made (native/layers/stage/daemon/drain.cc)
MAKE = """
import os, sys
for i in range(int(sys.argv[2])):
    fd = os.open(f"{sys.argv[1]}f{i}.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, b"x" * 2048)
    os.close(fd)
"""
READ = """
import os, sys
for i in range(int(sys.argv[2])):
    assert open(f"{sys.argv[1]}f{i}.dat", "rb").read() == b"x" * 2048
"""


def waited_for(fs) -> int:
    """Requests that somebody waits for: all but release."""
    requests = fs.stats().requests
    return sum(requests.values()) - requests["release"] - requests["releasedir"]


def make(fs, environment, program=MAKE, directory=""):
    command = (sys.executable, "-S", "-E", "-c", program, directory, str(FILES))
    fs.reset()
    subprocess.run(command, cwd=fs.path, env=environment, timeout=300, check=True)
    return fs.stats().requests, waited_for(fs)


def test_a_file_that_is_made_asks_its_place_once(testfs, rule):
    _, plain = make(testfs("direct"), clean_environment())
    assert plain >= 7 * FILES  # a lookup, create, write, flush, and 3 of the directory
    fs = testfs("direct")
    requests, staged = make(fs, rule("never"))
    assert requests["lookup"] <= FILES + 10 and requests["create"] == requests["write"] == 0
    assert staged <= 2 * FILES + 20  # and one of the directory
    assert [*fs.backing.iterdir()] == []


def test_by_a_whole_path_it_asks_for_the_directory_once_more(testfs, rule):
    fs = testfs("direct")
    _, staged = make(fs, rule("never"), directory=f"{fs.path}/")
    assert staged <= 3 * FILES + 20


def test_files_that_are_newer_are_read_and_written_again_without_a_request(testfs, rule):
    fs = testfs("direct")
    make(fs, rule("never"))
    requests, staged = make(fs, rule("never"))
    assert requests["lookup"] <= 10 and staged <= 30
    requests, staged = make(fs, rule("never"), READ)
    assert requests["lookup"] <= 10 and staged <= 30


def test_a_file_goes_to_its_place_by_few_requests(testfs, rule, weir, tier):
    fs = testfs("direct")
    make(fs, rule("end"))
    fs.reset()
    weir("stage", "recover", tier).ok()
    requests = fs.stats().requests
    assert len([*fs.backing.iterdir()]) == FILES
    for once in ("create", "write", "setattr", "fsync", "fsyncdir", "rename", "flush"):
        assert requests[once] == FILES, once
    assert requests["lookup"] <= 3 * FILES + 10


def test_files_wait_until_no_more_are_made(testfs, rule):
    fs = testfs("lustre")
    begin = time.monotonic()
    requests, _ = make(fs, rule("async"))
    if time.monotonic() - begin < PATIENCE_S:  # else files go to their place meanwhile
        assert requests["create"] + requests["rename"] <= FILES // 2
    wait_until(lambda: len([*fs.backing.glob("f*.dat")]) == FILES)
