# SPDX-License-Identifier: Apache-2.0
"""Finding rewritten-files: what it is found in, what it is worth, which rule cures it, what that
rule does; and what has just less than its limits."""

from __future__ import annotations

import sys

import pytest
from advised import KIB, MIB, MS, Program, advised, names, stream, the
from wait_trace import WaitTrace

STORE = "/scratch/an/store/__{0}_{0}_22/metadata.tdb"


def pieces(stores: int, opens: int, size: int = 50, ops: tuple[str, ...] = ("write", "read"),
        is_there: bool = False) -> Program:
    """Each piece by an opening of its own, as TileDB writes and reads."""

    def program(trace: WaitTrace) -> None:
        for number in range(stores):
            path = STORE.format(number)
            if is_there:
                trace.io(0, MS, path, "read", size)
            for at in range(opens):
                trace.io(0, MS, path, "open", 0)
                trace.io(0, MS, path, ops[at % len(ops)], size, at // len(ops) * size)
                trace.io(0, MS, path, "close", 0)

    return program


def test_files_that_are_opened_for_each_piece_have_pack(tmp_path):
    report = advised(tmp_path, pieces(20, 20))
    one = the(report, "rewritten-files")
    assert one.rule.path == "/scratch/an/store/__*_*_22/*" and not one.rule.unusable
    assert one.rule.stack == "pack:name=weir-packed.zip:extract=onexit"
    assert "until the last process of the node ends" in one.rule.caution
    assert "20 small files and opens them 400 times" in one.sentence.replace("\u00a0", " ")
    # 1.2 s, less what is left of it, and up to three opens of each of 20 files to extract them
    assert 0.7 < one.saving.io.low < 0.77 and 1.1 < one.saving.io.high < 1.21
    assert one.rule in [other.rule for other in report.rules]


def test_healthy_programs_have_none(tmp_path):
    assert "rewritten-files" not in names(advised(tmp_path / "large", stream(4, 16 * MIB, 10)))
    program = pieces(200, 2)  # written once, read once
    assert "rewritten-files" not in names(advised(tmp_path / "copies", program))


@pytest.mark.parametrize("program", [pieces(3, 30), pieces(20, 20, ops=("write",)),
    pieces(20, 20, ops=("read",)), pieces(20, 20, size=512 * KIB), pieces(20, 20, is_there=True)],
    ids=["few", "never read", "never written", "large", "there before"])
def test_what_has_less_than_its_limits_has_none(tmp_path, program):
    assert "rewritten-files" not in names(advised(tmp_path, program))


def test_two_nodes_have_none(tmp_path):
    """The second one could not remove or replace what the first one has packed."""
    assert "rewritten-files" not in names(advised(tmp_path, pieces(20, 20), nodes=2))


@pytest.mark.parametrize(("op", "is_usable"), [("read", False), ("stat", True)])
def test_the_rule_is_for_no_file_that_is_there_before(tmp_path, op, is_usable):
    def program(trace: WaitTrace) -> None:
        trace.io(0, MS, STORE.replace("metadata", "grid").format(1), op, 100 * (op == "read"))
        pieces(20, 20)(trace)

    assert bool(the(advised(tmp_path, program), "rewritten-files").rule.unusable) != is_usable


STORES = """
import os
for number in range(8):
    os.makedirs(f'store/__{number}_{number}_22')
    for at in range(16):
        name = f'store/__{number}_{number}_22/metadata.tdb'
        f = os.open(name, os.O_WRONLY | os.O_CREAT)
        os.pwrite(f, b'piece %4d' % at, at * 10)
        os.close(f)
        f = os.open(name, os.O_RDONLY)
        assert os.pread(f, 10, at * 10) == b'piece %4d' % at
        os.close(f)
"""


def test_its_rule_leaves_files_as_they_are_with_a_tenth_of_the_requests(weir, testfs, tmp_path):
    place, rules = testfs("direct", round_trip_us=300), tmp_path / "rules.toml"
    command = ("--", sys.executable, "-c", STORES)
    weir("trace", "-q", "-o", tmp_path / "r", *command, cwd=place.path).ok()
    found = weir("advise", tmp_path / "r", "--write", rules)
    assert "rewritten-files: store/" in found.stdout and found.returncode == 1
    files = sorted(place.backing.glob("store/*/*"))
    plain = {one: one.read_bytes() for one in files}
    assert [len(data) for data in plain.values()] == [160] * 8
    for one in files:
        one.unlink()
        one.parent.rmdir()
    (place.backing / "store").rmdir()
    place.reset()
    weir("run", "--rules", rules, *command, cwd=place.path).ok()
    assert {one: one.read_bytes() for one in sorted(place.backing.glob("store/*/*"))} == plain
    assert place.stats().requests["open"] + place.stats().requests["create"] < 2 * 8 * 16 / 5
