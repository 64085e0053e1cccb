# SPDX-License-Identifier: Apache-2.0
"""Finding many-files: what it is found in, what it is worth, which rule cures it;
and what has just less than its limits."""

from __future__ import annotations

import sys

import pytest
from advised import KIB, MIB, MS, US, Program, advised, names, the
from wait_trace import WaitTrace

from weir.advise.frame.facts import Facts
from weir.advise.frame.grouping import groups
from weir.report import build
from weir.stage.suggest import fits


def small_files(count: int, size: int = 2 * KIB) -> Program:
    def program(trace: WaitTrace) -> None:
        for number in range(count):
            rank = number % trace.ranks
            path = f"/scratch/an/plots/p{number:05}"
            trace.io(rank, MS, path, "creat")
            trace.io(rank, MS // 2, path, "write", size)
            trace.io(rank, MS // 2, path, "close")

    return program


def test_many_small_files_have_pack_with_a_caution(tmp_path):
    report = advised(tmp_path, small_files(400))
    (one,) = report.rules
    assert one.finding == "many-files" and one.rule.stack == "pack:name=weir-packed.zip"
    assert one.rule.path == "/scratch/an/plots/p*" and "weir pack extract" in one.rule.caution
    # 2 ms for each of 400 files
    assert 0.3 < one.saving.io.low < one.saving.io.high < 0.81


@pytest.mark.parametrize(("count", "size"), [(60, 2 * KIB), (400, 8 * MIB)])
def test_few_or_large_files_have_not(tmp_path, count, size):
    assert "many-files" not in names(advised(tmp_path, small_files(count, size)))


def queried(op: str, us: int) -> Program:
    """As unzip and git ask for each file before they make it."""

    def program(trace: WaitTrace) -> None:
        for number in range(400):
            trace.io(0, us * US, f"/scratch/an/plots/p{number:05}", op, 0, error=2)
        small_files(400)(trace)

    return program


def test_queries_for_names_that_do_not_exist_yet_are_not_saved(tmp_path):
    """The file system answers them, and once more where a link would be followed."""
    without, follows, other = (the(advised(tmp_path / f"{op}{us}", queried(op, us)),
        "many-files").saving.io for op, us in (("stat", 0), ("stat", 400), ("lstat", 400)))
    assert follows.high < other.high and follows.high == pytest.approx(without.high, rel=0.1)
    assert without.low - follows.low == pytest.approx(0.85 * 0.16 * 1.2, rel=0.05)
    assert without.low - other.low == pytest.approx(0.85 * 0.16 * 0.2, rel=0.05)
    assert "many-files" not in names(advised(tmp_path / "most", queried("stat", 2000)))


def test_a_name_that_the_program_only_asks_for_is_no_other_use(tmp_path):
    """As gm asks for a name before it makes p00000."""

    def program(trace: WaitTrace) -> None:
        trace.io(0, MS, "/scratch/an/plots/p00000.old", "access", 0, error=error)
        small_files(400)(trace)

    for error in (2, 0):
        one = the(advised(tmp_path / str(error), program), "many-files")
        assert bool(one.rule.unusable) == (not error)


def in_turn(size: int) -> Program:
    """400 files of which the ranks write the pieces in turn."""

    def program(trace: WaitTrace) -> None:
        for number in range(400):
            path = f"/scratch/an/base/{number:05}"
            for rank in range(trace.ranks):
                trace.io(rank, MS, path, "open")
            for piece in range(8):
                trace.io(piece % trace.ranks, MS // 8, path, "pwrite", size, piece * size)
            for rank in range(trace.ranks):
                trace.io(rank, MS // 2, path, "close")

    return program


def test_tiny_files_that_ranks_write_in_turn_have_pack(tmp_path):
    (one,) = advised(tmp_path / "tiny", in_turn(2 * KIB)).rules
    assert one.finding == "many-files"
    assert "many-files" not in names(advised(tmp_path / "larger", in_turn(16 * KIB)))


@pytest.mark.parametrize(("opened", "last", "rule"), [
    ("0.{}.deadbeef.partial", "0.{}", "0.*"),  # zarr
    (".{}.aB12cd", "{}", "*"),  # rsync
    ("tmp.out{}", "out{}", "*"),
])
def test_the_rule_matches_both_names_of_files_that_are_renamed(tmp_path, weir, opened, last, rule):
    """A rename to a path that no rule matches makes a real file of a packed one."""
    program = ("import os\nfor i in range(100):\n"
        f"    with open({opened!r}.format(i), 'w') as f: f.write('x')\n"
        f"    os.rename({opened!r}.format(i), {last!r}.format(i))")
    (tmp_path / "d").mkdir()
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path / "d").ok()
    facts = Facts(build(str(tmp_path / "r")))
    files = [one for one in facts.bare if one.write.bytes]
    (group,) = groups(facts, files, by_last_names=True)
    assert group.pattern == str(tmp_path / "d" / rule)
    names = [name.format(i) for name in (opened, last) for i in range(100)]
    assert all(fits(str(tmp_path / "d" / name), group.pattern) for name in names)


_STORE = """
import os
for v in range(3):
    os.makedirs(f'd/v{v}{inner}')
    for name in (array, *(f'{inner}/{i}{dot}{j}' for i in range(8) for j in range(10))):
        path = f'd/v{v}/{name}'
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f'{path}.0123456789abcdef0123456789abcdef.partial', 'w') as f:
            f.write('x')
        os.rename(f.name, path)
    open(f'd/v{v}/{array}').read()
"""


@pytest.mark.parametrize(("array", "inner", "dot", "rule"), [
    (".zarray", "", ".", "v[0-9]*/[0-9]*"), ("zarr.json", "/c", "/", "v*/c/*/*")],
    ids=["format 2", "format 3"])
def test_the_rule_for_chunks_of_zarr_leaves_the_files_that_describe_arrays(tmp_path, weir, array,
        inner, dot, rule):
    program = f"array, inner, dot = {array!r}, {inner!r}, {dot!r}" + _STORE
    weir("trace", "-q", "-o", tmp_path / "r", "--", sys.executable, "-c", program,
        cwd=tmp_path).ok()
    facts = Facts(build(str(tmp_path / "r")))
    files = [one for one in facts.bare if one.write.bytes and not one.path.endswith(array)]
    (group,) = groups(facts, files, by_last_names=True)
    assert (group.pattern, group.others) == (f"{tmp_path}/d/{rule}", ())
    assert len(group.files) == 240 and all(fits(one.path, group.pattern) for one in files)
    assert not fits(f"{tmp_path}/d/v0/{array}", group.pattern)
