# SPDX-License-Identifier: Apache-2.0
"""Table interleaving, of processes that take turns; and the merge of requests of many processes."""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import pytest

from weir.report.interleaving.merge import Follower, Requests, merged

# Two processes that write in turns: ten pieces each, into files of their own, then into one.
TURNS = """
import os, sys
def turns(path, at, of):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    for i in range(10):
        if of == 1 or i: os.read(mine[0], 1)
        os.pwrite(fd, bytes(100), at(i))
        os.write(other[1], b"x")
    os.close(fd)
one, two = os.pipe(), os.pipe()
of = 0 if os.fork() else 1
mine, other = (one, two) if of == 0 else (two, one)
turns(f"own{of}", lambda i: 100 * i, of)
if of == 0: os.read(mine[0], 1)
turns("shared", lambda i: 100 * (2 * i + of), of)
if of == 0: os.wait()
"""


@pytest.fixture
def rows(weir, tmp_path, tmp_run):
    weir("trace", "-o", tmp_run, "--", sys.executable, "-c", TURNS, cwd=tmp_path).ok()
    found = weir("report", tmp_run, "--tables", "interleaving", "--json").ok().stdout
    text = weir("report", tmp_run, "--tables", "interleaving").ok().stdout
    assert "40 calls, of which 45% begin where the last one of the same rank ended" in text
    return {row["file"].rpartition("/")[2]: row for row in json.loads(found)["interleaving"]}


def test_files_of_their_own_are_contiguous_for_each_rank_and_not_for_the_node(rows):
    for name in ("own0", "own1"):
        row = rows[name]
        assert (row["calls"], row["ranks"]) == (10, 1)
        assert (row["of_rank"], row["of_file"], row["of_node"]) == (9, 9, 0)


def test_pieces_of_one_file_are_contiguous_for_the_node_alone(rows):
    row = rows["shared"]
    assert (row["calls"], row["ranks"], row["bytes"]) == (20, 2, 2000)
    assert (row["of_rank"], row["of_file"], row["of_node"]) == (0, 19, 19)


def test_other_reports_do_not_pay_for_it(weir, tmp_path, tmp_run):
    weir("trace", "-o", tmp_run, "--", sys.executable, "-c", TURNS, cwd=tmp_path).ok()
    assert "interleaving" not in json.loads(weir("report", tmp_run, "--json").ok().stdout)


def _requests(rows: list[tuple[int, int, int, int, int]]) -> Requests:
    return Requests(*np.array(rows, np.int64).reshape(-1, 5).T)


@pytest.mark.parametrize("seed", range(40))
def test_a_merge_in_windows_finds_what_one_pass_in_order_finds(seed):
    chance = random.Random(seed)
    processes, streams = chance.randint(1, 5), []
    for process in range(processes):
        time, rows = 0, []
        for _ in range(chance.randint(0, 60)):
            time += chance.randint(1, 9) * 8 + process - time % 8  # no two end at the same time
            begin = 100 * chance.randint(0, 3)
            rows.append((time, process, chance.randint(0, 2), begin, begin + 100))
        cuts = sorted(chance.sample(range(1, len(rows)), min(4, max(0, len(rows) - 1))))
        streams.append([rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)]) if a < b])
    expected, last = [], {}
    for row in sorted(row for stream in streams for part in stream for row in part):
        groups = (("rank", row[1]), ("file", row[2]), ("node", 0))
        expected.append([last.get(group) == row[2:4] for group in groups])
        last |= {group: (row[2], row[4]) for group in groups}
    followers = Follower(processes), Follower(3), Follower(1)
    found = []
    for window in merged([map(_requests, stream) for stream in streams]):
        groups = window.of, window.file, np.zeros(len(window), np.int64)
        found += np.column_stack([follower.follows(window, group)
            for follower, group in zip(followers, groups)]).tolist()
    assert found == expected, seed
