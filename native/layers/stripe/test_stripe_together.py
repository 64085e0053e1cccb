# SPDX-License-Identifier: Apache-2.0
"""Ranks that make one striped file together, each of which writes a part of it."""

from __future__ import annotations

import subprocess
import sys

from weir_process import clean_environment

RANKS, PART = 6, 300_000
PROGRAM = """
import os, sys
rank, name = int(sys.argv[1]), sys.argv[2]
fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
os.pwrite(fd, bytes([rank + 1]) * %d, rank * %d)
os.close(fd)
""" % (PART, PART)
READER = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"


def striped(preload, tmp_path, names):
    for piece in ("a", "b"):
        (tmp_path / piece).mkdir()
    return clean_environment() | {"LD_PRELOAD": str(preload),
        "WEIR_RULES": "weir-rules 1\nrule source=test:1:1 name=*.dat stack=stripe:"
                      f"dirs={tmp_path}/a,{tmp_path}/b:unit=4KiB|system\n"}


def content(env, path) -> bytes:
    return subprocess.run([sys.executable, "-c", READER, path], env=env, check=True,
        capture_output=True, timeout=300).stdout


def test_no_rank_empties_what_another_has_written(preload, testfs, tmp_path):
    """The index takes a while to be there: its file system has latency, its pieces' have none."""
    names = testfs("direct", round_trip_us=3000).path
    env = striped(preload, tmp_path, names)
    for turn in range(8):
        path = names / f"{turn}.dat"
        ranks = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(rank), path], env=env)
            for rank in range(RANKS)]
        assert [rank.wait(timeout=600) for rank in ranks] == [0] * RANKS
        assert content(env, path) == b"".join(bytes([rank + 1]) * PART for rank in range(RANKS))


def test_pieces_of_an_index_that_a_stranger_emptied_are_emptied(preload, tmp_path):
    env = striped(preload, tmp_path, tmp_path)
    path = tmp_path / "x.dat"
    assert subprocess.run([sys.executable, "-c", PROGRAM, "0", path], env=env).returncode == 0
    with open(path, "wb"):
        pass
    script = "import os, sys; fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT); os.close(fd)"
    assert subprocess.run([sys.executable, "-c", script, path], env=env).returncode == 0
    assert content(env, path) == b""
