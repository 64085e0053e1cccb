# SPDX-License-Identifier: Apache-2.0
"""Patterns of names, against the plain rule that names alike but for their digits are one."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.analysis.patterns import FEWEST_ALIKE, find_patterns, joined, skeleton

SETTINGS = settings(max_examples=150)
WILD = re.compile(r"<([A-Z][0-9]*)>|\*")
part = st.text("abL.-0123", min_size=1, max_size=5)
names = st.lists(st.lists(part, min_size=1, max_size=3).map("/".join), max_size=30, unique=True)


def texts(*found: str, kinds=None) -> list[str]:
    return [one.text for one in find_patterns(found, kinds or [0] * len(found))]


@SETTINGS
@given(names, st.data())
def test_without_directories_names_are_one_if_they_are_alike_but_for_digits(found, data):
    kinds = data.draw(st.lists(st.integers(0, 1), min_size=len(found), max_size=len(found)))
    model = defaultdict(list)
    for index, (name, kind) in enumerate(zip(found, kinds)):
        model[kind, re.sub(r"[0-9]+", "#", name)].append(index)
    made = find_patterns(found, kinds, directories=False)
    assert sorted(one.members for one in made) == sorted(map(tuple, model.values()))


@SETTINGS
@given(names, st.data())
@example([f"d/{one}" for one in "abcdefg"], None)
def test_every_pattern_fits_its_names_and_has_more_than_one(found, data):
    kinds = [0] * len(found) if data is None else data.draw(st.lists(st.integers(0, 1),
        min_size=len(found), max_size=len(found)))
    made = find_patterns(found, kinds)
    assert sorted(index for one in made for index in one.members) == list(range(len(found)))
    for one in made:
        mine = [found[index] for index in one.members]
        assert len({kinds[index] for index in one.members}) == 1
        if len(mine) == 1:
            assert (one.text, one.numbers) == (mine[0], ())
            continue
        assert WILD.search(one.text)
        assert all(re.fullmatch(expression(one.text), name) for name in mine)
        assert {number.letter for number in one.numbers} == {letter
            for letter in WILD.findall(one.text) if letter}
        for number in one.numbers:
            assert int(number.least) <= int(number.most) and number.count >= 2


def expression(text: str) -> str:
    """A pattern as a regular expression: letters are digits, `*` is anything within one part of the
    path."""
    literals = [re.escape(piece) for piece in re.split(WILD.pattern.replace("(", "(?:"), text)]
    wild = ["[0-9]+" if found.group(1) else "[^/]*" for found in WILD.finditer(text)]
    return "".join(literal + one for literal, one in zip(literals, [*wild, ""]))


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12,
    unique=True))
def test_one_letter_stands_for_runs_that_tell_each_other(found):
    (one,) = find_patterns([f"a{first}/b{second}" for first, second in found], [0] * len(found))
    firsts, seconds = {first for first, _ in found}, {second for _, second in found}
    tell = len(firsts) == len(seconds) == len(found)
    letters = [letter for letter in WILD.findall(one.text) if letter]
    expected = 0 + (len(firsts) > 1) + (len(seconds) > 1)
    assert len(letters) == expected
    assert len(set(letters)) == (1 if expected == 2 and tell else expected)


@SETTINGS
@given(part)
def test_a_skeleton_and_its_runs_are_the_name(name):
    assert joined(*skeleton(name)) == name


def test_the_trajectory_of_the_reference():
    found = [f"TRAJHR0{i}/{kind}L{level:03}" for i in (0, 1) for kind in ("trajspec", "trajgrid")
        for level in range(1, 13)]
    kinds = ["first"] * 24 + ["second"] * 24
    made = find_patterns(found, kinds)
    assert [one.text for one in made] == [f"TRAJHR0{i}/{kind}L<N>" for i in (0, 1)
        for kind in ("trajspec", "trajgrid")]
    assert [(n.letter, n.least, n.most, n.count, n.has_gaps) for n in made[0].numbers] == [("N",
        "001", "012", 12, False)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["ME1", "ME2", "traj00"], ["ME<N>", "traj00"]),
        (["run1/out1", "run2/out2"], ["run<N>/out<N>"]),
        (["run1/out1", "run1/out2", "run2/out1"], ["run<N>/out<M>"]),
        (["a09", "a10"], ["a<N>"]),
        (["/dev/shm/ucx_28c353f2", "/dev/shm/ucx_1bac3078", "/dev/shm/ucx_3d"],
            ["/dev/shm/ucx_<N>", "/dev/shm/ucx_3d"]),
        (["fc2009122000", "fc2009122100", "defaced", "facade"], ["fc<N>", "defaced", "facade"]),
        (["x.nc", "y.nc", "z.nc", "u.nc", "v.nc"], ["x.nc", "y.nc", "z.nc", "u.nc", "v.nc"]),
        (["d/x.nc", "d/y.nc", "d/z.nc"], ["d/x.nc", "d/y.nc", "d/z.nc"]),
        (["d/x.nc", "d/y.nc", "d/z.nc", "d/u.nc"], ["d/*.nc"]),
        (["E.a/1/b", "E.a/2/b", "E.b/1/b", "E.b/2/b", "E.c/1/b", "E.c/2/b", "E.d/1/b", "E.d/2/b"],
            ["E.*/<N>/b"]),
        (["/x", "/y", "/z", "/u"], ["/x", "/y", "/z", "/u"]),
    ],
)
def test_what_becomes_of_names(found, expected):
    assert texts(*found) == expected


def test_directories_and_names_of_a_data_base_become_one_line():
    found = [f"ECMA.{kind}/{pool}/{table}" for kind in ("conv", "airs", "satob", "iasi")
        for pool in (1, 2) for table in ("hdr", "body", "index", "update")]
    assert texts(*found) == ["ECMA.*/<N>/*"] and len(found) >= FEWEST_ALIKE**2


def test_gaps_are_reported_and_long_runs_are_numbers_too():
    (one,) = find_patterns(["a1", "a2", "a9"], [0] * 3)
    assert (one.numbers[0].least, one.numbers[0].most, one.numbers[0].count,
        one.numbers[0].has_gaps) == ("1", "9", 3, True)
    (long,) = find_patterns(["a" + "9" * 5000, "a007"], [0] * 2)
    assert (long.numbers[0].least, len(long.numbers[0].most)) == ("007", 5000)


def test_files_of_several_sorts_in_a_directory_are_not_one_pattern():
    names = [f"/d/run/{one}.nc" for one in ("wind", "rain", "soil", "snow")]
    names += [f"/d/run/log_{one}" for one in ("atm", "ocn", "ice", "lnd")]
    names += ["/d/run/namelist", "/d/run/core", "/d/run/times.txt"]
    found = [one.text for one in find_patterns(names, [0] * len(names))]
    assert found == ["/d/run/*.nc", "/d/run/log_*", *names[8:]]


def test_many_files_without_anything_in_common_are_one_pattern():
    names = [f"/d/run/{letter * 3}" for letter in "abcdefgh"]
    assert [one.text for one in find_patterns(names, [0] * 8)] == ["/d/run/*"]
    assert len(find_patterns(names[:7], [0] * 7)) == 7


def test_hidden_files_of_several_kinds_have_names_that_tell_them_apart():
    kinds = ("lock", "journal")
    hidden = [f"out/.{name}.nc.part.{kind}" for name in "abcd" for kind in kinds]
    assert texts(*hidden) == ["out/.*.nc.part.lock", "out/.*.nc.part.journal"]
    assert texts(*[f"out/.{name}" for name in "abcd"]) == [f"out/.{name}" for name in "abcd"]
